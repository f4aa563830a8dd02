"""Bring the schema up at the start, however long the database is away."""

import asyncio

import structlog

from app.db.ledger import Ledger
from app.lineage.errors import LedgerUnavailable

RETRY_S = 1.0

log = structlog.get_logger(__name__)


async def migrate_or_go_on(ledger: Ledger) -> bool:
    """Migrate; tell whether it could be done now."""
    try:
        await ledger.migrate()
    except LedgerUnavailable as error:
        log.warning("migration_waits", reason=error.reason)
        return False
    return True


async def keep_migrating(ledger: Ledger) -> None:
    """Try until the schema is there; the service answers 503 meanwhile."""
    while not await migrate_or_go_on(ledger):  # noqa: ASYNC110  (nothing tells when it is back)
        await asyncio.sleep(RETRY_S)
