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
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    select,
)

from app.db.migrate import check_current, configuration, migrate
from app.db.tables import checkpoints, core_blocks, entries, metadata, nodes
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


def reflected(connection: Connection) -> MetaData:
    """Return the tables as the database has them now, but for Alembic's own."""
    found = MetaData()
    found.reflect(connection, only=lambda name, _: name != "alembic_version")
    return found


def fill(connection: Connection, table: Table) -> dict[str, Any]:
    """Insert a row with a value in every column, and return it."""
    row = {column.name: value_for(column) for column in table.columns}
    connection.execute(insert(table).values(row))
    return row


def value_for(column: Column[Any]) -> Any:
    """Return one value for each name, so that keys of different tables fit each other."""
    if column.name in {"checkpoint_id", "id"} and isinstance(column.type, Text):
        return "kept"
    if column.name in {"node", "name", "parent"}:
        return "root"
    if isinstance(column.type, LargeBinary):
        return bytes(range(32))
    if isinstance(column.type, Boolean):
        return True
    return 7 if isinstance(column.type, Integer) else f"of {column.name}: é, 日本語"


def test_the_migrations_are_one_line_with_one_head_and_one_base() -> None:
    scripts = ScriptDirectory.from_config(configuration())

    assert len(scripts.get_heads()) == 1
    assert len(scripts.get_bases()) == 1


def test_migrating_makes_exactly_the_tables_of_the_code(engine: Engine) -> None:
    migrate(engine)

    with engine.connect() as connection:
        check_current(connection)
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


def test_each_table_of_the_first_schema_keeps_its_rows_up_to_the_head(engine: Engine) -> None:
    with engine.connect() as connection:
        command.upgrade(alembic_on(connection), "0001")
        first = reflected(connection)
        rows = {table.name: fill(connection, table) for table in first.sorted_tables}
        connection.commit()

    migrate(engine)

    with engine.connect() as connection:
        for table in first.sorted_tables:
            kept = connection.execute(select(table)).mappings().all()
            assert [dict(row) for row in kept] == [rows[table.name]], table.name


def test_an_entry_of_the_first_schema_is_claimed_by_nobody_and_was_never_tried(
    engine: Engine,
) -> None:
    with engine.connect() as connection:
        command.upgrade(alembic_on(connection), "0001")
        for table in reflected(connection).sorted_tables:
            fill(connection, table)
        connection.commit()

    migrate(engine)

    with engine.connect() as connection:
        row = connection.execute(select(entries)).mappings().one()
    new = ("passage_id", "claimed_by", "claimed_until_us", "retry_us", "tries")
    assert {name: row[name] for name in new} == dict.fromkeys(new[:-1]) | {"tries": 0}


def test_an_entry_and_a_block_of_the_second_schema_count_and_are_of_the_stored_version(
    engine: Engine,
) -> None:
    with engine.connect() as connection:
        command.upgrade(alembic_on(connection), "0002")
        rows = {
            table.name: fill(connection, table) for table in reflected(connection).sorted_tables
        }
        connection.commit()

    migrate(engine)

    with engine.connect() as connection:
        assert connection.execute(select(entries.c.superseded_by)).scalars().all() == [None]
        versions = connection.execute(select(core_blocks.c.version)).scalars().all()
    assert versions == [rows["checkpoints"]["core_version"]]


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
