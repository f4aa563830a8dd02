"""Index a checkpoint anew: after a change of the embedding model, or to mend its index."""

from dataclasses import dataclass

from app.db import checkpoints as checkpoint_rows
from app.db import entries as entry_rows
from app.db.events import CheckpointChanged
from app.db.transaction import ReadTransaction, Transaction
from app.lineage.checkpoint import Checkpoint, Counts
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What did not fit between ledger and archive, by entry id, and whether it is being mended."""

    checked: int
    missing: tuple[str, ...]
    dry_run: bool


async def reindex(services: Services, checkpoint: str) -> tuple[Checkpoint, Counts]:
    """Make every entry pending, for the configured model; return the checkpoint as it is now.

    UnknownCheckpoint. The indexing itself goes on in the background.
    """

    def work(tx: Transaction) -> tuple[Checkpoint, Counts]:
        checkpoint_rows.lock(tx.connection, checkpoint)
        checkpoint_rows.begin_reindex(
            tx.connection,
            checkpoint,
            model=services.archive.model,
            dimensions=services.archive.dimensions,
        )
        tx.events.append(CheckpointChanged(checkpoint))
        row = checkpoint_rows.get(tx.connection, checkpoint)
        return row, checkpoint_rows.count(tx.connection, row)

    result = await services.ledger.write(work)
    services.indexer.wake()
    return result


async def reconcile(services: Services, checkpoint: str, *, dry_run: bool) -> Reconciled:
    """Find entries that count as indexed and have no usable vector, and index them again.

    UnknownCheckpoint. With `dry_run` nothing is changed.
    """

    def find(connection: ReadTransaction) -> Reconciled:
        row = checkpoint_rows.get(connection, checkpoint)
        checked, broken = entry_rows.without_vector(
            connection, checkpoint, index_epoch=row.index_epoch, dimensions=row.dimensions or 0
        )
        return Reconciled(checked, tuple(broken), dry_run)

    def mend(tx: Transaction) -> Reconciled:
        checkpoint_rows.lock(tx.connection, checkpoint)
        found = find(tx.connection)
        if found.missing:
            entry_rows.make_pending(tx.connection, checkpoint, found.missing)
            checkpoint_rows.void_caches(tx.connection, checkpoint)
            tx.events.append(CheckpointChanged(checkpoint))
        return found

    if dry_run:
        return await services.ledger.read(find)
    mended = await services.ledger.write(mend)
    services.indexer.wake()
    return mended
