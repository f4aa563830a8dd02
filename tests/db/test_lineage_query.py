"""Walking up a lineage costs what the lineage is long, whatever else the checkpoint holds."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, insert, text

from app.db import nodes as node_rows
from app.db.migrate import migrate
from app.db.nodes import SELECT_ANCESTORS
from app.db.tables import checkpoints, nodes
from app.lineage.ids import NodeId

DEPTH, SIBLINGS = 100, 1_000
DEEPEST = NodeId("deep", f"n{DEPTH}")


def node(name: str, *, parent: str | None, depth: int, seq: int) -> dict[str, Any]:
    return {
        "checkpoint_id": "deep",
        "name": name,
        "parent": parent,
        "depth": depth,
        "seq": seq,
        "metadata": "{}",
        "created_us": 1,
        "token_epoch": 0,
    }


@pytest.fixture
def deep(engine: Engine) -> Iterator[Connection]:
    """A chain from n0 to DEEPEST, and many more children of its root."""
    migrate(engine)
    chain = [
        node(f"n{depth}", parent=f"n{depth - 1}" if depth else None, depth=depth, seq=depth + 1)
        for depth in range(DEPTH + 1)
    ]
    others = [
        node(f"other{number}", parent="n0", depth=1, seq=DEPTH + 2 + number)
        for number in range(SIBLINGS)
    ]
    with engine.begin() as connection:
        connection.execute(
            insert(checkpoints).values(
                id="deep",
                incarnation="1",
                metadata="{}",
                created_us=1,
                changes=1,
                last_entry_us=1,
                generation=0,
                index_epoch=1,
                core_version=0,
            )
        )
        connection.execute(insert(nodes), chain + others)
        yield connection


def test_it_is_the_chain_of_parents_root_first(deep: Connection) -> None:
    found = node_rows.lineage(deep, DEEPEST)

    assert found.ancestors == tuple(f"n{depth}" for depth in range(DEPTH))
    assert node_rows.lineage(deep, NodeId("deep", "n0")).ancestors == ()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("analyzed", [False, True])
def test_no_other_nodes_are_read_on_the_way(deep: Connection, *, analyzed: bool) -> None:
    if analyzed:
        deep.execute(text("ANALYZE nodes"))
    query = SELECT_ANCESTORS.compile(deep)
    named = {**query.params, "checkpoint": DEEPEST.checkpoint, "name": DEEPEST.name}
    explained = deep.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", named).scalar_one()

    assert rows_read(explained[0]["Plan"]) <= DEPTH + 1


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_sqlite_looks_each_parent_up_by_its_key(deep: Connection) -> None:
    query = SELECT_ANCESTORS.compile(deep)
    named = {**query.params, "checkpoint": DEEPEST.checkpoint, "name": DEEPEST.name}
    values = tuple(named[name] for name in query.positiontup or ())
    plan = deep.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values)

    reads = [row.detail for row in plan if " nodes " in row.detail]
    assert len(reads) == 2
    assert all("checkpoint_id=? AND name=?" in read for read in reads)


def rows_read(plan: dict[str, Any]) -> float:
    """Count the rows of `nodes` that a plan looked at, those it dropped included."""
    here = 0.0
    if plan.get("Relation Name") == "nodes":
        here = plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    return here + sum(rows_read(part) for part in plan.get("Plans", ()))
