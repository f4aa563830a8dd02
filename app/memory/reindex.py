"""Index a checkpoint anew: after a change of the embedding model, or where its archive is lost."""

from app.db import checkpoints as checkpoint_rows
from app.db import indexing
from app.db.events import CheckpointChanged
from app.db.transaction import Transaction
from app.lineage.access import Operation
from app.lineage.checkpoint import Checkpoint, Counts
from app.lineage.guard import Claim
from app.memory.claims import operator_only
from app.memory.services import Services


async def reindex(
    services: Services, checkpoint: str, *, claim: Claim | None
) -> tuple[Checkpoint, Counts]:
    """Make every entry pending, for the configured model; return the checkpoint as it is now.

    UnknownCheckpoint, ScopeViolation for any claim. The indexing itself goes on in the background.
    """

    def work(tx: Transaction) -> tuple[Checkpoint, Counts]:
        checkpoint_rows.lock(tx.connection, checkpoint)
        indexing.begin_reindex(
            tx.connection,
            checkpoint,
            model=services.archive.model,
            dimensions=services.archive.dimensions,
        )
        tx.events.append(CheckpointChanged(checkpoint))
        row = checkpoint_rows.get(tx.connection, checkpoint)
        return row, checkpoint_rows.count(tx.connection, row)

    await operator_only(services, checkpoint, claim=claim, operation=Operation.CHECKPOINT_WRITE)
    result = await services.ledger.write(work)
    services.indexer.wake()
    services.upkeep.wake()
    return result
