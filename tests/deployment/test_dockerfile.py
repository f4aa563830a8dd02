import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.deployment.files import (
    ROOT,
    final_stage,
    image_environment,
    only,
    read_dockerfile,
)
from tests.deployment.health import run_health_check
from tests.support.ports import LOOPBACK, port_of, reserve_port

IMAGE = read_dockerfile()


@contextmanager
def health_endpoint(status: int) -> Iterator[int]:
    """Yield the port of a server that answers `status` to /healthz and 404 to the rest."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as inherited
            """Keep the test's output quiet."""

    with HTTPServer((LOOPBACK, 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_the_health_check_passes_while_the_service_is_alive() -> None:
    with health_endpoint(200) as port:
        assert run_health_check(port) == 0


@pytest.mark.parametrize("status", [404, 500, 503])
def test_the_health_check_fails_on_any_other_answer(status: int) -> None:
    with health_endpoint(status) as port:
        assert run_health_check(port) == 1


def test_the_health_check_fails_where_nobody_listens() -> None:
    with reserve_port() as nobody:
        assert run_health_check(port_of(nobody)) == 1


def test_the_service_does_not_run_as_root() -> None:
    user, _, group = only("USER", final_stage(IMAGE)).rest.partition(":")

    assert int(user) > 0
    assert int(group) > 0


def test_the_data_folder_is_a_volume() -> None:
    assert only("VOLUME", final_stage(IMAGE)).rest == image_environment(IMAGE)["LINEAGE_DATA_DIR"]


def test_the_start_command_gets_signals_without_a_shell_in_between() -> None:
    start = [only(word, final_stage(IMAGE)).exec_form for word in ("ENTRYPOINT", "CMD")]

    assert start == [["letta-lineage"], ["serve"]]


def test_everything_that_is_copied_exists_and_is_let_through_by_dockerignore() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [
        source
        for step in IMAGE
        if step.word == "COPY" and not step.rest.startswith("--from")
        for source in step.rest.split()[:-1]
    ]

    assert "*" in ignore
    assert sorted(f"!{source}" for source in copied) == sorted(
        line for line in ignore if line.startswith("!")
    )
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_only_hashed_packages_are_installed() -> None:
    installs = [step.rest for step in IMAGE if "pip install" in step.rest]

    assert len(installs) == 2
    assert all("--require-hashes" in text or "--no-deps" in text for text in installs)
