"""Another embedding model: noticed, never mixed with the former one, and mended by a reindex."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from hashlib import sha256

import httpx
import pytest

from tests.conftest import NewStorage, StartService
from tests.embedding.endpoint import Endpoint, embeddings
from tests.support.client import Api, Json, answer, walk
from tests.support.service import InProcessService
from tests.support.storage import Storage
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

A: Mapping[str, object] = {}  # the one in the package: 256 dimensions
ENTRIES = [f"entry {number}" for number in range(100)]

StartWith = Callable[[Mapping[str, object]], Api]
Connect = Callable[[InProcessService], Api]


def vector_of(text: str) -> list[float]:
    """A direction of the text's own: only the text itself is close to it."""
    digest = b"".join(sha256(bytes([part]) + text.encode()).digest() for part in range(8))
    return [byte - 127.5 for byte in digest]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(embeddings(vector_of)) as running:
        yield running


@pytest.fixture
def b(endpoint: Endpoint) -> Mapping[str, object]:
    """Another model of the same dimensions."""
    return {
        "embedder": "openai",
        "embedding_url": endpoint.url,
        "embedding_model": "model-b",
        "embedding_dim": 256,
    }


@pytest.fixture
def storage(new_storage: NewStorage) -> Storage:
    return new_storage()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make clients of services, closed after the test."""
    with ExitStack() as open_clients:
        yield lambda service: open_clients.enter_context(Api(service.base_url))


@pytest.fixture
def serve(storage: Storage, start_service: StartService, connect: Connect) -> StartWith:
    """Start a service with a model on the one storage, ending the one before."""
    running: list[InProcessService] = []

    def start(model: Mapping[str, object]) -> Api:
        if running:
            running.pop().stop()
        running.append(start_service(storage=storage, index_wait_s=0.5, **model))
        return connect(running[-1])

    return start


def at(api: Api, tree: Tree) -> Tree:
    """Return the tree as that client's service serves it."""
    moved = Tree(api, tree.checkpoint)
    moved.names = tree.names
    return moved


def filled(api: Api) -> Tree:
    tree = grow_tree(api, unique_checkpoint())
    answer(api.write_batch(tree["root"], ENTRIES))
    return tree


def shown(tree: Tree) -> Json:
    return answer(tree.api.get_checkpoint(tree.checkpoint))


def reindexed(tree: Tree) -> None:
    """Reindex as the problem says, and wait until `pending` is 0."""
    answer(tree.api.reindex(tree.checkpoint))
    wait_until(lambda: shown(tree)["pending"] == 0, describe="nothing is pending", timeout=60)


def entries_of(tree: Tree, name: str) -> list[str]:
    return [
        item["text"]
        for item in walk(lambda cursor: tree.api.entries(tree[name], cursor=cursor, limit=50))
    ]


def assert_model_changed(tree: Tree) -> None:
    reconciled = tree.api.request("POST", f"/checkpoints/{tree.checkpoint}/reconcile")
    # Only a reindex mends it: what a reconcile made pending would stay so.
    assert reconciled.json()["type"] == "/problems/model-changed"
    refused = tree.api.search(tree["a"], "entry 7")

    assert refused.status_code == httpx.codes.CONFLICT
    problem = refused.json()
    assert problem["type"] == "/problems/model-changed"
    assert f"letta-lineage reindex {tree.checkpoint}" in problem["detail"]
    assert problem["indexed"] != problem["configured"]


def assert_searchable(tree: Tree, texts: list[str]) -> None:
    """Every entry is in the ranking once, and the one that is asked for is first."""
    found = tree.search("a", texts[-1], limit=100)
    assert found[0] == texts[-1]
    assert sorted(found) == sorted(texts)


@pytest.mark.parametrize("same", [True, False], ids=["same dimensions", "other dimensions"])
def test_after_a_change_searches_name_the_remedy_and_writes_go_on(
    serve: StartWith, b: Mapping[str, object], endpoint: Endpoint, *, same: bool
) -> None:
    tree = filled(serve(A))
    if not same:
        endpoint.otherwise = embeddings(lambda text: vector_of(text)[:64])
    changed = at(serve(b if same else {**b, "embedding_dim": 64}), tree)

    assert_model_changed(changed)
    changed.write("a", "written meanwhile")
    assert entries_of(changed, "root") == ENTRIES
    assert_model_changed(changed)

    reindexed(changed)
    assert_searchable(changed, ENTRIES)
    assert entries_of(changed, "a") == ["written meanwhile"]


def test_back_at_the_former_model_without_a_reindex_everything_is_found_as_before(
    serve: StartWith, b: Mapping[str, object]
) -> None:
    tree = filled(serve(A))
    [written] = at(serve(b), tree).write("root", "written meanwhile")
    back = at(serve(A), tree)

    assert written["indexed"] is False
    wait_until(lambda: shown(back)["pending"] == 0, describe="the new entry is indexed")
    found = back.search("a", "written meanwhile", limit=100)
    assert found[0] == "written meanwhile"
    assert len(found) == 100


def test_there_and_back_with_reindexing_loses_nothing(
    serve: StartWith, b: Mapping[str, object]
) -> None:
    tree = filled(serve(A))
    there = at(serve(b), tree)
    reindexed(there)
    assert_searchable(there, ENTRIES)
    back = at(serve(A), tree)

    assert_model_changed(back)
    reindexed(back)
    found = back.search("a", "entry 7", limit=100)
    assert sorted(found) == sorted(ENTRIES)
    assert entries_of(back, "root") == ENTRIES


def test_writes_during_a_reindex_are_found_after_it(
    serve: StartWith, b: Mapping[str, object]
) -> None:
    former = filled(serve(A))
    tree = at(serve(b), former)
    more = [f"more {number}" for number in range(10)]

    answer(tree.api.reindex(tree.checkpoint))
    for text in more:
        tree.write("b", text)
        tree.write("root", f"root's {text}")
    wait_until(lambda: shown(tree)["pending"] == 0, describe="nothing is pending", timeout=60)

    assert entries_of(tree, "b") == more
    for text in more:
        assert tree.search("a", f"root's {text}", limit=1) == [f"root's {text}"]


def test_the_trace_is_indexed_anew_as_well(serve: StartWith, b: Mapping[str, object]) -> None:
    tree = filled(serve(A))
    answer(tree.api.trace_step(tree.checkpoint, "a step"))
    changed = at(serve(b), tree)

    assert changed.api.search_trace(tree.checkpoint, "a step").status_code == httpx.codes.CONFLICT
    reindexed(changed)
    found = answer(changed.api.search_trace(tree.checkpoint, "a step"))
    assert [result["text"] for result in found["results"]] == ["a step"]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_replica_with_the_former_model_ranks_none_of_the_new_vectors(
    storage: Storage, start_service: StartService, connect: Connect, b: Mapping[str, object]
) -> None:
    tree = filled(connect(start_service(storage=storage)))
    assert len(tree.search("a", "entry 7", limit=100)) == 100  # its cache is warm
    other = at(connect(start_service(storage=storage, index_wait_s=0.5, **b)), tree)
    assert_model_changed(other)

    reindexed(other)

    assert_model_changed(tree)
    [written] = tree.write("root", "by the former replica")
    assert written["indexed"] is False
    wait_until(lambda: shown(other)["pending"] == 0, describe="nothing is pending", timeout=60)
    found = other.search("a", "by the former replica", limit=100)
    assert found[0] == "by the former replica"
    assert len(entries_of(other, "root")) == 101
