"""The HTTP fault proxy fails the requests that it is told to, before or after their time."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.support.http_proxy import Answers, HttpFaultProxy, Lost, Request
from tests.support.ports import LOOPBACK
from tests.support.proxy import Endpoint
from tests.support.wait import wait_until


class Counting(BaseHTTPRequestHandler):
    """Counts what is posted, and answers with the body in capitals."""

    protocol_version = "HTTP/1.1"
    posted: list[bytes]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        self.posted.append(content)
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content.upper())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class's)
        """Say nothing."""


@pytest.fixture
def proxy() -> Iterator[HttpFaultProxy]:
    Counting.posted = []
    with ThreadingHTTPServer((LOOPBACK, 0), Counting) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with HttpFaultProxy(Endpoint.tcp(server.server_address[1])) as running:
            yield running
        server.shutdown()
        thread.join()


@pytest.fixture
def client(proxy: HttpFaultProxy) -> Iterator[httpx.Client]:
    # The proxy forwards one request a connection, and an answer may keep quiet about its end.
    limits = httpx.Limits(max_keepalive_connections=0)
    base_url = f"http://{LOOPBACK}:{proxy.port}"
    with httpx.Client(base_url=base_url, limits=limits, trust_env=False) as client:
        yield client


def test_requests_and_answers_pass_whole(client: httpx.Client) -> None:
    for content in (b"one", b"x" * 1_000_000, b""):
        assert client.post("/a?b=c", content=content).content == content.upper()
    assert len(Counting.posted) == 3


def test_an_error_answer_comes_with_or_without_the_request_being_carried_out(
    proxy: HttpFaultProxy, client: httpx.Client
) -> None:
    proxy.meddle(lambda _: Answers(500))
    assert client.post("/a", content=b"one").status_code == 500
    assert Counting.posted == []

    proxy.meddle(lambda _: Answers(409, carried_out=True))
    assert client.post("/a", content=b"two").json() == {"detail": "An unknown error occurred"}
    assert Counting.posted == [b"two"]


def test_a_lost_answer_is_of_a_request_that_was_carried_out(
    proxy: HttpFaultProxy, client: httpx.Client
) -> None:
    proxy.meddle(lambda _: Lost.CUT)
    with pytest.raises(httpx.RemoteProtocolError):
        client.post("/a", content=b"one")
    assert Counting.posted == [b"one"]

    proxy.meddle(lambda _: Lost.HELD)
    with pytest.raises(httpx.ReadTimeout):
        client.post("/a", content=b"two", timeout=0.2)
    wait_until(lambda: Counting.posted == [b"one", b"two"], describe="it is carried out")


def test_a_fault_chooses_by_what_is_asked_and_restore_ends_it(
    proxy: HttpFaultProxy, client: httpx.Client
) -> None:
    proxy.meddle(lambda request: Answers(500) if request.path == "/bad" else None)
    assert client.post("/good?bad", content=b"").status_code == 200
    assert client.post("/bad?good", content=b"").status_code == 500
    assert proxy.failed == [Request("POST", "/bad", b"")]

    proxy.restore()
    assert client.post("/bad", content=b"").status_code == 200


def test_an_answer_is_cut_after_the_given_bytes(
    proxy: HttpFaultProxy, client: httpx.Client
) -> None:
    proxy.cut_answers_after(200)
    with pytest.raises(httpx.RemoteProtocolError):
        client.post("/a", content=b"x" * 1000)


def test_a_delayed_request_is_carried_out_although_its_client_hung_up(
    proxy: HttpFaultProxy, client: httpx.Client
) -> None:
    proxy.delay(3600)
    with pytest.raises(httpx.ReadTimeout):
        client.post("/a", content=b"late", timeout=0.1)
    assert Counting.posted == []

    proxy.restore()
    assert client.post("/a", content=b"next").status_code == 200
    wait_until(lambda: b"late" in Counting.posted, describe="what was held back is carried out")
