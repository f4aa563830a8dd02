"""Create, list, show and purge checkpoints."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from app.db import checkpoints as checkpoint_rows
from app.db import idempotency, indexing
from app.db.checkpoints import Position
from app.db.events import CheckpointChanged
from app.db.idempotency import Answer, Once
from app.db.instants import to_us
from app.db.transaction import ReadTransaction, Transaction
from app.lineage.access import Operation
from app.lineage.checkpoint import Checkpoint, Counts, Refusal
from app.lineage.entry import Metadata
from app.lineage.errors import ArchiveUnavailable, LedgerUnavailable, ScopeViolation
from app.lineage.guard import Claim
from app.lineage.ids import checkpoint_id, checkpoint_path
from app.lineage.json_rules import check_object
from app.memory.claims import operator_only
from app.memory.services import Services

# How many refused entries a checkpoint shows.
REFUSALS_SHOWN = 20

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Created:
    """A stored row, and whether this request made it."""

    row: Any
    made: bool


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """A page of checkpoints; `next_position` is None on the last one."""

    checkpoints: Sequence[Checkpoint]
    next_position: Position | None


async def create_checkpoint(
    services: Services,
    *,
    given_id: str | None,
    path: str | None,
    name: str | None,
    metadata: Metadata,
    once: Once | None,
) -> Created | Answer:
    """Return the checkpoint of this id or path, made if it was not there.

    InvalidInput for a malformed id, a relative path or bad metadata; CheckpointConflict where the
    id belongs to another path.
    """
    stored_path = checkpoint_path(path)
    new_id = checkpoint_id(given_id, stored_path, seed=once.scope if once else None)
    metadata_json = check_object(metadata, place=("body", "metadata"))

    def work(tx: Transaction) -> Created | Answer:
        row, made = checkpoint_rows.create(
            tx.connection,
            new_id,
            derived=given_id is None,
            path=stored_path,
            name=name,
            metadata=metadata_json,
        )
        created = Created(row, made)
        if once and (kept := idempotency.load(tx.connection, [once.scope])):
            # Looked up after the insert, which waits for a repeat that another replica is at. If
            # the key's body was another one, the error takes the insert back.
            return once.replay(kept[once.scope])
        if once:
            idempotency.keep(tx.connection, [once.row(row.id, created)])
        return created

    return await services.ledger.write(work)


async def list_checkpoints(
    services: Services, *, limit: int, after: Position | None, claim: Claim | None
) -> CheckpointPage:
    """Return checkpoints, oldest first; a claim reads only its own checkpoint: ScopeViolation."""
    if claim is not None:
        raise ScopeViolation(claim.node, ["checkpoints"])
    found = await services.ledger.read(
        lambda connection: checkpoint_rows.page(connection, limit=limit + 1, after=after)
    )
    page = found[:limit]
    more = (to_us(page[-1].created_at), page[-1].id) if len(found) > limit else None
    return CheckpointPage(page, more)


async def show_checkpoint(
    services: Services, checkpoint: str, *, claim: Claim | None
) -> tuple[Checkpoint, Counts, Sequence[Refusal]]:
    """Return a checkpoint, its counts and some refused entries: the operator's view.

    UnknownCheckpoint.
    """
    await operator_only(services, checkpoint, claim=claim)

    def query(connection: ReadTransaction) -> tuple[Checkpoint, Counts, Sequence[Refusal]]:
        row = checkpoint_rows.get(connection, checkpoint)
        refusals = indexing.refusals(
            connection, checkpoint, index_epoch=row.index_epoch, limit=REFUSALS_SHOWN
        )
        return row, checkpoint_rows.count(connection, row), refusals

    return await services.ledger.read(query)


async def purge_checkpoint(services: Services, checkpoint: str, *, claim: Claim | None) -> bool:
    """Delete a checkpoint and all that is its own, and tell whether an archive elsewhere is done.

    UnknownCheckpoint, ScopeViolation for any claim. Where it is not done, it goes on in the
    background.
    """

    def work(tx: Transaction) -> None:
        checkpoint_rows.purge(tx.connection, checkpoint)
        tx.events.append(CheckpointChanged(checkpoint))

    await operator_only(services, checkpoint, claim=claim, operation=Operation.CHECKPOINT_WRITE)
    row = await services.ledger.places.checkpoint(checkpoint)
    await services.ledger.write(work)
    try:
        async with asyncio.timeout(services.limits.index_wait_s):
            return await services.archive.purge(checkpoint, row.incarnation)
    except (TimeoutError, ArchiveUnavailable, LedgerUnavailable) as error:
        log.info("purge_goes_on", checkpoint=checkpoint, reason=str(error))
        services.upkeep.wake()
        return False
