"""Restore a snapshot: judged whole, then stored in one transaction, then embedded."""

import asyncio
import itertools
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Any

from app.db import checkpoints as checkpoint_rows
from app.db import snapshots as rows
from app.db.events import CheckpointChanged
from app.db.snapshots import Stored
from app.db.transaction import Transaction
from app.lineage.core_memory import HUMAN, PERSONA
from app.lineage.errors import RestoreConflict, UnknownCheckpoint
from app.lineage.snapshot import SnapshotBlocks
from app.memory.services import Services
from app.memory.snapshot.checking import CheckedSnapshot, SnapshotSource, judge
from app.memory.write_entries import new_entry_id

# A transaction of 100,000 entries takes about 10 s.
PATIENCE_S = 3600.0


class OnConflict(StrEnum):
    """What becomes of what is there already."""

    SKIP = "skip"
    MERGE = "merge"
    OVERWRITE = "overwrite"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did; `ignored` counts lines of kinds that only another tool knows."""

    checkpoint: str
    stored: Stored
    ignored: int


async def restore(
    services: Services, checkpoint: str, file: IO[bytes], *, on_conflict: OnConflict
) -> Restored:
    """Store what a packed snapshot holds in a checkpoint, made if need be; all of it or nothing.

    SnapshotRefused and TooLarge for the file, NodeConflict for a node that has another parent,
    RestoreConflict where `fail` finds anything. The embedding goes on in the background. Cancelled
    while the file is judged, it ends soon; what has begun to be stored is stored all the same.
    """
    source = SnapshotSource(
        file, checkpoint, services.limits.max_snapshot_bytes, services.limits.max_text_bytes
    )
    checked = await judge(source)

    def work(tx: Transaction) -> Stored:
        return _load(tx, checkpoint, checked, source, on_conflict=on_conflict)

    stored = await _to_its_end(services.ledger.write(work, patience_s=PATIENCE_S))
    services.indexer.wake()
    services.upkeep.wake()
    return Restored(checkpoint, stored, checked.ignored)


async def _to_its_end(storing: Coroutine[Any, Any, Stored]) -> Stored:
    """Wait on, cancelled or not: the caller would close the file that is being read."""
    task = asyncio.ensure_future(storing)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()


def _load(
    tx: Transaction,
    checkpoint: str,
    checked: CheckedSnapshot,
    source: SnapshotSource,
    *,
    on_conflict: OnConflict,
) -> Stored:
    former = rows.all_blocks(tx.connection, checkpoint)
    row = _target(tx, checkpoint, checked, on_conflict)
    loader = rows.loader(
        tx.connection,
        row,
        new_id=new_entry_id,
        rename_conflicts=on_conflict is OnConflict.MERGE,
    )
    loader.load_nodes(checked.nodes)
    loader.load_blocks(_foreign_blocks(checked, former) if checked.foreign else checked.blocks)
    entries = source.entries(foreign=checked.foreign)
    while chunk := list(itertools.islice(entries, rows.CHUNK)):
        loader.load_entries(chunk)
    loader.finish()
    tx.events.append(CheckpointChanged(checkpoint))
    return loader.stored


def _target(
    tx: Transaction, checkpoint: str, checked: CheckedSnapshot, on_conflict: OnConflict
) -> dict[str, Any]:
    """Return the locked row of the checkpoint to load into."""
    header = checked.header
    name, metadata = (header.name, header.metadata_json) if header else (None, "{}")
    if on_conflict is OnConflict.OVERWRITE:
        return rows.revive(tx.connection, checkpoint, name=name, metadata=metadata)
    try:
        row = dict(checkpoint_rows.lock(tx.connection, checkpoint))
    except UnknownCheckpoint:
        return rows.revive(tx.connection, checkpoint, name=name, metadata=metadata)
    empty = rows.is_empty(tx.connection, checkpoint)
    if on_conflict is OnConflict.FAIL and not empty:
        raise RestoreConflict(checkpoint)
    if empty:
        rows.describe(tx.connection, checkpoint, name=name, metadata=metadata)
    return row


def _foreign_blocks(checked: CheckedSnapshot, former: SnapshotBlocks) -> list[SnapshotBlocks]:
    """Leave out what a foreign file only left blank; what was filled before stays so."""
    filled = [_filled(part) for part in checked.blocks]
    blank = {
        label
        for part, rest in zip(checked.blocks, filled, strict=True)
        for label in part.blocks.keys() - rest.blocks.keys()
    }
    kept = {label: value for label, value in former.blocks.items() if label in blank}
    return [*filled, SnapshotBlocks(kept, former.set_at)]


def _filled(part: SnapshotBlocks) -> SnapshotBlocks:
    filled = {
        label: value
        for label, value in part.blocks.items()
        if value.strip() or label not in {PERSONA, HUMAN}
    }
    return SnapshotBlocks(filled, part.set_at)
