"""The database's own failures, turned into one of ours without a word of SQL, path or host."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.lineage.errors import LedgerUnavailable

# No job takes as long: a database that is silent for so long is away, whatever its sockets say.
PATIENCE_S = 15.0

# What the drivers say, and what it means to the person who has to mend it.
MEANINGS = (
    ("disk is full", "the disk is full"),
    ("disk i/o error", "the disk cannot be written"),
    ("readonly database", "the database is read-only"),
    ("read-only transaction", "the database is read-only"),
    ("unable to open database", "the database file cannot be opened"),
    ("no such table", "the schema is not the one this version needs"),
    ("no such column", "the schema is not the one this version needs"),
    ("does not exist", "the schema is not the one this version needs"),
    ("no space left", "the disk is full"),
    ("database is locked", "another process holds the database"),
    ("authentication failed", "the database refuses the credentials"),
)


def unavailable(error: DBAPIError | PoolTimeout) -> LedgerUnavailable:
    """Return the error for the caller; the driver's own words stay in the cause."""
    said = str(getattr(error, "orig", None) or error).lower()
    reason = next(
        (meaning for sign, meaning in MEANINGS if sign in said), "the database cannot be reached"
    )
    failure = LedgerUnavailable(reason)
    failure.__cause__ = error
    return failure


def silent_database() -> LedgerUnavailable:
    """Return the error for a database that said nothing for PATIENCE_S."""
    return LedgerUnavailable("the database does not answer in time")


@contextmanager
def ledger_failures() -> Iterator[None]:
    """Turn a failure of the database into LedgerUnavailable; a broken constraint stays a bug."""
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeout) as error:
        raise unavailable(error) from error
