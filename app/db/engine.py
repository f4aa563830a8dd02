"""Engines for SQLite and PostgreSQL, and the lock that makes this process SQLite's only writer."""

import fcntl
import os
import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine, ExceptionContext, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import QueuePool

BUSY_TIMEOUT_MS = 5_000
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_MS = 30_000
# As SQLite and PostgreSQL say it.
READ_ONLY_SIGNS = ("readonly database", "read-only transaction")


class AlreadyServed(Exception):
    """Another process serves this SQLite file."""


def open_engine(url: str, *, connections: int) -> Engine:
    """Return an engine for a sqlite: or postgresql+psycopg: URL; nothing is connected yet."""
    target = make_url(url)
    open_one = _sqlite if is_sqlite(target) else _postgresql
    engine = open_one(target, connections)
    event.listen(engine, "handle_error", _drop_read_only)
    return engine


def _postgresql(url: URL, connections: int) -> Engine:
    return create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            # A server that vanished without a word is noticed within about ten seconds.
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout=10000",
        },
    )


def is_sqlite(url: str | URL) -> bool:
    """Tell whether the URL names a SQLite file, of which this process is the only writer."""
    return make_url(url).get_backend_name() == "sqlite"


def sqlite_file(url: str) -> Path | None:
    """Return the database file of a sqlite: URL, None for another database."""
    target = make_url(url)
    return Path(target.database) if is_sqlite(target) and target.database else None


def _sqlite(url: URL, connections: int) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        # Connections wander between the reader threads, one at a time.
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        # SQLAlchemy says BEGIN below; the driver's own implicit one would come too late for reads.
        connection.isolation_level = None
        for pragma in (
            "journal_mode = WAL",
            # An answered write is on the disk: NORMAL would lose the last commits with the power.
            "synchronous = FULL",
            "foreign_keys = ON",
            # 512 KiB of pages a connection, not 2 MB: hot rows are in the cache of blocks, and the
            # system caches the file.
            "cache_size = -512",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        mode = "IMMEDIATE" if connection.get_execution_options().get("writes") else "DEFERRED"
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def _drop_read_only(context: ExceptionContext) -> None:
    """Open anew after a refusal to write: a connection opened read-only stays so for good."""
    said = str(context.original_exception).lower()
    if any(sign in said for sign in READ_ONLY_SIGNS):
        context.is_disconnect = True


class SingleWriter(AbstractContextManager["SingleWriter"]):
    """Holds a lock file beside a SQLite database for as long as this process serves it.

    The cache of rows is the truth only while nobody else writes the file. The lock is the
    kernel's, so a killed process leaves none behind.
    """

    def __init__(self, database: Path) -> None:
        # By its true name: two links to one file are one database.
        self._database = database.resolve()
        self._path = self._database.with_name(f"{self._database.name}.lock")
        self._file: int | None = None

    def __enter__(self) -> Self:
        """Take the lock; AlreadyServed where another process has it, or might by another name."""
        if self._database.exists() and self._database.stat().st_nlink > 1:
            raise AlreadyServed(
                f"{self._database} has a second name (a hard link), under which another "
                "letta-lineage could serve it. Copy it instead."
            )
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            self._file = None
            raise AlreadyServed(
                f"{self._path} is locked: another letta-lineage serves this SQLite database. "
                "Stop it, choose another LINEAGE_DATA_DIR, or use PostgreSQL for several replicas."
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
