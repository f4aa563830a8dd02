"""Whether writes can be taken, and how the archive is."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.archive.port import Archive, Health, Lag
from app.db.ledger import Ledger
from app.db.probe import probe
from app.lineage.errors import LedgerUnavailable
from app.memory.archive_upkeep import ArchiveUpkeep
from app.memory.indexer import Indexer

PATIENCE_S = 3.0
# A prober that asks all the time must not keep the disk busy.
GOOD_FOR_S = 1.0
NO_LAG = Lag()


@dataclass(frozen=True, slots=True)
class State:
    """`ledger` and `archive` are None where all is well, else the reason.

    `facts` tells of the archive (versions, models), `lag` what it has not been told yet.
    """

    ledger: str | None
    archive: str | None
    facts: Mapping[str, str] = field(default_factory=dict)
    lag: Lag = NO_LAG

    @property
    def ready(self) -> bool:
        """True where writes can be taken; an archive that is away only degrades."""
        return self.ledger is None


class Readiness:
    """Tries what a write needs."""

    def __init__(
        self, ledger: Ledger, archive: Archive, indexer: Indexer, upkeep: ArchiveUpkeep
    ) -> None:
        self._ledger = ledger
        self._archive = archive
        self._indexer = indexer
        self._upkeep = upkeep
        self._asking = asyncio.Lock()
        self._state = State("starting", None)
        self._until = 0.0

    async def state(self) -> State:
        """Return the state of at most a second ago."""
        async with self._asking:
            if time.monotonic() >= self._until:
                ledger = await self._ledger_reason()
                health = await self._archive_health()
                trouble = health.reason or self._indexer.trouble or self._upkeep.trouble
                self._state = State(ledger, trouble, health.facts, await self._lag())
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

    async def _lag(self) -> Lag:
        try:
            return await asyncio.wait_for(self._archive.lag(), PATIENCE_S)
        except (TimeoutError, LedgerUnavailable):
            return self._upkeep.lag

    async def _archive_health(self) -> Health:
        try:
            return await asyncio.wait_for(self._archive.health(), PATIENCE_S)
        except TimeoutError:
            return Health("the archive does not answer in time")
        except LedgerUnavailable as error:
            return Health(f"the archive cannot be compared with the ledger: {error.reason}")
