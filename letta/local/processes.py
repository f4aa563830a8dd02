"""Processes that outlive the program that started them, and are ended by their own pid alone."""

import json
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

POLL_S = 0.1
STOP_DEADLINE_S = 30.0


@dataclass(frozen=True)
class Process:
    """A server that was started here; its birth tells it from a later process of the same pid."""

    pid: int
    born: str
    port: int

    @classmethod
    def remembered(cls, file: Path) -> Self | None:
        """Return the process that `file` tells of; None where it tells of none that still runs."""
        try:
            process = cls(**json.loads(file.read_text()))
        except (FileNotFoundError, json.JSONDecodeError):  # never started, or cut off while written
            return None
        return process if process.is_alive() else None

    @classmethod
    def of(cls, child: "subprocess.Popen[bytes]", *, port: int) -> Self:
        """Return what is to be remembered of a child."""
        return cls(child.pid, birth_of(child.pid) or "gone at once", port)

    def remember(self, file: Path) -> None:
        """Write down what `remembered` reads."""
        file.write_text(json.dumps(asdict(self)))

    def is_alive(self) -> bool:
        """Tell whether it still runs."""
        return birth_of(self.pid) == self.born

    def stop(self, how: signal.Signals) -> None:
        """Ask it to end and return when it is gone; it is killed where it does not go."""
        for asked in (how, signal.SIGKILL):
            if self.is_alive():
                os.kill(self.pid, asked)
            if wait_until(lambda: not self.is_alive(), deadline_s=STOP_DEADLINE_S):
                return


def launch(
    command: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str],
    account: str | None = None,
    folder: Path | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own and let `log` have what it says.

    It runs as `account` and in `folder` where they are given, else as we do.
    """
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603  # commands of our own making
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            user=account,
            group=account_group(account),
            extra_groups=None if account is None else [],
        )


def run_to_its_end(command: Sequence[str], **variables: str) -> int:
    """Run a program on our terminal and return its exit status, whoever is told to stop."""
    child = subprocess.Popen(command, env=outer_environment() | variables)  # noqa: S603  # as asked
    # Ctrl-C reaches the child as well: it tidies up, and then there is our own tidying to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    return child.wait()


def outer_environment() -> dict[str, str]:
    """Return our environment without the PYTHONPATH by which make lets us be found."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def account_group(account: str | None) -> int | None:
    """Return the primary group of an account."""
    return None if account is None else pwd.getpwnam(account).pw_gid


def birth_of(pid: int) -> str | None:
    """Return when a process began, in ticks since which boot; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name, in parentheses, may hold anything; the state is the first field after it.
    state, *fields = stat.rpartition(")")[2].split()
    if state in {"Z", "X"}:
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{fields[18]} of {boot}"


def wait_until(condition: Callable[[], bool], *, deadline_s: float) -> bool:
    """Return whether the condition came true before the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True
