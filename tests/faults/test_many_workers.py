"""Thirty-two workers at once on one service, with searches, new nodes and seals in between."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import httpx
import pytest

from tests.conftest import StartLive
from tests.support.client import Api, Json, answer, walk
from tests.support.service import LiveService
from tests.support.tree import Shape, Tree, grow_tree, unique_checkpoint

WORKERS = 32
NODES = 8
ROUNDS = 6
SEARCHES = 60
SEALED = ("n0", "n1")
"""The nodes that are sealed while their workers write."""

T = TypeVar("T")


@pytest.fixture
def live(start_live: StartLive, archive_environment: Json) -> LiveService:
    return start_live(**archive_environment)


@pytest.fixture
def tree(live: LiveService) -> Iterator[Tree]:
    """A root over nodes that four workers each write to."""
    with Api(live.base_url) as api:
        shape: Shape = {"root": {f"n{place}": {} for place in range(NODES)}}
        yield grow_tree(api, unique_checkpoint(), shape)


def all_at_once(live: LiveService, works: Sequence[Callable[[Api], T]]) -> list[T]:
    """Run each in a thread with a client of its own, begun together; return their results.

    No response of theirs may be a failure of the service.
    """
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[Api], T]) -> T:
        with Api(live.base_url) as api:
            api.http.event_hooks["response"].append(no_failure)
            barrier.wait()
            return work(api)

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


def no_failure(response: httpx.Response) -> None:
    response.read()
    assert response.status_code < 500, response.text


def write_all(api: Api, node: str, worker: int) -> list[Json]:
    """Write entries and batches as one of the node's workers; return what was acknowledged."""
    acknowledged: list[Json] = []
    for number in range(ROUNDS):
        text = f"worker {worker} writes {number}"
        batch = [{"text": f"{text}, part {part}", "metadata": {"by": worker}} for part in "abc"]
        for response in (
            api.write(node, text, metadata={"by": worker}),
            api.write_batch(node, batch),
        ):
            if response.is_success:
                acknowledged += response.json().get("items", [response.json()])
            else:
                assert response.json()["type"] == "/problems/node-sealed", response.text
    return acknowledged


def search_a_while(api: Api, tree: Tree) -> None:
    """Search one node only: no other's entries, and none twice, while all of them grow."""
    for _ in range(SEARCHES):
        found = answer(api.search(tree["n2"], "part b", limit=50, include_self=True))
        ids = [hit["entry_id"] for hit in found["results"]]
        assert len(set(ids)) == len(ids)
        assert {hit["node"] for hit in found["results"]} <= {tree["n2"]}


def grow_meanwhile(api: Api, tree: Tree) -> None:
    for number in range(WORKERS):
        answer(api.node(tree.checkpoint, f"late-{number}", node_of(number)))


def seal_meanwhile(api: Api, tree: Tree) -> None:
    for name in SEALED:
        answer(api.seal(tree[name]))
        assert api.write(tree[name], "too late").json()["type"] == "/problems/node-sealed"


def node_of(worker: int) -> str:
    return f"n{worker % NODES}"


def test_every_acknowledged_write_is_there_once_and_in_its_writers_order(
    live: LiveService, tree: Tree
) -> None:
    acknowledged: dict[int, list[Json]] = {}

    def write(api: Api, *, worker: int) -> None:
        acknowledged[worker] = write_all(api, tree[node_of(worker)], worker)

    writers = [partial(write, worker=worker) for worker in range(WORKERS)]
    others = [partial(work, tree=tree) for work in (search_a_while, grow_meanwhile, seal_meanwhile)]
    all_at_once(live, [*writers, *others])

    stored = {name: all_entries(tree, name) for name in tree.names}
    assert sum(map(len, stored.values())) == sum(map(len, acknowledged.values()))
    for worker, own in acknowledged.items():
        by_worker = [e for e in stored[node_of(worker)] if e["metadata"] == {"by": worker}]
        assert lasting(by_worker) == lasting(own)
        assert len(own) == ROUNDS * 4 or node_of(worker) in SEALED
    assert "locked" not in live.log


def lasting(entries: Sequence[Json]) -> list[Json]:
    """Return the entries without what changes: Letta may take longer than a write waits."""
    return [{**entry, "indexed": None} for entry in entries]


def all_entries(tree: Tree, name: str) -> list[Json]:
    return list(walk(lambda cursor: tree.api.entries(tree[name], cursor=cursor)))


def test_one_of_thirty_two_identical_creates_makes_the_node(live: LiveService, tree: Tree) -> None:
    def create(api: Api) -> int:
        return api.node(tree.checkpoint, "common", "root").status_code

    statuses = all_at_once(live, [create] * WORKERS)

    assert sorted(statuses) == [200] * (WORKERS - 1) + [201]


def test_one_of_thirty_two_identical_creates_makes_the_checkpoint(live: LiveService) -> None:
    def create(api: Api) -> int:
        return api.checkpoint("common", path="/mnt/common").status_code

    statuses = all_at_once(live, [create] * WORKERS)

    assert sorted(statuses) == [200] * (WORKERS - 1) + [201]


def test_a_write_repeated_by_thirty_two_at_once_is_stored_once(
    live: LiveService, tree: Tree
) -> None:
    def write(api: Api) -> bytes:
        return api.write(tree["n0"], "said once", key="the one key").content

    answers = all_at_once(live, [write] * WORKERS)

    assert len(set(answers)) == 1
    assert tree.own("n0") == ["said once"]
