"""kill -9 in the middle of writes, again and again: what was acknowledged is there, and once."""

import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import pytest

from tests.conftest import StartLive
from tests.support.client import Api, Json, answer, walk
from tests.support.service import LiveService
from tests.support.tree import Shape, Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

WRITERS = 8


@dataclass(frozen=True)
class Request:
    """A batch of one to three entries; without a key it cannot be sent again safely."""

    texts: tuple[str, ...]
    key: str | None


@dataclass
class Journal:
    """What one writer knows: what it was promised, in order, and what it was never answered."""

    node: str
    acknowledged: list[Json] = field(default_factory=list)
    unanswered: list[Request] = field(default_factory=list)
    doubtful: list[Request] = field(default_factory=list)
    written: int = 0

    def write_until_killed(self, base_url: str) -> None:
        with Api(base_url) as api:
            while not self.unanswered:
                self.send(api, self._next())

    def send(self, api: Api, request: Request) -> None:
        try:
            response = api.write_batch(self.node, request.texts, key=request.key)
        except httpx.TransportError:  # killed: it may be stored or not
            self.unanswered.append(request)
        else:
            self.acknowledged += answer(response)["items"]

    def send_again(self, api: Api) -> None:
        """Settle by its key what was not answered; without one it stays in doubt."""
        unanswered, self.unanswered = self.unanswered, []
        for request in unanswered:
            if request.key is None:
                self.doubtful.append(request)
            else:
                self.send(api, request)

    def _next(self) -> Request:
        self.written += 1
        texts = tuple(f"{self.node} {self.written} {part}" for part in range(self.written % 3 + 1))
        return Request(texts, key=None if self.written % 4 == 0 else f"write {self.written}")


@pytest.mark.parametrize(
    "kills", [2, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_kill_loses_nothing_acknowledged_and_doubles_nothing(
    start_live: StartLive, kills: int
) -> None:
    live = start_live()
    chance = random.Random(kills)
    with Api(live.base_url) as api:
        shape: Shape = {f"n{number}": {} for number in range(WRITERS)}
        tree = grow_tree(api, unique_checkpoint(), shape)
        journals = [Journal(tree[name]) for name in tree.names]

        for _ in range(kills):
            write_and_kill(live, journals, after=chance.randint(1, 150))
            live.start()
            for journal in journals:
                journal.send_again(api)

        for journal in journals:
            compare(api, journal)
        assert logged_writes(tree) == Counter(
            entry["id"] for journal in journals for entry in stored(api, journal.node)
        )


def write_and_kill(live: LiveService, journals: Sequence[Journal], *, after: int) -> None:
    """Let all write, and kill the service once so many entries more are acknowledged."""

    def acknowledged() -> int:
        return sum(len(journal.acknowledged) for journal in journals)

    before = acknowledged()
    with ThreadPoolExecutor(WRITERS) as threads:
        writing = [threads.submit(j.write_until_killed, live.base_url) for j in journals]
        try:
            wait_until(lambda: acknowledged() >= before + after, describe="writes are answered")
        finally:
            live.kill()
        for work in writing:
            work.result()


def compare(api: Api, journal: Journal) -> None:
    """Hold the node's list to the journal: order, bytes, and all or none of what is in doubt."""
    entries = stored(api, journal.node)
    doubtful = {text for request in journal.doubtful for text in request.texts}
    assert [entry for entry in entries if entry["text"] not in doubtful] == journal.acknowledged
    found = Counter(entry["text"] for entry in entries)
    for request in journal.doubtful:
        assert [found[text] for text in request.texts] in (
            [0] * len(request.texts),
            [1] * len(request.texts),
        )
    hits = answer(api.search(journal.node, "write", limit=100, include_self=True))
    assert len(hits["results"]) == min(100, len(entries))


def stored(api: Api, node: str) -> list[Json]:
    return list(walk(lambda cursor: api.entries(node, cursor=cursor, limit=1000)))


def logged_writes(tree: Tree) -> Counter[str]:
    """Count the ids of written entries in the access log, which commits with each write."""
    records = walk(lambda cursor: tree.api.access_log(tree.checkpoint, cursor=cursor, limit=1000))
    return Counter(
        touched["id"]
        for record in records
        if record["operation"] == "write"
        for touched in record["entries"]
    )
