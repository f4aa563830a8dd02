"""INSERT with ON CONFLICT, which each database has in a dialect of its own."""

from typing import TypeAlias

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

Upsert: TypeAlias = sqlite.Insert | postgresql.Insert


def upsert(connection: Connection, table: Table) -> Upsert:
    """Return an INSERT into a table that takes `on_conflict_do_nothing` and `..._do_update`."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)
