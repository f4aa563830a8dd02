"""What must hold whatever befalls Letta: nothing lost, nothing twice, exact or told to come again.

Each worker writes to a node of its own, a root with fewer entries than a search may return: so one
search shows whether all that was acknowledged is found, each once.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from tests.support.client import Api, Json, answer, walk
from tests.support.letta import RealLetta
from tests.support.tree import Shape, Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

MOST = 100
"""What a search returns at most."""


def roots(count: int) -> Shape:
    """Return so many trees of one node each."""
    return {f"n{number}": {} for number in range(count)}


def grow_roots(api: Api, count: int) -> Tree:
    """Make a checkpoint with so many nodes, none of which reads another."""
    return grow_tree(api, unique_checkpoint(), roots(count))


def assert_unavailable(response: httpx.Response) -> None:
    """Fail unless it is the answer of a search while the archive is away."""
    assert response.status_code == httpx.codes.SERVICE_UNAVAILABLE, response.text
    assert response.json()["type"] == "/problems/archive-unavailable"
    assert response.json()["detail"].partition(": ")[2]
    assert int(response.headers["retry-after"]) >= 1


@dataclass
class Writer:
    """Writes entries to a node of its own, one after the other, and knows what was acknowledged.

    `refusal` is the only answer but success that it takes; it counts how often.
    """

    node: str
    refusal: int | None = None
    refused: int = 0
    acknowledged: list[Json] = field(default_factory=list)

    def write(self, base_url: str, *, count: int) -> None:
        """Write until so many are acknowledged."""
        with Api(base_url) as api:
            while len(self.acknowledged) < count:
                response = api.write(self.node, f"{self.node} writes {len(self.acknowledged)}")
                if response.status_code == self.refusal:
                    self.refused += 1
                else:
                    self.acknowledged.append(answer(response))


@dataclass
class Searcher:
    """Searches nodes in turn; each answer is exact or 503, and it counts the two kinds.

    Exact is: what was acknowledged as indexed before is found, each once, and nothing of others.
    """

    writers: Sequence[Writer]
    exact: int = 0
    told_to_come_again: int = 0

    def search(self, base_url: str, *, until: threading.Event) -> None:
        """Search until told to stop."""
        with Api(base_url) as api:
            while not until.is_set():
                self.look(api)

    def look(self, api: Api) -> None:
        """Search each node once."""
        for writer in self.writers:
            self._search(api, writer)

    def _search(self, api: Api, writer: Writer) -> None:
        indexed = {entry["id"] for entry in list(writer.acknowledged) if entry["indexed"]}
        response = api.search(writer.node, "writes", limit=MOST, include_self=True)
        if not response.is_success:
            assert_unavailable(response)
            self.told_to_come_again += 1
            return
        assert indexed <= set(found_in(response.json(), node=writer.node))
        self.exact += 1


def found_in(body: Json, *, node: str) -> list[str]:
    """Return the ids that a search of one node found: none of another node, and none twice."""
    results = body["results"]
    assert {hit["node"] for hit in results} <= {node}
    ids = [hit["entry_id"] for hit in results]
    assert len(set(ids)) == len(ids)
    return ids


@contextmanager
def searched(base_url: str, writers: Sequence[Writer]) -> Iterator[Searcher]:
    """Search all the time while the block runs; what fails there fails here."""
    searcher, done = Searcher(writers), threading.Event()
    with ThreadPoolExecutor(1) as thread:
        searching = thread.submit(searcher.search, base_url, until=done)
        try:
            yield searcher
        finally:
            done.set()
        searching.result()


@contextmanager
def written(
    base_url: str, writers: Sequence[Writer], *, each: int
) -> Iterator[Callable[[int], None]]:
    """Let all writers write while the block runs, and to the end; yields a way to follow them.

    It waits until so many entries are acknowledged in all.
    """
    with ThreadPoolExecutor(len(writers)) as threads:
        writing = [threads.submit(writer.write, base_url, count=each) for writer in writers]

        def reached(count: int) -> None:
            wait_until(
                lambda: sum(len(writer.acknowledged) for writer in writers) >= count,
                describe=f"{count} writes are acknowledged",
                timeout=90,
            )

        yield reached
        for work in writing:
            work.result()


def settled(api: Api, checkpoint: str, *, timeout: float = 90) -> None:
    """Wait until nothing is pending; nothing may have been refused."""

    def shown() -> Json:
        return answer(api.get_checkpoint(checkpoint))

    wait_until(
        lambda: shown()["pending"] == 0,
        describe=lambda: f"none pending: {shown()}",
        timeout=timeout,
    )
    assert shown()["refused"] == 0


def assert_all_found(api: Api, writers: Sequence[Writer]) -> None:
    """Fail unless each node lists and finds what was acknowledged, each once.

    A write that was refused may have been stored all the same, where its commit's answer was lost.
    """
    for writer in writers:
        listed = list(walk(lambda cursor, node=writer.node: api.entries(node, cursor=cursor)))  # type: ignore[misc]
        ids = [entry["id"] for entry in listed]
        acknowledged = [entry["id"] for entry in writer.acknowledged]
        if writer.refusal is None:
            assert ids == acknowledged
        assert set(acknowledged) <= set(ids)
        assert len(set(ids)) == len(ids) <= MOST
        found = answer(api.search(writer.node, "writes", limit=MOST, include_self=True))
        assert sorted(found_in(found, node=writer.node)) == sorted(ids)
        assert found["pending"] == 0


def passages_of(letta: RealLetta, checkpoint: str) -> Counter[str]:
    """Count the passages of each entry in Letta, by the entry's id."""
    return Counter(passage["metadata"]["entry"] for passage in letta.passages(checkpoint))


def personas(letta: RealLetta, checkpoint: str) -> list[str]:
    """Return the persona of each of the checkpoint's agents."""
    blocks = [block for agent in letta.agents(checkpoint) for block in agent["memory"]["blocks"]]
    return [block["value"] for block in blocks if block["label"] == "persona"]


def reconcile(api: Api, checkpoint: str) -> Json:
    """Mend the archive and return what did not fit."""
    return answer(api.request("POST", f"/checkpoints/{checkpoint}/reconcile"))


def assert_one_passage_each(letta: RealLetta, checkpoint: str, writers: Sequence[Writer]) -> None:
    """Fail unless Letta has one passage of each acknowledged entry, and no others."""
    ids = [entry["id"] for writer in writers for entry in writer.acknowledged]
    assert passages_of(letta, checkpoint) == Counter(ids)
