"""The file that holds a checkpoint's snapshot: replaced whole, and only by the same checkpoint."""

import datetime as dt
import filecmp
import os
import secrets
from pathlib import Path

from app.memory.snapshot.writing import FILE_NAME

# Which checkpoint of the name wrote the file: its incarnation.
MARK = ".written_by"


def beside(target: Path) -> Path:
    """Return a new name for what is on its way to a place; `remove_leavings` knows the form."""
    return target.with_name(f".{FILE_NAME}.{secrets.token_hex(8)}")


def put_in_place(written: Path, target: Path, *, incarnation: str) -> None:
    """Rename a synced snapshot to its place. OSError.

    A snapshot that another checkpoint of the name left there stays under the time of its writing:
    where the ledger was lost, it is the only one that has what was in it.
    """
    same = target.exists() and filecmp.cmp(written, target, shallow=False)
    if _mark(target) != incarnation:
        if target.exists() and not same:
            os.link(target, _free_name(target))
        # Before the rename: a kill in between leaves the former one under both names.
        _write_mark(target, incarnation)
    if same:
        written.unlink()
    else:
        written.replace(target)
    _sync(target.parent)


def _free_name(target: Path) -> Path:
    """Return a name that tells when the snapshot was written, to the microsecond."""
    at = dt.datetime.fromtimestamp(target.stat().st_mtime, dt.UTC)
    return target.with_name(f"memory_backup.{at:%Y%m%dT%H%M%S.%fZ}.{secrets.token_hex(4)}.jsonl.gz")


def _mark(target: Path) -> str | None:
    try:
        return target.with_name(MARK).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _write_mark(target: Path, incarnation: str) -> None:
    new = beside(target)
    new.write_text(incarnation, encoding="utf-8")
    new.replace(target.with_name(MARK))


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
