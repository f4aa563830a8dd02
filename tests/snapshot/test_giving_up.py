"""A snapshot that nobody waits for any more is not read to its end."""

import os
import socket
from pathlib import Path

import pytest

from tests.conftest import StartLive
from tests.snapshot.files import encoded, foreign, squeezed
from tests.support.client import Api
from tests.support.ports import LOOPBACK
from tests.support.service import LiveService
from tests.support.tree import unique_checkpoint
from tests.support.wait import wait_until

ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
# Lawful lines that keep a core busy for a minute or more.
ENDLESS = squeezed((encoded(foreign("again")) + b"\n") * 10_000, 300)


@pytest.fixture
def live(start_live: StartLive) -> LiveService:
    return start_live(LINEAGE_LOG_LEVEL="info")


def judging(live: LiveService, checkpoint: str) -> socket.socket:
    """Send a restore that takes long; return its connection once the service is well into it."""
    before_s = used_s(live)
    connection = socket.create_connection((LOOPBACK, live.port))
    head = (
        f"POST /checkpoints/{checkpoint}/restore HTTP/1.1\r\nHost: {LOOPBACK}\r\n"
        f"Content-Type: application/gzip\r\nContent-Length: {len(ENDLESS)}\r\n\r\n"
    )
    connection.sendall(head.encode() + ENDLESS)
    wait_until(lambda: used_s(live) > before_s + 1, describe="it works on the snapshot", timeout=30)
    return connection


def used_s(live: LiveService) -> float:
    """Return how long the service has used a core so far."""
    fields = Path(f"/proc/{live.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


@ON_SQLITE
def test_the_work_ends_when_the_client_hangs_up(live: LiveService) -> None:
    checkpoint = unique_checkpoint()

    judging(live, checkpoint).close()

    wait_until(lambda: '"status": 499' in live.log, describe="the restore has ended", timeout=15)
    with Api(live.base_url) as api:
        assert api.get_checkpoint(checkpoint).status_code == 404
    assert "Traceback" not in live.log


@ON_SQLITE
def test_a_service_that_stops_gives_the_work_up_without_a_traceback(live: LiveService) -> None:
    with judging(live, unique_checkpoint()):
        live.terminate()

    assert "Application shutdown complete" in live.log
    assert "Traceback" not in live.log
