import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from letta.local.folder import Folder
from letta.local.processes import Process, birth_of
from tests.deployment.conftest import link_installation
from tests.deployment.files import ROOT
from tests.support.ports import LOOPBACK, port_of
from tests.support.wait import wait_until

LOCK = (ROOT / "letta" / "requirements.lock").read_text()
OF_OUTER_MAKE = {"MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"}


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of a make that is not below another one."""
    inherited = {name: value for name, value in os.environ.items() if name not in OF_OUTER_MAKE}
    return inherited | variables


@dataclass(frozen=True)
class LocalLetta:
    """A folder for `make letta`, of the test's own."""

    folder: Path
    port: int

    def make(self, target: str) -> "subprocess.CompletedProcess[str]":
        command = ["make", "--no-print-directory", target, f"PYTHON={sys.executable}"]
        command += [f"LETTA_DIR={self.folder}", f"LETTA_PORT={self.port}"]
        return self._run(command, environment())

    def lend(self, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a program the way `make test-letta` runs pytest."""
        variables |= {"LETTA_DIR": str(self.folder), "LETTA_PORT": str(self.port)}
        local = [sys.executable, "-m", "local", "lend", *command]
        return self._run(local, environment(PYTHONPATH="letta", **variables))

    def _run(
        self, command: list[str], variables: dict[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
        )

    def up(self) -> httpx.Client:
        """Bring it up and return a client for the address that was printed last."""
        made = self.make("letta")
        assert made.returncode == 0, made.stdout + made.stderr
        name, _, address = made.stdout.splitlines()[-1].partition("=")
        assert name == "LETTA_BASE_URL"
        return httpx.Client(base_url=address, timeout=30)

    def process(self, name: str) -> Process:
        """Return what the folder says that runs: `letta` or `postgres`."""
        return Process(**json.loads((self.folder / f"{name}.json").read_text()))


@pytest.fixture
def nothing_installed(tmp_path: Path) -> Iterator[LocalLetta]:
    with socket.create_server((LOOPBACK, 0)) as taken:
        yield LocalLetta(tmp_path / "letta", port_of(taken))


@pytest.fixture(scope="module")
def local_letta(
    installed_letta: Folder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalLetta]:
    with socket.create_server((LOOPBACK, 0)) as free:
        letta = LocalLetta(tmp_path_factory.mktemp("letta"), port_of(free))
    link_installation(installed_letta, letta.folder)
    yield letta
    letta.make("letta-clean")


def test_every_pin_of_the_local_letta_has_its_hashes() -> None:
    pins = re.findall(r"^[\w.-]+==.*\n(.*)", LOCK, re.MULTILINE)

    assert len(pins) > 200
    assert [line for line in pins if not line.startswith("    --hash=sha256:")] == []


def test_the_lock_file_of_the_local_letta_names_no_place_to_fetch_from() -> None:
    assert "://" not in LOCK
    assert "--index" not in LOCK


def test_a_port_that_is_taken_is_said_before_anything_is_installed(
    nothing_installed: LocalLetta,
) -> None:
    made = nothing_installed.make("letta")

    assert made.returncode != 0
    assert f"cannot listen on port {nothing_installed.port}: Address already in use" in made.stderr
    assert "Traceback" not in made.stderr
    assert not (nothing_installed.folder / "venv").exists()


def test_stopping_what_was_never_started_does_nothing(nothing_installed: LocalLetta) -> None:
    made = nothing_installed.make("letta-stop")

    assert (made.returncode, made.stdout) == (0, "")
    assert not nothing_installed.folder.exists()


def test_the_suite_runs_against_the_letta_that_the_environment_names(
    nothing_installed: LocalLetta,
) -> None:
    lent = nothing_installed.lend(
        "sh", "-c", "echo $LETTA_BASE_URL; exit 3", LETTA_BASE_URL="http://letta.example"
    )

    assert (lent.returncode, lent.stdout) == (3, "http://letta.example\n")
    assert not nothing_installed.folder.exists()


def test_a_pid_that_another_process_has_by_now_is_not_taken_for_ours(tmp_path: Path) -> None:
    ours = Process(os.getpid(), birth_of(os.getpid()) or "", port=1)
    later = Process(os.getpid(), "0 of another boot", port=1)
    note = tmp_path / "note.json"

    ours.remember(note)
    assert Process.remembered(note) == ours
    later.remember(note)
    assert Process.remembered(note) is None


def test_a_note_that_was_cut_off_tells_of_no_process(tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    note.write_text('{"pid": 1')

    assert Process.remembered(note) is None


def test_a_process_that_does_not_go_when_asked_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("letta.local.processes.STOP_DEADLINE_S", 0.2)
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        Process.of(child, port=1).stop(signal.SIGTERM)

    assert child.returncode == -signal.SIGKILL


@pytest.mark.letta
def test_a_running_letta_is_found_again(local_letta: LocalLetta) -> None:
    with local_letta.up() as first:
        before = [local_letta.process(name) for name in ("letta", "postgres")]
        with local_letta.up() as second:
            assert first.base_url == second.base_url
            assert second.get("/v1/agents/count").json() >= 0

    assert [local_letta.process(name) for name in ("letta", "postgres")] == before


@pytest.mark.letta
@pytest.mark.parametrize("killed", ["letta", "postgres"])
def test_a_letta_whose_processes_were_killed_comes_back_with_its_data(
    local_letta: LocalLetta, killed: str
) -> None:
    with local_letta.up() as letta:
        created = letta.post(
            "/v1/blocks/", json={"label": "survivor", "value": f"of a killed {killed}"}
        ).raise_for_status()
    victim = local_letta.process(killed)
    os.kill(victim.pid, signal.SIGKILL)
    wait_until(lambda: not victim.is_alive(), describe=f"{killed} is gone")

    with local_letta.up() as letta:
        found = letta.get(f"/v1/blocks/{created.json()['id']}").raise_for_status()

    assert found.json()["value"] == f"of a killed {killed}"


@pytest.mark.letta
def test_stopping_ends_both_processes_and_twice_is_fine(local_letta: LocalLetta) -> None:
    local_letta.up().close()
    processes = [local_letta.process(name) for name in ("letta", "postgres")]

    first, second = (local_letta.make("letta-stop") for _ in range(2))

    assert (first.returncode, first.stdout) == (0, "Letta is stopped\nPostgreSQL is stopped\n")
    assert (second.returncode, second.stdout) == (0, "")
    assert [process.is_alive() for process in processes] == [False, False]


@pytest.mark.letta
def test_a_letta_that_was_there_is_lent_and_left_and_one_of_its_own_is_stopped(
    local_letta: LocalLetta,
) -> None:
    code = "import os, urllib.request as u; u.urlopen(os.environ['LETTA_BASE_URL'] + '/v1/health/')"
    local_letta.up().close()
    there = local_letta.process("letta")

    lent = local_letta.lend(sys.executable, "-c", code)
    assert lent.returncode == 0, lent.stderr
    assert there.is_alive()

    local_letta.make("letta-stop")
    lent = local_letta.lend(sys.executable, "-c", code)
    assert lent.returncode == 0, lent.stderr
    assert "Letta is stopped" in lent.stdout
