"""A look-up by id costs what it asks for, in the middle of a large load."""

import datetime as dt
import hashlib
import itertools
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, select

from app.db import snapshots as rows
from app.db.migrate import migrate
from app.db.snapshots import Loader
from app.db.tables import entries
from app.lineage.entry import Collection
from app.lineage.snapshot import SnapshotEntry
from tests.conftest import DatabaseKind

PRIMARY_KEY = {"sqlite": "sqlite_autoindex_entries", "postgresql": "pk_entries"}
EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}


def steps(count: int) -> Iterator[tuple[int, SnapshotEntry]]:
    """Yield steps of the trace with the lines on which they stand."""
    for number in range(count):
        said = f"step {number}"
        yield (
            number,
            SnapshotEntry(
                collection=Collection.REACT_STEP,
                id=f"step-{number}",
                node=None,
                text=said,
                metadata_json="{}",
                created_at=dt.datetime.fromtimestamp(1_700_000_000 + number, dt.UTC),
                sha256=hashlib.sha256(said.encode()).digest(),
            ),
        )


@pytest.fixture
def loader(engine: Engine) -> Iterator[Loader]:
    """A loader of a new checkpoint, in a transaction that nobody else has seen anything of."""
    migrate(engine)
    with engine.begin() as connection:
        row = rows.revive(connection, "exp", name=None, metadata="{}")
        yield rows.loader(connection, row, new_id=lambda: "new", rename_conflicts=False)


def plan_of_ids(connection: Connection, database: DatabaseKind, count: int) -> str:
    """Return how the database would look up so many entries of the checkpoint by their ids."""
    wanted = [f"step-{number}" for number in range(count)]
    query = select(entries.c.text).where(entries.c.checkpoint_id == "exp", entries.c.id.in_(wanted))
    statement = query.compile(connection, compile_kwargs={"literal_binds": True})
    told = connection.exec_driver_sql(f"{EXPLAIN[database]} {statement}")
    return "\n".join(str(line) for line in told)


def test_ids_are_looked_up_by_the_primary_key_after_much_was_loaded(
    loader: Loader, database: DatabaseKind
) -> None:
    to_come = steps(6_000)
    while chunk := list(itertools.islice(to_come, rows.CHUNK)):
        loader.load_entries(chunk)

    assert PRIMARY_KEY[database] in plan_of_ids(loader.connection, database, rows.CHUNK)
