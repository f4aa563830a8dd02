"""The migrations make what the code expects, on real databases."""

from functools import partial
from typing import Any

import httpx
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, insert, inspect, select

from app.db.migrate import configuration, is_current, migrate
from app.db.tables import checkpoints, metadata, nodes
from tests.conftest import NewStorage, StartLive
from tests.support.wait import wait_until

CHECKPOINT = {
    "id": "kept",
    "incarnation": "1",
    "path": "/mnt/kept",
    "metadata": '{"b":1,"a":2}',
    "created_us": 1,
    "changes": 1,
    "last_entry_us": 1,
    "generation": 0,
    "index_epoch": 1,
    "core_version": 0,
}
NODE = {
    "checkpoint_id": "kept",
    "name": "root",
    "depth": 0,
    "seq": 1,
    "metadata": "{}",
    "created_us": 1,
    "token_epoch": 0,
}


def differences(connection: Connection) -> Any:
    """Return what a new migration would still have to do."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return compare_metadata(context, metadata)


def alembic_on(connection: Connection) -> Config:
    config = configuration()
    config.attributes["connection"] = connection
    return config


def test_the_migrations_are_one_line_with_one_head_and_one_base() -> None:
    scripts = ScriptDirectory.from_config(configuration())

    assert len(scripts.get_heads()) == 1
    assert len(scripts.get_bases()) == 1


def test_migrating_makes_exactly_the_tables_of_the_code(engine: Engine) -> None:
    migrate(engine)

    with engine.connect() as connection:
        assert is_current(connection)
        assert differences(connection) == []


def test_one_step_down_and_up_again_ends_at_the_same_schema(engine: Engine) -> None:
    migrate(engine)

    with engine.connect() as connection:
        command.downgrade(alembic_on(connection), "-1")
        assert differences(connection) != []
        connection.rollback()
        command.upgrade(alembic_on(connection), "head")
        assert differences(connection) == []


def test_all_the_way_down_leaves_no_table_of_ours(engine: Engine) -> None:
    migrate(engine)

    with engine.connect() as connection:
        command.downgrade(alembic_on(connection), "base")
        assert set(inspect(connection).get_table_names()) == {"alembic_version"}


def test_migrating_a_database_in_use_keeps_its_rows(engine: Engine) -> None:
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(insert(checkpoints).values(CHECKPOINT))
        connection.execute(insert(nodes).values(NODE))

    migrate(engine)

    with engine.connect() as connection:
        kept = connection.execute(select(checkpoints)).mappings().one()
        assert {name: kept[name] for name in CHECKPOINT} == CHECKPOINT
        kept = connection.execute(select(nodes)).mappings().one()
        assert {name: kept[name] for name in NODE} == NODE


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_replicas_that_start_together_on_an_empty_database_all_become_ready(
    new_storage: NewStorage, start_live: StartLive
) -> None:
    storage = new_storage()
    replicas = [start_live(storage=storage, until=None) for _ in range(3)]

    for replica in replicas:
        ready = partial(becomes_ready, replica.base_url)
        wait_until(ready, describe=partial(getattr, replica, "log"))


def becomes_ready(base_url: str) -> bool:
    try:
        return httpx.get(f"{base_url}/readyz").is_success
    except httpx.TransportError:  # it does not listen yet
        return False
