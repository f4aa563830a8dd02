"""Tells an archive elsewhere what it has to be told besides entries, for as long as it takes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from app.archive.port import Archive, Lag
from app.backoff import Backoff
from app.lineage.errors import ArchiveUnavailable, LedgerUnavailable

# There may be work without a word to us: by another replica, by a claim that expired.
LOOK_EVERY_S = 5.0
PAUSE = Backoff(first_s=0.5, longest_s=15.0)

log = structlog.get_logger(__name__)


class ArchiveUpkeep:
    """Removals, purges and core memory: done in the background.

    `lag` is what was left to do after the last step, `trouble` why the last step failed, if it did.
    """

    def __init__(self, archive: Archive, *, on_lag: Callable[[Lag], None]) -> None:
        """`on_lag` hears after each step what is left to do."""
        self._archive = archive
        self._on_lag = on_lag
        self._work_came = asyncio.Event()
        self.lag = Lag()
        self.trouble: str | None = None

    def wake(self) -> None:
        """Say that there is something to tell."""
        self._work_came.set()

    async def run(self) -> None:
        """Do what is left to do until cancelled; an archive that is away is asked more rarely."""
        failures = 0
        while True:
            self._work_came.clear()
            try:
                busy = await self._archive.upkeep()
                await self._look()
            except (ArchiveUnavailable, LedgerUnavailable) as error:
                failures += 1
                self.trouble = error.reason
                log.warning("upkeep_failed", reason=error.reason, failures=failures)
                await self._look_if_possible()
                await asyncio.sleep(PAUSE.pause_s(failures))
                continue
            failures, self.trouble = 0, None
            if not busy:
                await self._wait_for_work()

    async def _look(self) -> None:
        self.lag = await self._archive.lag()
        self._on_lag(self.lag)

    async def _look_if_possible(self) -> None:
        with suppress(LedgerUnavailable):
            await self._look()

    async def _wait_for_work(self) -> None:
        try:
            await asyncio.wait_for(self._work_came.wait(), LOOK_EVERY_S)
        except TimeoutError:
            return
