"""What PostgreSQL's planner knows of the entries while one transaction stores many of them.

Before the first count it takes a checkpoint for a few rows and reads all of them for each look-up
by id, so that a bulk load takes time in the square of its size. Its manual ("Populating a
Database") asks for ANALYZE behind a load; a transaction as long as ours needs it in between.
"""

from sqlalchemy import Connection, text

# Where another session counts already, the load goes on as it is.
COUNT = text("ANALYZE (SKIP_LOCKED) entries")
# -1 where it was never counted.
COUNTED = text("SELECT reltuples FROM pg_class WHERE oid = CAST('entries' AS regclass)")


def count_if_doubled(connection: Connection, added: int) -> bool:
    """Count anew where `added` rows are at least as many as the last count found.

    So the counting costs no more than the load itself. Returns whether it was asked for; on SQLite,
    which looks ids up by the primary key without any count, never.
    """
    if connection.dialect.name != "postgresql":
        return False
    if added < connection.execute(COUNTED).scalar_one():
        return False
    connection.execute(COUNT)
    return True
