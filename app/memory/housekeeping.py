"""Prune what is kept for a time only, in the background, in small steps."""

import asyncio
from dataclasses import dataclass

import structlog

from app.db import access_log, idempotency
from app.db.instants import now_us
from app.db.ledger import Ledger
from app.db.transaction import Transaction
from app.lineage.errors import LedgerUnavailable

EVERY_S = 60.0
DAY_US = 24 * 3600 * 1_000_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """Keeps the access log to its days and rows, and repeated answers to their time."""

    ledger: Ledger
    access_log_days: int
    access_log_rows: int

    async def run(self) -> None:
        """Prune at intervals until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.prune()
            except LedgerUnavailable as error:
                log.warning("pruning_failed", reason=error.reason)

    async def prune(self) -> None:
        """Prune until nothing is left to prune; other writes come in between."""
        await self.ledger.write(lambda tx: idempotency.prune(tx.connection))
        pruned = 1
        while pruned:
            pruned = await self.ledger.write(self._prune_some)

    def _prune_some(self, tx: Transaction) -> int:
        return access_log.prune(
            tx.connection,
            older_than_us=now_us() - self.access_log_days * DAY_US,
            keep_rows=self.access_log_rows,
        )
