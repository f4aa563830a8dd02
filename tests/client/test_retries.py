"""A call is repeated while the service is away, a write is stored once, and a refusal is final."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from app.client import (
    CowViolation,
    InvalidInput,
    LineageMemory,
    NotTheService,
    Problem,
    Unreachable,
)
from tests.client.conftest import NewWorker
from tests.conftest import StartLive
from tests.support.client import Api
from tests.support.http_proxy import Answers, Fate, HttpFaultProxy, Lost, Request
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint


@dataclass(frozen=True)
class AnswersWith(Answers):
    """An answer with more headers, or as something else than JSON."""

    header: str = "x-nothing: 1"

    def encoded(self) -> bytes:
        return super().encoded().replace(b"\r\n", b"\r\n" + self.header.encode() + b"\r\n", 1)


class Script:
    """Fates of one request after the other; the last of them stays. Notes when each came."""

    def __init__(self, *fates: Fate) -> None:
        self._fates = list(fates)
        self.times: list[float] = []

    def __call__(self, _: Request) -> Fate:
        self.times.append(time.monotonic())
        return self._fates.pop(0) if len(self._fates) > 1 else self._fates[0]


@pytest.fixture
def behind(
    new_worker: NewWorker, proxy: HttpFaultProxy, tree: Tree
) -> Callable[..., LineageMemory]:
    """Make workers of node a behind the proxy."""

    def new(**given: float) -> LineageMemory:
        url = f"http://127.0.0.1:{proxy.port}"
        return new_worker(url, checkpoint=tree.checkpoint, current_node="a", **given)

    return new


@pytest.mark.parametrize("loss", [Lost.CUT, Lost.HELD, Answers(502, carried_out=True)], ids=str)
def test_a_write_whose_answer_was_lost_is_stored_once(
    loss: Fate, behind: Callable[..., LineageMemory], proxy: HttpFaultProxy, tree: Tree
) -> None:
    worker, script = behind(timeout_s=3.0), Script(loss, None)
    proxy.meddle(script)

    stored = worker.add_memory("once")
    proxy.meddle(Script(loss, None))
    step = worker.add_trace_step("once")

    assert len(script.times) == 2
    assert [request.method for request in proxy.failed] == ["POST", "POST"]
    own = tree.api.entries(tree["a"]).json()["items"]
    assert [entry["id"] for entry in own] == [stored.id]
    trace = tree.api.trace(tree.checkpoint).json()["items"]
    assert [entry["id"] for entry in trace] == [step.id]


def test_two_writes_of_the_same_text_are_two_entries(
    behind: Callable[..., LineageMemory], tree: Tree
) -> None:
    worker = behind()
    worker.add_memory("again")
    worker.add_memory("again")

    assert tree.own("a") == ["again", "again"]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_reads_and_writes_are_repeated_while_the_service_is_away(
    status: int, behind: Callable[..., LineageMemory], proxy: HttpFaultProxy
) -> None:
    worker = behind()
    for call in (
        lambda: worker.add_memory("text"),
        lambda: worker.search_memory("text"),
        lambda: list(worker.get_node_memory()),
        worker.clear_node_memory,
    ):
        proxy.meddle(script := Script(Answers(status), Lost.CUT, None))
        call()
        assert len(script.times) == 3


def test_the_wait_that_the_service_asks_for_is_kept(
    behind: Callable[..., LineageMemory], proxy: HttpFaultProxy
) -> None:
    proxy.meddle(script := Script(AnswersWith(503, header="retry-after: 1"), None))

    behind().search_memory("text")

    first, second = script.times
    assert second - first >= 1.0


def test_a_wait_past_the_deadline_is_not_begun(
    behind: Callable[..., LineageMemory], proxy: HttpFaultProxy
) -> None:
    proxy.meddle(script := Script(AnswersWith(503, header="retry-after: 3600")))

    with pytest.raises(Problem) as refused:
        behind(deadline_s=30.0).search_memory("text")

    assert (refused.value.status, refused.value.retry_after_s) == (503, 3600.0)
    assert len(script.times) == 1


def test_the_deadline_ends_all_attempts_and_the_error_names_the_service(
    behind: Callable[..., LineageMemory], proxy: HttpFaultProxy
) -> None:
    worker = behind(deadline_s=0.5)
    proxy.silence()
    began = time.monotonic()

    with pytest.raises(Unreachable, match=f"http://127.0.0.1:{proxy.port} does not answer"):
        worker.add_memory("text")

    assert time.monotonic() - began < 10


def test_a_refusal_is_not_repeated(
    behind: Callable[..., LineageMemory], proxy: HttpFaultProxy
) -> None:
    worker = behind()
    proxy.meddle(script := Script(None))

    with pytest.raises(CowViolation):
        worker.add_memory("text", node_id="b")
    with pytest.raises(InvalidInput):
        worker.add_memory(" ")
    assert len(script.times) == 2

    proxy.meddle(script := Script(Answers(500)))
    with pytest.raises(Problem):
        worker.add_memory("text")
    assert len(script.times) == 1


def test_an_answer_that_is_not_the_services_is_told_at_once(
    behind: Callable[..., LineageMemory], proxy: HttpFaultProxy
) -> None:
    proxy.meddle(script := Script(Answers(200)))

    with pytest.raises(NotTheService, match="is not the service"):
        behind().add_memory("text")

    assert len(script.times) == 1


def test_a_write_rides_over_a_crash_of_the_service(
    new_worker: NewWorker, start_live: StartLive
) -> None:
    live = start_live()
    with Api(live.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
    worker = new_worker(live.base_url, checkpoint=tree.checkpoint, current_node="a")
    live.kill()

    writing = threading.Thread(target=worker.add_memory, args=("through",))
    writing.start()
    live.start()
    writing.join(60)

    with Api(live.base_url) as api:
        assert Tree(api, tree.checkpoint).api.entries(tree["a"]).json()["items"][0]["text"] == (
            "through"
        )


def test_threads_share_a_worker(service: InProcessService, tree: Tree) -> None:
    with (
        LineageMemory(service.base_url, checkpoint=tree.checkpoint, current_node="a") as worker,
        ThreadPoolExecutor(8) as threads,
    ):
        stored = list(threads.map(worker.add_memory, [f"text {number}" for number in range(80)]))

    assert len({entry.id for entry in stored}) == 80
    assert sorted(tree.own("a")) == sorted(entry.text for entry in stored)


FORKS = """
import os, sys
from app.client import LineageMemory
url, checkpoint = sys.argv[1:]
memory = LineageMemory(url, checkpoint=checkpoint, current_node="a")
memory.add_memory("before")
children = []
for _ in range(3):
    children.append(os.fork())
    if children[-1] == 0:
        break
for number in range(20):
    text = f"{os.getpid()} {number}"
    assert memory.add_memory(text).text == text
if children[-1]:
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
"""


def test_a_worker_survives_a_fork(service: InProcessService, tree: Tree) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, service.base_url, tree.checkpoint],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(set(tree.own("a"))) == 1 + 4 * 20
