"""What was acknowledged is found by every later read, by whichever replica, whatever is cached."""

import threading
from collections.abc import Iterator

import pytest

from tests.conftest import NewStorage, StartService
from tests.support.client import Api, answer
from tests.support.tree import Tree, grow_tree, unique_checkpoint

ONLY_POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@pytest.fixture(params=[0, 20_000, 64 * 1024 * 1024], ids=["none", "tiny", "roomy"])
def cached_tree(start_service: StartService, request: pytest.FixtureRequest) -> Iterator[Tree]:
    """A tree in a service with no cache at all, one that holds a few entries, and a roomy one."""
    service = start_service(cache_bytes=request.param)
    with Api(service.base_url) as api:
        yield grow_tree(api, unique_checkpoint())


def test_a_search_finds_each_entry_as_soon_as_it_is_acknowledged(cached_tree: Tree) -> None:
    expected = set()
    for number in range(30):
        name = ("root", "a")[number % 2]
        cached_tree.write(name, f"door {number}")
        expected.add(f"door {number}")
        assert set(cached_tree.search("a1", "door", limit=100)) == expected


def test_searches_beside_writes_miss_nothing_that_was_acknowledged_before(
    cached_tree: Tree,
) -> None:
    acknowledged: list[str] = []
    missed: list[set[str]] = []
    done = threading.Event()

    def search_on() -> None:
        with Api(str(cached_tree.api.http.base_url)) as api:
            reader = Tree(api, cached_tree.checkpoint)
            reader.names = cached_tree.names
            while not done.is_set():
                before = set(acknowledged)
                found = set(reader.search("a1", "door", limit=100))
                if before - found:
                    missed.append(before - found)

    searchers = [threading.Thread(target=search_on) for _ in range(3)]
    for searcher in searchers:
        searcher.start()
    for number in range(60):
        cached_tree.write(("root", "a")[number % 2], f"door {number}")
        acknowledged.append(f"door {number}")
    done.set()
    for searcher in searchers:
        searcher.join()

    assert missed == []


def test_a_clear_beside_searches_leaves_nothing_behind(cached_tree: Tree) -> None:
    api = cached_tree.api
    for _ in range(5):
        answer(api.write_batch(cached_tree["a"], [f"door {number}" for number in range(20)]))
        assert len(cached_tree.search("a1", "door", limit=100)) == 20
        answer(api.clear(cached_tree["a"]))
        assert cached_tree.search("a1", "door", limit=100) == []


@pytest.fixture
def replicas(start_service: StartService, new_storage: NewStorage) -> Iterator[tuple[Tree, Tree]]:
    """One tree, seen through two services on one database."""
    storage = new_storage()
    first, second = start_service(storage=storage), start_service(storage=storage)
    with Api(first.base_url) as one, Api(second.base_url) as other:
        tree = grow_tree(one, unique_checkpoint())
        seen = Tree(other, tree.checkpoint)
        seen.names = tree.names
        yield tree, seen


@ONLY_POSTGRESQL
def test_what_one_replica_acknowledged_the_other_finds_at_once(
    replicas: tuple[Tree, Tree],
) -> None:
    one, other = replicas
    expected = set()
    for number in range(20):
        writer, reader = (one, other) if number % 2 else (other, one)
        writer.write("root", f"door {number}")
        expected.add(f"door {number}")
        assert set(reader.search("a", "door", limit=100)) == expected
        assert set(writer.search("a", "door", limit=100)) == expected


@ONLY_POSTGRESQL
def test_a_clear_a_seal_a_token_and_a_purge_hold_on_every_replica(
    replicas: tuple[Tree, Tree],
) -> None:
    one, other = replicas
    one.write("root", "door 1")
    assert other.search("a", "door") == one.search("a", "door") == ["door 1"]

    answer(one.api.clear(one["root"]))
    assert other.search("a", "door") == []

    one.write("root", "door 2")
    assert other.search("a", "door") == ["door 2"]

    answer(one.api.seal(one["root"]))
    assert other.api.write(other["root"], "x").status_code == 409

    stale = answer(one.api.token(one["a"]))["token"]
    with other.api.with_bearer(stale) as worker:
        assert worker.write(other["a"], "mine", claim=None).status_code == 201
        answer(one.api.token(one["a"]))
        assert worker.write(other["a"], "mine", claim=None).status_code == 409
        assert worker.search(other["a"], "door").status_code == 409

    assert one.api.purge(one.checkpoint).status_code == 204
    assert other.api.search(other["a"], "door").status_code == 404


@ONLY_POSTGRESQL
def test_a_repeat_at_another_replica_gets_the_first_answer(replicas: tuple[Tree, Tree]) -> None:
    one, other = replicas

    first = one.api.write(one["root"], "door", key="k")
    again = other.api.write(other["root"], "door", key="k")

    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.text == first.text
    assert one.own("root") == ["door"]


@ONLY_POSTGRESQL
def test_replicas_that_write_one_node_together_number_its_entries_without_gap_or_double(
    replicas: tuple[Tree, Tree],
) -> None:
    def write(tree: Tree, name: str) -> None:
        with Api(str(tree.api.http.base_url)) as api:
            for number in range(25):
                answer(api.write(tree["root"], f"{name} {number}"))

    threads = [
        threading.Thread(target=write, args=(tree, f"{place} {number}"))
        for place, tree in enumerate(replicas)
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    listed = answer(replicas[1].api.entries(replicas[1]["root"], limit=1000))["items"]
    assert len(listed) == len({entry["id"] for entry in listed}) == 150
    times = [entry["created_at"] for entry in listed]
    assert times == sorted(set(times))
    for name in (f"{place} {number}" for place in range(2) for number in range(3)):
        own = [entry["text"] for entry in listed if entry["text"].startswith(f"{name} ")]
        assert own == [f"{name} {number}" for number in range(25)]
