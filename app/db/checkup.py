"""The database looked at, and brought up, by a process that does not serve it."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from app.db.engine import SingleWriter, open_engine, sqlite_file
from app.db.failures import ledger_failures
from app.db.migrate import migrate, revision, revisions
from app.db.probe import probe
from app.db.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Schema:
    """Which migration a database is at (None where it is empty), and which this version needs."""

    at: str | None
    needed: str

    @property
    def is_newer(self) -> bool:
        """True where a later version than this one has migrated it."""
        return self.at is not None and self.at not in revisions()


def look_at_database(url: str) -> Schema:
    """Write into the database, take it back, and tell its schema.

    LedgerUnavailable where it is away, read-only or full. A SQLite file that is not there is an
    empty database, and stays away; one that a service has open may be looked at.
    """
    file = sqlite_file(url)
    if file is not None and not file.exists():
        return Schema(None, revisions()[0])
    engine = open_engine(url, connections=1).execution_options(writes=True)
    try:
        with ledger_failures(), engine.connect() as connection:
            return _probed(connection)
    finally:
        engine.dispose()


def upgrade_database(url: str) -> Schema:
    """Run the migrations that are missing; return the schema as it was.

    LedgerUnavailable where that cannot be done, AlreadyServed where a service has the SQLite file.
    """
    with ExitStack() as held:
        if (file := sqlite_file(url)) is not None:
            held.enter_context(SingleWriter(file))
        before = look_at_database(url)
        engine = open_engine(url, connections=1)
        held.callback(engine.dispose)
        with ledger_failures():
            migrate(engine)
        return before


def database_folder(url: str) -> Path | None:
    """Return the folder of a SQLite file, None for a database on a server."""
    file = sqlite_file(url)
    return None if file is None else file.parent


def _probed(connection: Connection) -> Schema:
    schema = Schema(revision(connection), revisions()[0])
    if schema.at == schema.needed:
        probe(Transaction(connection))
    connection.rollback()
    return schema
