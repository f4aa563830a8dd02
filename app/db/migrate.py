"""Bring the schema to the version that this code needs, and tell whether it is there."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

MIGRATIONS = Path(__file__).parents[2] / "migrations"


def configuration() -> Config:
    """Return Alembic's configuration; it needs no file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def migrate(engine: Engine) -> None:
    """Run the migrations that are missing; a newer schema than ours is left alone."""
    config = configuration()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_current(connection: Connection) -> bool:
    """Tell whether the schema is at our newest migration."""
    head = ScriptDirectory.from_config(configuration()).get_current_head()
    return MigrationContext.configure(connection).get_current_revision() == head
