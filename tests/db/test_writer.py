"""The writer thread on real databases: shared commits, refusals, roll-backs, instants, the log."""

import asyncio
import threading
from collections.abc import Sequence
from itertools import pairwise

import pytest
from sqlalchemy import Engine, event, func, select

from app.db import append, checkpoints, nodes
from app.db.append import Append, PreparedEntry
from app.db.ledger import Ledger
from app.db.tables import access_log, entries
from app.db.transaction import Transaction
from app.lineage.entry import Collection, Draft
from app.lineage.errors import LedgerUnavailable, LineageError, NodeConflict, UnknownNode
from app.lineage.guard import Claim
from app.lineage.ids import NodeId
from app.memory.write_entries import new_entry_id
from tests.db.conftest import Losses
from tests.db.faults import refuse_inserts, take_inserts_again

NODE = NodeId("exp", "root")


async def plant(ledger: Ledger) -> None:
    """Make the checkpoint and the node that is written to."""

    def work(tx: Transaction) -> None:
        checkpoints.create(
            tx.connection, NODE.checkpoint, derived=False, path=None, name=None, metadata="{}"
        )
        nodes.create(tx.connection, NODE, parent=None, eval_summary=None, metadata="{}")

    await ledger.write(work)


def append_of(*texts: str, node: NodeId = NODE) -> Append:
    drafts = [Draft(text, {}) for text in texts]
    return Append(
        checkpoint=node.checkpoint,
        collection=Collection.NODE_SCOPE,
        node=node,
        claim=Claim(str(node)),
        entries=tuple(PreparedEntry.of(new_entry_id(), draft, "{}") for draft in drafts),
        vectors=None,
        model="none",
    )


async def append_together(
    ledger: Ledger, appends: Sequence[Append]
) -> list[append.Appended | LineageError]:
    """Hand the appends over in one turn of the loop, which makes one group of them."""
    outcomes = await asyncio.gather(*map(ledger.append, appends), return_exceptions=True)
    assert all(isinstance(outcome, append.Appended | LineageError) for outcome in outcomes)
    return outcomes  # type: ignore[return-value]  # as just asserted


async def stored_texts(ledger: Ledger) -> list[str]:
    query = select(entries.c.text).order_by(entries.c.created_us)
    return list(await ledger.read(lambda connection: connection.execute(query).scalars().all()))


async def logged(ledger: Ledger) -> int:
    query = select(func.count()).select_from(access_log)
    return int(await ledger.read(lambda connection: connection.execute(query).scalar_one()))


@pytest.fixture
def commits(ledger: Ledger) -> list[object]:
    """Every commit of the ledger's engine from now on."""
    seen: list[object] = []
    event.listen(ledger._engine, "commit", seen.append)
    return seen


async def test_appends_that_come_together_share_one_commit_in_their_order(
    ledger: Ledger, commits: list[object]
) -> None:
    await plant(ledger)
    commits.clear()

    await append_together(ledger, [append_of(f"text {number}") for number in range(50)])

    assert len(commits) == 1
    assert await stored_texts(ledger) == [f"text {number}" for number in range(50)]


async def test_an_append_against_the_rules_spoils_none_of_its_group(ledger: Ledger) -> None:
    await plant(ledger)
    nowhere = NodeId(NODE.checkpoint, "nowhere")

    outcomes = await append_together(
        ledger, [append_of("before"), append_of("lost", node=nowhere), append_of("after")]
    )

    assert isinstance(outcomes[1], UnknownNode)
    assert await stored_texts(ledger) == ["before", "after"]


async def test_an_append_that_the_database_refuses_spoils_none_of_its_group(
    ledger: Ledger, engine: Engine
) -> None:
    await plant(ledger)
    refuse_inserts(engine, "entries", condition="NEW.text = 'refused'")

    outcomes = await append_together(
        ledger, [append_of("before"), append_of("half", "refused"), append_of("after")]
    )

    assert isinstance(outcomes[1], LedgerUnavailable)
    assert [type(outcomes[0]), type(outcomes[2])] == [append.Appended] * 2
    assert await stored_texts(ledger) == ["before", "after"]


async def test_a_job_that_fails_leaves_nothing_behind(ledger: Ledger) -> None:
    await plant(ledger)

    def half(tx: Transaction) -> None:
        nodes.create(
            tx.connection,
            NodeId(NODE.checkpoint, "half"),
            parent=None,
            eval_summary=None,
            metadata="{}",
        )
        raise NodeConflict("half", None)

    with pytest.raises(NodeConflict):
        await ledger.write(half)

    found = await ledger.read(
        lambda connection: nodes.find(connection, NodeId(NODE.checkpoint, "half"))
    )
    assert found is None


async def test_entries_are_in_order_although_the_clock_steps_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant(ledger)
    instants = iter([5_000_000, 4_000_000, 5_000_000, 3_000_000, 6_000_000, 1_000_000])
    monkeypatch.setattr(append, "now_us", lambda: next(instants))

    written = [await ledger.append(append_of("first", "second", "third"))]
    written.append(await ledger.append(append_of("fourth", "fifth", "sixth")))

    times = [
        entry.created_at
        for added in written
        if isinstance(added, append.Appended)
        for entry in added.entries
    ]
    assert len(times) == 6
    assert all(earlier < later for earlier, later in pairwise(times))
    assert await stored_texts(ledger) == ["first", "second", "third", "fourth", "fifth", "sixth"]


async def test_a_log_that_cannot_be_written_costs_its_records_and_no_write(
    ledger: Ledger, engine: Engine, losses: Losses
) -> None:
    await plant(ledger)
    refuse_inserts(engine, "access_log")

    await append_together(ledger, [append_of("one"), append_of("two")])
    assert await stored_texts(ledger) == ["one", "two"]
    assert losses.counts == [2]
    assert await logged(ledger) == 0

    take_inserts_again(engine, "access_log")
    await ledger.append(append_of("three"))
    assert losses.counts == [2]
    assert await logged(ledger) == 1


async def test_a_log_that_is_gone_costs_its_records_and_no_write(
    ledger: Ledger, engine: Engine, losses: Losses
) -> None:
    await plant(ledger)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE access_log RENAME TO mislaid")

    await ledger.append(append_of("one"))

    assert await stored_texts(ledger) == ["one"]
    assert losses.counts == [1]


async def test_what_was_given_up_before_it_began_is_not_done_later(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant(ledger)
    monkeypatch.setattr("app.db.writer.PATIENCE_S", 0.01)
    began, may_end = threading.Event(), threading.Event()
    done: list[str] = []

    def take_long(_: Transaction) -> None:
        began.set()
        may_end.wait(30)

    long = asyncio.create_task(ledger.write(take_long, patience_s=60))
    try:
        assert await asyncio.to_thread(began.wait, 30)
        with pytest.raises(LedgerUnavailable):
            await ledger.write(lambda _: done.append("late"), patience_s=0.01)
        with pytest.raises(LedgerUnavailable):
            await ledger.append(append_of("late"))
    finally:
        may_end.set()
    await long
    await ledger.write(lambda _: done.append("after"))

    assert (done, await stored_texts(ledger)) == (["after"], [])
