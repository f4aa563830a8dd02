"""Snapshots that write themselves: after a quiet period, on demand, and when the service stops."""

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from app.db import checkpoints as checkpoint_rows
from app.db import snapshots as rows
from app.lineage.errors import (
    InvalidInput,
    LedgerUnavailable,
    SnapshotFailed,
    UnknownCheckpoint,
)
from app.memory.services import Services
from app.memory.snapshot.keeping import beside, put_in_place
from app.memory.snapshot.writing import FILE_NAME, remove_leavings, write_snapshot

LOOK_EVERY_S = 1.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Seen:
    """A checkpoint's counters, since when they are so, and the counters of its last snapshot."""

    counters: tuple[object, ...]
    since: float
    written: tuple[object, ...] | None = None


class AutomaticSnapshots:
    """Keeps `<folder>/<checkpoint>/memory_backup.jsonl.gz` of every checkpoint."""

    def __init__(self, services: Services, *, quiet_s: float) -> None:
        """Write a checkpoint's snapshot once nothing changed in it for `quiet_s` seconds."""
        self._services = services
        self._quiet_s = quiet_s
        self._seen: dict[str, _Seen] = {}

    async def run(self) -> None:
        """Look and write until cancelled."""
        await self._tidy()
        while True:
            try:
                await self._look()
                await self._write_due(quiet_s=self._quiet_s)
            except LedgerUnavailable as error:
                log.warning("snapshots_wait", reason=error.reason)
            await asyncio.sleep(LOOK_EVERY_S)

    async def stop(self) -> None:
        """Write what changed since its last snapshot, quiet or not."""
        try:
            await self._look()
            await self._write_due(quiet_s=0.0)
        except LedgerUnavailable as error:
            log.warning("last_snapshots_failed", reason=error.reason)

    async def _tidy(self) -> None:
        try:
            await asyncio.to_thread(remove_leavings, _folder(self._services))
        except OSError as error:
            log.warning("snapshot_leavings_stay", reason=error.strerror)

    async def _look(self) -> None:
        now = time.monotonic()
        counters = await self._services.ledger.read(checkpoint_rows.all_counters)
        self._seen = {
            checkpoint: self._seen.get(checkpoint, _Seen(values, now))
            for checkpoint, values in counters.items()
        }
        for checkpoint, values in counters.items():
            seen = self._seen[checkpoint]
            if seen.counters != values:
                seen.counters, seen.since = values, now

    async def _write_due(self, *, quiet_s: float) -> None:
        now = time.monotonic()
        for checkpoint, seen in list(self._seen.items()):
            if seen.counters == seen.written or now - seen.since < quiet_s:
                continue
            counters = seen.counters
            try:
                if await self._has_something(checkpoint):
                    await keep_snapshot(self._services, checkpoint)
            except UnknownCheckpoint:
                continue
            except SnapshotFailed as error:
                # Tried again after the next quiet period.
                seen.since = time.monotonic()
                log.warning("snapshot_failed", checkpoint=checkpoint, reason=str(error))
                continue
            seen.written = counters

    async def _has_something(self, checkpoint: str) -> bool:
        """Tell whether there is something to lose; what is empty may be about to be resumed."""
        return not await self._services.ledger.read(
            lambda connection: rows.is_empty(connection, checkpoint)
        )


async def keep_snapshot(services: Services, checkpoint: str) -> Path:
    """Write the checkpoint's snapshot file and return its path.

    InvalidInput without LINEAGE_SNAPSHOT_DIR, UnknownCheckpoint, SnapshotFailed. The file is
    written beside, synced and renamed: whoever opens it finds a whole one, the old or the new. One
    that another checkpoint of the name wrote is kept beside it.
    """
    folder = _folder(services) / checkpoint
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        async with services.snapshot_lock:
            return await _replace(services, checkpoint, folder / FILE_NAME)
    except OSError as error:
        raise SnapshotFailed(error.strerror) from error


async def _replace(services: Services, checkpoint: str, target: Path) -> Path:
    written = beside(target)
    try:
        with open(written, "xb") as file:  # noqa: PTH123, ASYNC230  (opens at once)
            incarnation = await write_snapshot(services, checkpoint, file)
            await asyncio.to_thread(os.fsync, file.fileno())
        await asyncio.to_thread(put_in_place, written, target, incarnation=incarnation)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(written)  # noqa: PTH108  (at once, cancelled or not)
        raise
    return target


def _folder(services: Services) -> Path:
    if services.limits.snapshot_dir is None:
        raise InvalidInput(
            "This service keeps no snapshots: LINEAGE_SNAPSHOT_DIR is not set.", place=("path",)
        )
    return services.limits.snapshot_dir
