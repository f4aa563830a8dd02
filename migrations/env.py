"""Run migrations on the connection that the caller hands over.

On PostgreSQL an advisory lock lets one replica migrate while the others wait, and a lock timeout
keeps a migration from queueing in front of everybody else's reads.
"""

from alembic import context
from sqlalchemy import Connection, text

from app.db.tables import metadata

ADVISORY_LOCK = 7_161_733_402
LOCK_TIMEOUT_MS = 15_000


def run(connection: Connection) -> None:
    """Migrate within one transaction."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        # SQLite has no ALTER worth the name: tables are copied there.
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        context.run_migrations()


run(context.config.attributes["connection"])
