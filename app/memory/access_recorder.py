"""Records reads and refusals in batches, off the request's path."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

import structlog

from app.db import access_log
from app.db.access_log import SeenAccess
from app.db.instants import now_us
from app.db.ledger import Ledger
from app.lineage.access import Access
from app.lineage.errors import LedgerUnavailable

FLUSH_S = 0.5
# A crash, or a log that cannot be written for long, costs reads' records, never memory.
MAX_WAITING = 20_000
MAX_BATCH = 1_000

log = structlog.get_logger(__name__)


class AccessRecorder:
    """Holds the records of at most the last half second."""

    def __init__(self, ledger: Ledger, *, on_lost: Callable[[int], None]) -> None:
        self._ledger = ledger
        self._on_lost = on_lost
        self._waiting: deque[SeenAccess] = deque()
        self._flushing = asyncio.Lock()

    def record(self, access: Access, *, incarnation: str) -> None:
        """Take a record; it is in the log within about half a second."""
        if len(self._waiting) >= MAX_WAITING:
            self._on_lost(1)
            return
        self._waiting.append(SeenAccess(incarnation, now_us(), access))

    async def flush(self) -> None:
        """Write what is waiting; a log that cannot be written loses it, and says so."""
        async with self._flushing:
            while self._waiting:
                size = min(MAX_BATCH, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(size)]
                try:
                    await self._ledger.write(partial(access_log.record_seen, seen=batch))
                except LedgerUnavailable as error:
                    self._on_lost(len(batch))
                    log.warning("access_log_lost", records=len(batch), reason=error.reason)

    async def run(self) -> None:
        """Flush at intervals until cancelled; what is waiting then is flushed by `flush`."""
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()
