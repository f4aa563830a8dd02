"""The servers under test, each a process of its own."""

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.calls import Api, CallFailed

CHECKOUT = Path(__file__).parent.parent
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20


class ServerFailed(Exception):
    """A server did not come up; the message ends with the last lines of its log."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers on loopback."""

    port: int
    pid: int

    def resident_mib(self) -> float:
        """Return the memory that the process holds at this moment, in MiB."""
        return self._status_mib("VmRSS")

    def peak_resident_mib(self) -> float:
        """Return the most memory that the process ever held, in MiB."""
        return self._status_mib("VmHWM")

    def _status_mib(self, field: str) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        (kibibytes,) = re.findall(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
        return int(kibibytes) / 1024


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str],
    *,
    port: int,
    health: str,
    log: Path,
    env: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Start a server, wait until `health` answers, stop it in the end.

    Raises ServerFailed.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            # Not the checkout: a `.env` there would set what is measured.
            cwd=log.parent,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**_environment(), **(env or {})},
        )
    try:
        _wait_until_healthy(process, port=port, health=health, log=log)
        yield Server(port=port, pid=process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """Return this process's environment without the service's settings, the checkout importable."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LINEAGE_", "LETTA_"))
    }
    return {**inherited, "PYTHONPATH": str(CHECKOUT)}


def _wait_until_healthy(
    process: subprocess.Popen[bytes], *, port: int, health: str, log: Path
) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        api = Api(port)
        try:
            api.get(health)
        except (OSError, CallFailed):
            time.sleep(0.05)  # between two looks, not instead of one
        else:
            return
        finally:
            api.close()
    raise ServerFailed(f"{process.args!r} did not come up:\n{log.read_text()[-2000:]}")
