"""Bring the schema to the version that this code needs, and tell whether it is there."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from app.lineage.errors import LedgerUnavailable

MIGRATIONS = Path(__file__).parents[2] / "migrations"
# Alembic's own table, read here without its machinery.
VERSION = "SELECT version_num FROM alembic_version"


def configuration() -> Config:
    """Return Alembic's configuration; it needs no file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def migrate(engine: Engine) -> None:
    """Run the migrations that are missing; LedgerUnavailable for a schema newer than ours."""
    config = configuration()
    with engine.connect() as connection:
        if revision(connection) not in {None, *revisions()}:
            raise LedgerUnavailable("the schema is newer than this version: upgrade the service")
        connection.rollback()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def check_current(connection: Connection) -> None:
    """Refuse a schema that is not at our newest migration: LedgerUnavailable.

    Asked before every commit, so by the driver itself: SQLAlchemy's own way costs 0.1 ms.
    """
    if connection.exec_driver_sql(VERSION).scalar() != revisions()[0]:
        raise LedgerUnavailable("the schema is not the one this version needs: migrate it")


def revision(connection: Connection) -> str | None:
    """Return which of the migrations the schema is at; None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    at: str | None = connection.exec_driver_sql(VERSION).scalar()
    return at


@cache
def revisions() -> tuple[str, ...]:
    """Return our revisions, newest first."""
    scripts = ScriptDirectory.from_config(configuration())
    return tuple(script.revision for script in scripts.walk_revisions())
