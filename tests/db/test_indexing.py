"""The queue of entries for the archive, as replicas on one database claim from it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select, update

from app.db import indexing
from app.db.indexing import Claimed, Settled
from app.db.migrate import migrate
from app.db.tables import checkpoints, entries, nodes
from app.lineage.entry import Collection

NOW = 1_000_000
LEASE = 500
FIRST, SECOND = "replica-1", "replica-2"
CHECKPOINT = {
    "id": "exp",
    "incarnation": "1",
    "metadata": "{}",
    "created_us": 1,
    "changes": 1,
    "last_entry_us": 1,
    "generation": 0,
    "model": "a model",
    "dimensions": 2,
    "index_epoch": 1,
    "core_version": 0,
}
NODE = {
    "checkpoint_id": "exp",
    "name": "root",
    "depth": 0,
    "seq": 1,
    "metadata": "{}",
    "created_us": 1,
    "token_epoch": 0,
}


def entry(number: int, **values: Any) -> dict[str, Any]:
    return {
        "checkpoint_id": "exp",
        "id": f"e{number:03}",
        "collection": Collection.NODE_SCOPE.value,
        "node": "root",
        "text": f"entry {number}",
        "metadata": "{}",
        "created_us": number,
        "seq": number,
        "change": number,
        "sha256": bytes(32),
        "index_epoch": 0,
        "refused": None,
        "retry_us": None,
        "tries": 0,
        **values,
    }


REFUSED = {"index_epoch": 1, "refused": "too long", "tries": 1}


class Queue:
    """A checkpoint's entries and what replicas do with them, each in a transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fill(self, rows: Sequence[dict[str, Any]]) -> None:
        with self._engine.begin() as connection:
            connection.execute(insert(entries), list(rows))

    def claim(
        self, replica: str = FIRST, *, at: int = NOW, limit: int = 100, epoch: int = 1
    ) -> list[Claimed]:
        with self._engine.begin() as connection:
            return indexing.claim(
                connection,
                "exp",
                index_epoch=epoch,
                limit=limit,
                by=replica,
                at_us=at,
                until_us=at + LEASE,
            )

    def claimed_ids(self, replica: str = FIRST, **how: Any) -> list[str]:
        return [item.entry.id for item in self.claim(replica, **how)]

    def release(self, ids: Sequence[str], *, replica: str = FIRST, maybe_there: bool) -> None:
        with self._engine.begin() as connection:
            indexing.release(connection, "exp", ids, by=replica, maybe_there=maybe_there)

    def defer(self, ids: Sequence[str], *, replica: str = FIRST, retry: int) -> None:
        with self._engine.begin() as connection:
            indexing.defer(connection, "exp", ids, by=replica, retry_us=retry)

    def settle(self, *settled: Settled) -> None:
        with self._engine.begin() as connection:
            indexing.settle(connection, "exp", settled, index_epoch=1, first_change=100)

    def release_all(self) -> None:
        with self._engine.begin() as connection:
            indexing.release_all(connection)

    def has_work(self, *, at: int = NOW, model: str = "a model", dimensions: int = 2) -> bool:
        with self._engine.connect() as connection:
            found = indexing.checkpoints_with_work(
                connection, model=model, dimensions=dimensions, at_us=at
            )
            return [checkpoint.id for checkpoint in found] == ["exp"]

    def row(self, entry_id: str) -> dict[str, Any]:
        with self._engine.connect() as connection:
            query = select(entries).where(entries.c.id == entry_id)
            return dict(connection.execute(query).mappings().one())


@pytest.fixture
def queue(engine: Engine) -> Queue:
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(insert(checkpoints).values(CHECKPOINT))
        connection.execute(insert(nodes).values(NODE))
    return Queue(engine)


def test_entries_are_claimed_oldest_first(queue: Queue) -> None:
    queue.fill([entry(3), entry(1), entry(2)])

    assert queue.claimed_ids(limit=2) == ["e001", "e002"]


def test_a_claimed_entry_is_nobody_elses(queue: Queue) -> None:
    queue.fill([entry(1), entry(2)])
    queue.claim(FIRST, limit=1)

    assert queue.claimed_ids(SECOND) == ["e002"]


# SQLite has one writer, whose transactions come one after the other.
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_replicas_that_claim_at_once_never_claim_one_entry_twice(queue: Queue) -> None:
    queue.fill([entry(number) for number in range(60)])
    both = Barrier(2)

    def claim_some(replica: str) -> list[str]:
        mine = []
        both.wait()
        while found := queue.claimed_ids(replica, limit=3):
            mine += found
        return mine

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(claim_some, [FIRST, SECOND])

    # Of rows that the other one is claiming at that moment, a replica sees none: they are no loss.
    left = queue.claimed_ids(limit=60)
    assert sorted(first + second + left) == [f"e{number:03}" for number in range(60)]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_claim_does_not_wait_for_one_that_is_not_committed_yet(
    engine: Engine, queue: Queue
) -> None:
    queue.fill([entry(1), entry(2)])

    with engine.begin() as connection:
        indexing.claim(
            connection,
            "exp",
            index_epoch=1,
            limit=1,
            by=FIRST,
            at_us=NOW,
            until_us=NOW + LEASE,
        )
        assert queue.claimed_ids(SECOND) == ["e002"]


def test_a_new_entry_is_surely_not_in_the_archive(queue: Queue) -> None:
    queue.fill([entry(1)])

    assert [item.maybe_there for item in queue.claim()] == [False]


def test_an_expired_claim_is_taken_over_with_a_warning_that_the_archive_may_have_it(
    queue: Queue,
) -> None:
    queue.fill([entry(1)])
    queue.claim(FIRST)

    assert queue.claim(SECOND, at=NOW + LEASE - 1) == []
    [taken_over] = queue.claim(SECOND, at=NOW + LEASE)

    assert taken_over.entry.id == "e001"
    assert taken_over.maybe_there


def test_a_claim_released_unsent_says_that_the_archive_has_it_not(queue: Queue) -> None:
    queue.fill([entry(1)])
    queue.claim(FIRST)
    queue.release(["e001"], maybe_there=False)

    assert [item.maybe_there for item in queue.claim(SECOND)] == [False]


def test_a_claim_released_after_a_lost_answer_says_that_the_archive_may_have_it(
    queue: Queue,
) -> None:
    queue.fill([entry(1)])
    queue.claim(FIRST)
    queue.release(["e001"], maybe_there=True)

    assert [item.maybe_there for item in queue.claim(SECOND)] == [True]


def test_a_replica_releases_no_claim_but_its_own(queue: Queue) -> None:
    queue.fill([entry(1)])
    queue.claim(FIRST)
    queue.claim(SECOND, at=NOW + LEASE)

    queue.release(["e001"], replica=FIRST, maybe_there=False)

    assert queue.claim("replica-3", at=NOW + LEASE) == []


def test_all_claims_of_a_former_process_end_with_the_warning_kept(queue: Queue) -> None:
    queue.fill([entry(1), entry(2)])
    queue.claim(FIRST)

    queue.release_all()

    assert [item.maybe_there for item in queue.claim(SECOND)] == [True, True]


def test_a_batch_is_of_one_collection(queue: Queue) -> None:
    trace = Collection.REACT_STEP.value
    queue.fill([entry(1), entry(2, collection=trace), entry(3), entry(4, collection=trace)])

    assert queue.claimed_ids() == ["e001", "e003"]
    assert queue.claimed_ids() == ["e002", "e004"]


def test_a_refused_entry_comes_when_it_is_due_and_not_before(queue: Queue) -> None:
    queue.fill([entry(1, **REFUSED, retry_us=NOW + 10)])

    assert queue.claim(at=NOW + 9) == []
    assert queue.claimed_ids(at=NOW + 10) == ["e001"]


def test_refused_entries_come_one_at_a_time(queue: Queue) -> None:
    queue.fill([entry(number, **REFUSED, retry_us=NOW) for number in (1, 2)])

    assert queue.claimed_ids() == ["e001"]
    assert queue.claimed_ids() == ["e002"]


def test_refused_entries_hold_back_no_pending_one(queue: Queue) -> None:
    queue.fill([entry(1, **REFUSED, retry_us=NOW), entry(2)])

    assert queue.claimed_ids() == ["e002"]
    assert queue.claimed_ids() == ["e001"]


def test_a_refused_entry_tells_how_often_it_was_tried(queue: Queue) -> None:
    queue.fill([entry(1, **REFUSED | {"tries": 4}, retry_us=NOW)])

    assert [item.tries for item in queue.claim()] == [4]


def test_a_deferred_entry_waits_and_counts_the_try(queue: Queue) -> None:
    queue.fill([entry(1), entry(2)])
    queue.claim(FIRST, limit=1)
    queue.defer(["e001"], retry=NOW + 20)

    assert queue.claimed_ids(SECOND, at=NOW + 19) == ["e002"]
    [again] = queue.claim(SECOND, at=NOW + 20)

    assert (again.entry.id, again.maybe_there, again.tries) == ("e001", True, 1)


def test_a_replica_defers_no_claim_but_its_own(queue: Queue) -> None:
    queue.fill([entry(1)])
    queue.claim(FIRST)
    queue.claim(SECOND, at=NOW + LEASE)

    queue.defer(["e001"], replica=FIRST, retry=NOW)

    assert queue.row("e001")["claimed_by"] == SECOND
    assert queue.row("e001")["claimed_until_us"] == NOW + 2 * LEASE


def test_an_entry_of_the_present_index_is_not_claimed_again(queue: Queue) -> None:
    queue.fill([entry(1, index_epoch=1), entry(2, index_epoch=2)])

    assert queue.claim() == []


def test_a_reindex_makes_every_entry_pending_refused_and_deferred_ones_at_once(
    engine: Engine, queue: Queue
) -> None:
    queue.fill(
        [
            entry(1, index_epoch=1),
            entry(2, **REFUSED, retry_us=NOW + 10**9),
            entry(3, retry_us=NOW + 10**9, tries=9),
        ]
    )

    with engine.begin() as connection:
        indexing.begin_reindex(connection, "exp", model="another", dimensions=3)

    claimed = queue.claim(epoch=2)
    assert [(item.entry.id, item.tries) for item in claimed] == [
        ("e001", 0),
        ("e002", 0),
        ("e003", 0),
    ]
    assert all(item.entry.pending for item in claimed)


def test_a_settled_entry_is_claimed_by_nobody_and_has_no_tries(queue: Queue) -> None:
    queue.fill([entry(1, tries=3, retry_us=NOW)])
    queue.claim()

    queue.settle(Settled("e001", None, "passage-1", None, None, 0))

    row = queue.row("e001")
    assert (row["index_epoch"], row["change"], row["passage_id"]) == (1, 100, "passage-1")
    assert (row["claimed_by"], row["claimed_until_us"], row["tries"]) == (None, None, 0)
    assert queue.claim(at=NOW + 10 * LEASE) == []


def test_a_checkpoint_has_work_while_an_entry_may_be_claimed(queue: Queue) -> None:
    assert not queue.has_work()
    queue.fill([entry(1)])
    assert queue.has_work()

    queue.claim()

    assert not queue.has_work()
    assert queue.has_work(at=NOW + LEASE)


def test_a_checkpoint_has_work_once_a_refused_entry_is_due(queue: Queue) -> None:
    queue.fill([entry(1, **REFUSED, retry_us=NOW + 10)])

    assert not queue.has_work(at=NOW + 9)
    assert queue.has_work(at=NOW + 10)


@pytest.mark.parametrize(("model", "dimensions"), [("another", 2), ("a model", 3)])
def test_a_checkpoint_of_another_model_has_no_work(
    queue: Queue, model: str, dimensions: int
) -> None:
    queue.fill([entry(1)])

    assert not queue.has_work(model=model, dimensions=dimensions)


def test_a_checkpoint_without_a_model_yet_is_indexed_with_any(engine: Engine, queue: Queue) -> None:
    queue.fill([entry(1)])
    with engine.begin() as connection:
        connection.execute(update(checkpoints).values(model=None, dimensions=None))

    assert queue.has_work(model="another", dimensions=3)
