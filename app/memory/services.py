"""What the use cases work with, put together once by the application."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from app.archive.port import Archive
from app.db.ledger import Ledger
from app.embedding.port import Embedder
from app.memory.access_recorder import AccessRecorder
from app.memory.archive_upkeep import ArchiveUpkeep
from app.memory.indexer import Indexer
from app.memory.underway import Underway


def utc_now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Limits:
    """The configured limits, in bytes, seconds and words, and folders: for scratch, for snapshots.

    `timezone` decides what day it is.
    """

    max_text_bytes: int
    index_wait_s: float
    max_snapshot_bytes: int
    scratch_dir: Path
    snapshot_dir: Path | None
    timezone: ZoneInfo
    core_max_words: int


@dataclass(frozen=True, slots=True)
class Services:
    """The ledger, the archive, the embedder and what runs beside them."""

    ledger: Ledger
    archive: Archive
    embedder: Embedder
    accesses: AccessRecorder
    indexer: Indexer
    upkeep: ArchiveUpkeep
    underway: Underway
    limits: Limits
    # One file of a checkpoint at a time: of two, the older must not be put in place last.
    snapshot_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    clock: Callable[[], datetime] = utc_now

    @property
    def local_time(self) -> datetime:
        """Now, with the offset of the zone that decides what day it is."""
        return self.clock().astimezone(self.limits.timezone)
