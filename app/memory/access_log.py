"""Read the access log."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.db import access_log
from app.db.access_log import Position
from app.db.instants import to_us
from app.lineage.access import AccessRecord
from app.lineage.guard import Claim
from app.memory.claims import operator_only
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class AccessPage:
    """A page of records, newest first; `next_position` is None on the last one."""

    records: Sequence[AccessRecord]
    next_position: Position | None


async def access_records(
    services: Services, checkpoint: str, *, limit: int, before: Position | None, claim: Claim | None
) -> AccessPage:
    """Return who read and wrote what, newest first: the operator's view. UnknownCheckpoint."""
    await operator_only(services, checkpoint, claim=claim)
    await services.accesses.flush()
    found = await services.ledger.read(
        lambda connection: list(
            access_log.page(connection, checkpoint, limit=limit + 1, before=before)
        )
    )
    page = found[:limit]
    more = (to_us(page[-1].at), page[-1].id) if len(found) > limit else None
    return AccessPage(page, more)
