"""An index that becomes void while batches are on their way: what they bring is not taken."""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import pytest
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable

from tests.conftest import NewStorage, StartService
from tests.embedding.endpoint import Answer, Endpoint, Request, embeddings
from tests.support.client import Api, Json, answer
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

DIMENSIONS = 16
ENTRIES = [f"entry {number}" for number in range(40)]
# A claim that nobody released would last 35 s.
PROMPTLY_S = 20.0


def vector_of(text: str) -> list[float]:
    """A direction of the text's own."""
    return [byte - 127.5 for byte in sha256(text.encode()).digest()[:DIMENSIONS]]


RIGHT = embeddings(vector_of)
# Where they were taken all the same, every ranking would show it.
OUTDATED = embeddings(lambda text: vector_of(f"outdated {text}"))


@dataclass(frozen=True)
class Kept:
    """A request that waits at the gate for its answer."""

    answer: Answer
    came: threading.Event = field(default_factory=threading.Event)
    may_go: threading.Event = field(default_factory=threading.Event)

    def await_it(self) -> None:
        """Return when it is there."""
        wait_until(self.came.is_set, describe="a batch is on its way")


class Gate:
    """Embeds, and keeps single requests waiting."""

    def __init__(self) -> None:
        self._kept: list[Kept] = []
        self._expected: deque[Kept] = deque()

    def keep(self, answer: Answer) -> Kept:
        """Keep the next request that is not kept yet; this is what it gets in the end."""
        kept = Kept(answer)
        self._kept.append(kept)
        self._expected.append(kept)
        return kept

    def open(self) -> None:
        """Let everybody go."""
        for kept in self._kept:
            kept.may_go.set()

    async def __call__(
        self, request: Request, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if not self._expected:
            await RIGHT(request, receive, send)
            return
        kept = self._expected.popleft()
        kept.came.set()
        await asyncio.to_thread(kept.may_go.wait)
        await kept.answer(request, receive, send)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def endpoint(gate: Gate) -> Iterator[Endpoint]:
    with Endpoint(gate) as running:
        yield running
        gate.open()


@pytest.fixture
def embedder(endpoint: Endpoint) -> Json:
    return {
        "embedder": "openai",
        "embedding_url": endpoint.url,
        "embedding_model": "m",
        "embedding_dim": DIMENSIONS,
        "embedding_timeout_s": 60.0,
        "index_wait_s": 0.1,
    }


def reindex(tree: Tree) -> None:
    answer(tree.api.reindex(tree.checkpoint))


def overwrite(tree: Tree) -> None:
    packed = tree.api.backup(tree.checkpoint).content
    answer(tree.api.restore(tree.checkpoint, packed, on_conflict="overwrite"))


def purge_and_restore(tree: Tree) -> None:
    packed = tree.api.backup(tree.checkpoint).content
    assert tree.api.purge(tree.checkpoint).is_success
    answer(tree.api.restore(tree.checkpoint, packed))


def with_a_batch_under_way(api: Api, gate: Gate) -> Tree:
    """Grow a tree whose entries are all in a batch that waits at the gate."""
    tree = grow_tree(api, unique_checkpoint())
    under_way = gate.keep(OUTDATED)
    answer(api.write_batch(tree["root"], ENTRIES))
    under_way.await_it()
    return tree


def assert_found_once_each(tree: Tree) -> None:
    """Hold every entry to be listed once, found once, and the first for its own text."""
    wait_until(
        lambda: answer(tree.api.get_checkpoint(tree.checkpoint))["pending"] == 0,
        describe="nothing is pending",
        timeout=PROMPTLY_S,
    )
    assert tree.own("root") == ENTRIES
    for text in ENTRIES:
        found = tree.search("a", text, limit=100)
        assert (found[0], sorted(found)) == (text, sorted(ENTRIES))


@pytest.mark.parametrize("make_void", [reindex, overwrite, purge_and_restore])
def test_what_a_batch_brings_to_a_void_index_is_not_taken(
    start_service: StartService,
    embedder: Json,
    gate: Gate,
    make_void: Callable[[Tree], None],
) -> None:
    with Api(start_service(**embedder).base_url) as api:
        tree = with_a_batch_under_way(api, gate)
        make_void(tree)

        gate.open()

        assert_found_once_each(tree)


def test_who_gives_a_void_batch_back_gives_back_no_later_one(
    start_service: StartService,
    embedder: Json,
    endpoint: Endpoint,
    gate: Gate,
) -> None:
    with Api(start_service(**embedder).base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        void, later = gate.keep(OUTDATED), gate.keep(RIGHT)
        answer(api.write_batch(tree["root"], ENTRIES))
        void.await_it()
        overwrite(tree)  # the entries keep their ids
        later.await_it()

        void.may_go.set()
        # Two batches of a checkpoint at a time: the next one goes when the void one is given back.
        tree.write("b", "the next")
        wait_until(
            lambda: answer(api.entries(tree["b"]))["items"][0]["indexed"],
            describe="the next batch was taken",
        )

        asked = Counter(text for request in endpoint.requests for text in request.texts)
        assert asked == {**dict.fromkeys(ENTRIES, 2), "the next": 1}
        gate.open()
        assert_found_once_each(tree)


def test_a_batch_of_the_former_model_is_not_taken_after_a_restart_with_another(
    start_service: StartService,
    new_storage: NewStorage,
    embedder: Json,
    gate: Gate,
) -> None:
    storage = new_storage()
    former = start_service(storage=storage, **embedder)
    with Api(former.base_url) as api:
        tree = with_a_batch_under_way(api, gate)
    former.stop()
    gate.open()

    changed = start_service(storage=storage, **{**embedder, "embedding_model": "another"})
    with Api(changed.base_url) as api:
        tree.api = api
        reindex(tree)

        assert_found_once_each(tree)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_batch_of_a_replica_with_the_former_model_is_not_taken_after_a_reindex(
    start_service: StartService,
    new_storage: NewStorage,
    embedder: Json,
    gate: Gate,
) -> None:
    storage = new_storage()
    former = start_service(storage=storage, **embedder)
    changed = start_service(storage=storage, **{**embedder, "embedding_model": "another"})
    with Api(former.base_url) as api, Api(changed.base_url) as other:
        tree = with_a_batch_under_way(api, gate)
        tree.api = other
        reindex(tree)

        gate.open()

        assert_found_once_each(tree)
