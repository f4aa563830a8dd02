"""A test run that is told to end leaves neither a PostgreSQL nor its files."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service import REPOSITORY
from tests.support.wait import wait_until

# The shared server is asked for by its fixture, as every test on PostgreSQL does.
WAITING = """
import signal

def test_that_never_ends(postgres):
    with open("server", "x") as told:
        print(postgres.pid, postgres.socket_path.parent, file=told)
    while True:
        signal.pause()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_takes_its_postgresql_along(
    tmp_path: Path, how: signal.Signals
) -> None:
    (tmp_path / "test_waiting.py").write_text(WAITING)
    told = tmp_path / "server"
    plugins = ("-p", "tests.conftest", "-p", "no:cacheprovider")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *plugins, "-c", REPOSITORY / "pyproject.toml", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        wait_until(lambda: told.exists() and told.read_text().endswith("\n"), describe="it waits")
        run.send_signal(how)
        if how is signal.SIGTERM:  # which `timeout` sends twice, and others until it has gone
            wait_until(lambda: _has_ended_in_spite_of(run, how), describe="the run ends")
        said, _ = run.communicate(timeout=60)

    pid, folder = told.read_text().split()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, said
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def _has_ended_in_spite_of(run: subprocess.Popen[str], how: signal.Signals) -> bool:
    run.send_signal(how)
    return run.poll() is not None
