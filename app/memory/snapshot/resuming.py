"""Resume a checkpoint on another machine: restore it where it is not, mend it where it is."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from app.db import checkpoints as checkpoint_rows
from app.db import snapshots as rows
from app.db.transaction import ReadTransaction
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Collection
from app.lineage.errors import ArchiveUnavailable, SnapshotFailed
from app.memory.reindex import reindex
from app.memory.services import Services
from app.memory.snapshot.restoring import OnConflict, Restored, restore
from app.memory.snapshot.writing import FILE_NAME


class Resumption(StrEnum):
    """What a resume did."""

    RESTORED = "restored"
    REINDEXED = "reindexed"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Resumed:
    """What was done, and the counts where it was a restore."""

    did: Resumption
    restored: Restored | None


async def resume(services: Services, checkpoint: str, file: IO[bytes] | None) -> Resumed:
    """Restore into an empty checkpoint; index anew what Letta has lost; else do nothing.

    Without a file, the service's own snapshot of the checkpoint is taken, if there is one. Raises
    as `restore` does, SnapshotFailed where that one cannot be read, and ArchiveUnavailable where
    Letta cannot be looked at.
    """
    row, empty = await services.ledger.read(lambda connection: _state(connection, checkpoint))
    if row is None or empty:
        return await _restore(services, checkpoint, file)
    if await _archive_is_empty(services, row):
        await reindex(services, checkpoint, claim=None)
        return Resumed(Resumption.REINDEXED, None)
    return Resumed(Resumption.NOTHING, None)


def _state(connection: ReadTransaction, checkpoint: str) -> tuple[Checkpoint | None, bool]:
    row = checkpoint_rows.find(connection, checkpoint)
    return row, row is None or rows.is_empty(connection, checkpoint)


async def _restore(services: Services, checkpoint: str, file: IO[bytes] | None) -> Resumed:
    if file is None:
        own = _own_file(services, checkpoint)
        if own is None:
            return Resumed(Resumption.NOTHING, None)
        with own:
            return await _restore(services, checkpoint, own)
    done = await restore(services, checkpoint, file, on_conflict=OnConflict.SKIP)
    return Resumed(Resumption.RESTORED, done)


def _own_file(services: Services, checkpoint: str) -> IO[bytes] | None:
    folder: Path | None = services.limits.snapshot_dir
    if folder is None:
        return None
    try:
        return (folder / checkpoint / FILE_NAME).open("rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotFailed(error.strerror, done="read") from error


async def _archive_is_empty(services: Services, row: Checkpoint) -> bool:
    """Tell whether an archive elsewhere holds nothing of what counts as indexed."""
    if not services.archive.elsewhere:
        return False
    health = await services.archive.health()
    if health.reason is not None:
        # What answers "not found" may be no Letta at all: nothing is thrown away on its word.
        raise ArchiveUnavailable(health.reason)
    counts = await services.ledger.read(lambda connection: checkpoint_rows.count(connection, row))
    if counts.entries == counts.pending + counts.refused:
        return False
    for collection in Collection:
        async for part in services.archive.passages(row.index(collection)):
            if part:
                return False
            break
    return True
