"""A worker against what is not the service, or answers without end: told as such, and in time."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.client import LineageMemory, NotTheService, Unreachable
from tests.client.conftest import NewWorker
from tests.support.ports import LOOPBACK

DEADLINE_S = 0.5
BETWEEN_BYTES_S = 0.05
BYTES = 200


@dataclass
class Stranger:
    """An HTTP server that answers the same to whatever is asked."""

    body: bytes = b"{}"
    status: int = 200
    encoding: str = "identity"
    kind: str = "application/json"
    drips: bool = False
    asked: int = 0
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def write_to(self, handler: BaseHTTPRequestHandler) -> None:
        """Send the answer, at once or a byte at a time for as long as somebody takes them."""
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.asked += 1
        handler.send_response(self.status)
        handler.send_header("Content-Type", self.kind)
        handler.send_header("Content-Encoding", self.encoding)
        handler.send_header("Content-Length", str(BYTES if self.drips else len(self.body)))
        handler.end_headers()
        if not self.drips:
            handler.wfile.write(self.body)
            return
        for _ in range(BYTES):
            if self.over.wait(BETWEEN_BYTES_S):
                return
            try:
                handler.wfile.write(b" ")
            except ConnectionError:
                return


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    answering = Stranger()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answering.write_to(self)

        def do_POST(self) -> None:
            answering.write_to(self)

        def do_DELETE(self) -> None:
            answering.write_to(self)

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        answering.url = f"http://{LOOPBACK}:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield answering
        answering.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def worker(new_worker: NewWorker, stranger: Stranger) -> LineageMemory:
    return new_worker(stranger.url, checkpoint="exp1", current_node="a", deadline_s=DEADLINE_S)


@pytest.mark.parametrize("status", [200, 502])
def test_a_body_that_is_not_encoded_as_it_says_is_not_the_services(
    worker: LineageMemory, stranger: Stranger, status: int
) -> None:
    stranger.encoding, stranger.status = "gzip", status

    with pytest.raises(NotTheService, match=f"What answers at {stranger.url} is not the service"):
        worker.search_memory("text")

    assert stranger.asked == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(200, "application/json"), (500, "application/problem+json")]
)
def test_json_that_is_nested_too_deeply_is_not_the_services(
    worker: LineageMemory, stranger: Stranger, status: int, kind: str
) -> None:
    stranger.body, stranger.status, stranger.kind = b"[" * 100_000, status, kind

    with pytest.raises(NotTheService):
        worker.search_memory("text")

    assert stranger.asked == 1


def test_an_answer_that_never_ends_is_given_up_at_the_deadline(
    worker: LineageMemory, stranger: Stranger
) -> None:
    stranger.drips = True
    began = time.monotonic()

    with pytest.raises(Unreachable, match=f"{stranger.url} does not answer") as given_up:
        worker.search_memory("text")

    assert not isinstance(given_up.value, NotTheService)
    assert time.monotonic() - began < BYTES * BETWEEN_BYTES_S / 2
    assert stranger.asked == 1


@pytest.mark.parametrize("body", [b"[]", b"null", b'"x"', b'[["a", 1]]'])
def test_the_experiments_facts_are_an_object(
    worker: LineageMemory, stranger: Stranger, body: bytes
) -> None:
    stranger.body = body

    with pytest.raises(NotTheService):
        worker.get_experiment_context()


def test_a_checkpoint_found_by_its_path_has_an_id(
    new_worker: NewWorker, stranger: Stranger, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger.body = b'{"id": null}'
    worker = new_worker(stranger.url, checkpoint=tmp_path_factory.mktemp("run"), current_node="a")

    with pytest.raises(NotTheService):
        worker.add_memory("text")

    assert stranger.asked == 1


@pytest.mark.parametrize("removed", ["null", '"7"', "1.5"])
def test_what_was_removed_is_a_whole_number(
    worker: LineageMemory, stranger: Stranger, removed: str
) -> None:
    stranger.body = f'{{"removed": {removed}}}'.encode()

    with pytest.raises(NotTheService):
        worker.clear_node_memory()
