"""The ledger: reads in a pool of threads, writes in the writer thread, hot rows in memory.

SQLAlchemy is used synchronously, in threads: one hop costs 0.1 ms, where its async layer costs
0.5 ms a statement in greenlets and driver threads (2,100 indexed reads a second against 600,
measured with 8 clients on SQLite).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from app.db.append import Append, Appended
from app.db.blocks import Blocks
from app.db.engine import SingleWriter, is_sqlite, open_engine, sqlite_file
from app.db.events import (
    AccessesLost,
    CheckpointChanged,
    EntryStored,
    Event,
    NodeChanged,
    NodeCleared,
)
from app.db.failures import PATIENCE_S, ledger_failures, silent_database
from app.db.idempotency import Answer
from app.db.migrate import migrate
from app.db.places import Places
from app.db.transaction import Transaction
from app.db.writer import Writer

READERS = 8
LONG_READS = 2
T = TypeVar("T")


class Ledger:
    """One database, as the use cases see it."""

    def __init__(
        self, url: str, *, cache_bytes: int, on_accesses_lost: Callable[[int], None]
    ) -> None:
        self.url = url
        self.sole_writer = is_sqlite(url)
        # One more than the reader threads: the writer's own.
        self._engine: Engine = open_engine(url, connections=READERS + 1)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="ledger-reader")
        self._writer = Writer(self._engine, self)
        self._on_accesses_lost = on_accesses_lost
        self._held = ExitStack()
        # They must not take all the threads that short reads need.
        self._long_reads = asyncio.Semaphore(LONG_READS)
        self.blocks = Blocks(self.read, max_bytes=cache_bytes, sole_writer=self.sole_writer)
        self.places = Places(self.read, sole_writer=self.sole_writer)

    def open(self) -> None:
        """Take the single writer's lock where the database is SQLite, and begin to write.

        AlreadyServed where another process has it. Call it on the running event loop.
        """
        if (file := sqlite_file(self.url)) is not None:
            self._held.enter_context(SingleWriter(file))
        self._writer.start()

    async def migrate(self) -> None:
        """Bring the schema to this version; LedgerUnavailable where the database is away."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._readers, self._migrate)

    async def close(self) -> None:
        """Finish the writes handed in, then let go of the database."""
        await self._writer.stop()
        self._readers.shutdown()
        self._engine.dispose()
        self._held.close()

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query in a read transaction off the event loop; LedgerUnavailable if it cannot."""
        loop = asyncio.get_running_loop()
        async with _patience():
            return await loop.run_in_executor(self._readers, partial(self._query, query))

    async def read_at_one_instant(self, query: Callable[[Connection], T]) -> T:
        """Run several queries that see the database as it is now, however long they take."""
        loop = asyncio.get_running_loop()
        async with self._long_reads:
            return await loop.run_in_executor(self._readers, partial(self._query_still, query))

    async def write(self, work: Callable[[Transaction], T], *, patience_s: float = PATIENCE_S) -> T:
        """Run a job in a transaction of its own; see Writer.run."""
        return await self._writer.run(work, patience_s=patience_s)

    async def append(self, append: Append) -> Appended | Answer:
        """Store entries in the next shared commit; see Writer.append."""
        return await self._writer.append(append)

    def recent_refusal(self) -> str | None:
        """Return why a write was refused of late; see Writer.recent_refusal."""
        return self._writer.recent_refusal()

    def apply(self, event: Event) -> None:
        """Make a commit visible to the caches."""
        match event:
            case EntryStored() | NodeCleared():
                self.blocks.apply(event)
            case NodeChanged():
                self.places.apply(event)
            case CheckpointChanged():
                self.blocks.apply(event)
                self.places.apply(event)
            case AccessesLost():
                self._on_accesses_lost(event.count)

    def _migrate(self) -> None:
        with ledger_failures():
            migrate(self._engine)

    def _query_still(self, query: Callable[[Connection], Any]) -> Any:
        # A transaction of SQLite's sees one instant anyway.
        level = {} if self.sole_writer else {"isolation_level": "REPEATABLE READ"}
        with ledger_failures(), self._engine.connect() as connection:
            return query(connection.execution_options(**level))

    def _query(self, query: Callable[[Connection], Any]) -> Any:
        with ledger_failures(), self._engine.connect() as connection:
            return query(connection)


@asynccontextmanager
async def _patience() -> AsyncIterator[None]:
    """Give up on a silent database: LedgerUnavailable."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
    except TimeoutError:
        raise silent_database() from None
