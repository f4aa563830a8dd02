"""Write a snapshot: all of a checkpoint at one instant, into a file."""

import asyncio
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import IO

from app.db import checkpoints as checkpoint_rows
from app.db import snapshots as rows
from app.db.transaction import ReadTransaction
from app.lineage.errors import SnapshotFailed
from app.lineage.json_rules import compact
from app.lineage.snapshot import (
    NODE,
    End,
    Header,
    block_lines,
    end_line,
    entry_line,
    header_line,
    node_line,
)
from app.memory.services import Services
from app.memory.snapshot.framing import LineWriter

FILE_NAME = "memory_backup.jsonl.gz"


async def spool_snapshot(services: Services, checkpoint: str) -> IO[bytes]:
    """Return a nameless file that holds the checkpoint's snapshot, to be read from its start.

    UnknownCheckpoint, SnapshotFailed where the disk will not have it. The file is whole before a
    byte of it is sent: a slow reader holds no transaction open, and a failure is told as one.
    """
    try:
        file = await asyncio.to_thread(_temporary, services.limits.scratch_dir)
    except OSError as error:
        raise SnapshotFailed(error.strerror) from error
    try:
        await write_snapshot(services, checkpoint, file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


async def write_snapshot(services: Services, checkpoint: str, file: IO[bytes]) -> str:
    """Write the checkpoint's snapshot into a file, and return the checkpoint's incarnation.

    UnknownCheckpoint, SnapshotFailed.
    """
    model = services.archive.model

    def write(connection: ReadTransaction) -> str:
        try:
            return _write(connection, checkpoint, file, model=model)
        except OSError as error:
            raise SnapshotFailed(error.strerror) from error

    return await services.ledger.read_at_one_instant(write)


def _write(connection: ReadTransaction, checkpoint: str, file: IO[bytes], *, model: str) -> str:
    row = checkpoint_rows.get(connection, checkpoint)
    writer = LineWriter(file)
    counts: Counter[str] = Counter()
    writer.write(header_line(Header(row.id, row.name, compact(row.metadata), model)))
    for node in rows.all_nodes(connection, checkpoint):
        writer.write(node_line(node))
        counts[NODE] += 1
    for line in block_lines(rows.all_blocks(connection, checkpoint)):
        writer.write(line)
    for entry in rows.all_entries(connection, checkpoint):
        writer.write(entry_line(entry))
        counts[entry.collection.value] += 1
    writer.write(end_line(End(writer.lines, counts, writer.sha256)))
    writer.finish()
    file.flush()
    return row.incarnation


def _temporary(folder: Path) -> IO[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)


def remove_leavings(folder: Path) -> None:
    """Delete half-written snapshots of a process that was killed."""
    for left in folder.glob(f"*/.{FILE_NAME}.*"):
        with suppress(FileNotFoundError):
            left.unlink()
