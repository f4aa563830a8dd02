"""Bring the schema to the version that this code needs, and tell whether it is there."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Select, Text, column, inspect, select, table

from app.lineage.errors import LedgerUnavailable

MIGRATIONS = Path(__file__).parents[2] / "migrations"
# Alembic's own table, read here without its machinery: readiness asks for it all the time.
VERSION: Select[str] = select(column("version_num", Text)).select_from(table("alembic_version"))


def configuration() -> Config:
    """Return Alembic's configuration; it needs no file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def migrate(engine: Engine) -> None:
    """Run the migrations that are missing; LedgerUnavailable for a schema newer than ours."""
    config = configuration()
    with engine.connect() as connection:
        if _revision(connection) not in {None, *_known()}:
            raise LedgerUnavailable("the schema is newer than this version: upgrade the service")
        connection.rollback()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_current(connection: Connection) -> bool:
    """Tell whether the schema is at our newest migration."""
    return connection.execute(VERSION).scalar() == _known()[0]


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(VERSION).scalar()


@cache
def _known() -> tuple[str, ...]:
    """Return our revisions, newest first."""
    scripts = ScriptDirectory.from_config(configuration())
    return tuple(script.revision for script in scripts.walk_revisions())
