"""Read the flat trace of a checkpoint; write_entries writes it, search_entries searches it."""

from app.db import entries as entry_rows
from app.db.entries import Position
from app.lineage.access import Operation
from app.lineage.guard import Claim
from app.lineage.lineage import whole_trace
from app.memory.claims import reader_in
from app.memory.read_entries import OwnPage, record_shown
from app.memory.services import Services


async def trace_steps(
    services: Services,
    checkpoint: str,
    *,
    limit: int,
    after: Position | None,
    claim: Claim | None,
) -> OwnPage:
    """Return steps, oldest first: all of them without a claim, else what the claim may read.

    Raises UnknownCheckpoint, ScopeViolation, StaleToken.
    """
    reader = await reader_in(services, checkpoint, claim=claim, operation=Operation.TRACE_READ)
    row = await services.ledger.places.checkpoint(checkpoint)
    scope = whole_trace(checkpoint) if reader is None else reader.lineage.trace()
    listed = await services.ledger.read(
        lambda connection: entry_rows.page(
            connection, scope, index_epoch=row.index_epoch, limit=limit + 1, after=after
        )
    )
    page = listed[:limit]
    entries = [item.entry for item in page]
    target = None if reader is None else reader.node.id
    record_shown(services, row, Operation.TRACE_READ, entries, claim=claim, target=target)
    return OwnPage(entries, page[-1].position if len(listed) > limit else None)
