"""Whether writes can be taken, and how the archive is."""

import asyncio
import time
from dataclasses import dataclass

from app.archive.port import Archive
from app.db.ledger import Ledger
from app.db.probe import probe
from app.lineage.errors import LedgerUnavailable

PATIENCE_S = 3.0
# A prober that asks all the time must not keep the disk busy.
GOOD_FOR_S = 1.0


@dataclass(frozen=True, slots=True)
class State:
    """`ledger` and `archive` are None where all is well, else the reason."""

    ledger: str | None
    archive: str | None

    @property
    def ready(self) -> bool:
        """True where writes can be taken; an archive that is away only degrades."""
        return self.ledger is None


class Readiness:
    """Tries what a write needs."""

    def __init__(self, ledger: Ledger, archive: Archive) -> None:
        self._ledger = ledger
        self._archive = archive
        self._asking = asyncio.Lock()
        self._state = State("starting", None)
        self._until = 0.0

    async def state(self) -> State:
        """Return the state of at most a second ago."""
        async with self._asking:
            if time.monotonic() >= self._until:
                self._state = State(await self._ledger_reason(), await self._archive_reason())
                self._until = time.monotonic() + GOOD_FOR_S
            return self._state

    async def _ledger_reason(self) -> str | None:
        try:
            await asyncio.wait_for(self._ledger.write(probe), PATIENCE_S)
        except LedgerUnavailable as error:
            return error.reason
        except TimeoutError:
            return "the database does not answer in time"
        return self._ledger.recent_refusal()

    async def _archive_reason(self) -> str | None:
        try:
            health = await asyncio.wait_for(self._archive.health(), PATIENCE_S)
        except TimeoutError:
            return "the archive does not answer in time"
        return health.reason
