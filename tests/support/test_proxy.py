"""The fault proxy passes bytes on, fails as told, and recovers."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from tests.support.ports import LOOPBACK
from tests.support.proxy import Endpoint, FaultProxy


class Shout(socketserver.BaseRequestHandler):
    """Answer every chunk with the same in capitals."""

    def handle(self) -> None:
        while data := self.request.recv(1024):
            self.request.sendall(data.upper())


class ShoutServer(socketserver.ThreadingTCPServer):
    block_on_close = True
    daemon_threads = False


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    with ShoutServer((LOOPBACK, 0), Shout) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with FaultProxy(Endpoint.tcp(server.server_address[1])) as running:
            yield running
        server.shutdown()
        thread.join()


def connect(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection((LOOPBACK, proxy.port), timeout=10)


def ask(client: socket.socket, text: bytes) -> bytes:
    client.sendall(text)
    return client.recv(1024)


def assert_silent(client: socket.socket) -> None:
    """Fail where an answer comes: the proxy and its echo need a thousandth of the time given."""
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(10)


def test_bytes_pass_in_both_directions(proxy: FaultProxy) -> None:
    with connect(proxy) as client:
        assert ask(client, b"one") == b"ONE"
        assert ask(client, b"two") == b"TWO"


def test_a_refused_connection_works_again_on_the_same_port_after_restore(
    proxy: FaultProxy,
) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)

    proxy.restore()
    with connect(proxy) as client:
        assert ask(client, b"back") == b"BACK"


def test_refusing_cuts_the_connections_that_are_open(proxy: FaultProxy) -> None:
    with connect(proxy) as client:
        assert ask(client, b"up") == b"UP"
        proxy.refuse()
        assert client.recv(1) == b""
        assert proxy.open_connections == 0


def test_silence_holds_an_open_connection_and_restore_lets_it_go_on(
    proxy: FaultProxy,
) -> None:
    with connect(proxy) as client:
        assert ask(client, b"before") == b"BEFORE"
        proxy.silence()
        client.sendall(b"held")
        assert_silent(client)

        proxy.restore()
        assert client.recv(1024) == b"HELD"


def test_silence_accepts_a_new_connection_without_an_answer(proxy: FaultProxy) -> None:
    proxy.silence()
    with connect(proxy) as client:
        client.sendall(b"hello")
        assert_silent(client)
        assert proxy.open_connections == 1


def test_a_delayed_connection_goes_through_when_the_delay_is_over(
    proxy: FaultProxy,
) -> None:
    proxy.delay(0.05)
    with connect(proxy) as client:
        assert ask(client, b"late") == b"LATE"


def test_restore_ends_a_delay_that_would_have_lasted_an_hour(proxy: FaultProxy) -> None:
    proxy.delay(3600)
    with connect(proxy) as client:
        client.sendall(b"soon")
        assert_silent(client)

        proxy.restore()
        assert client.recv(1024) == b"SOON"


def test_an_answer_is_cut_after_the_given_bytes(proxy: FaultProxy) -> None:
    proxy.cut_answers_after(4)
    with connect(proxy) as client:
        client.sendall(b"shortened")
        received = b"".join(iter(lambda: client.recv(1024), b""))
        assert received == b"SHOR"


def test_a_cut_leaves_new_connections_working(proxy: FaultProxy) -> None:
    with connect(proxy) as client:
        assert ask(client, b"one") == b"ONE"
        proxy.cut()
        assert client.recv(1) == b""
    with connect(proxy) as client:
        assert ask(client, b"two") == b"TWO"


def test_accepted_connections_are_counted(proxy: FaultProxy) -> None:
    for _ in range(3):
        with connect(proxy) as client:
            ask(client, b"x")
    assert proxy.accepted == 3


def test_an_upstream_that_is_away_is_a_lost_connection() -> None:
    with FaultProxy(Endpoint.tcp(1)) as proxy, connect(proxy) as client:
        assert client.recv(1) == b""
