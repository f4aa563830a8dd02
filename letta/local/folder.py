"""Where a local Letta keeps what."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"


class GiveUp(Exception):
    """What stops the start; its message is the sentence for whoever called make."""


@dataclass(frozen=True)
class Folder:
    """The folder $LETTA_DIR."""

    path: Path

    @property
    def python(self) -> Path:
        """The Python that Letta is installed in."""
        return self.path / "venv" / "bin" / "python"

    @property
    def migrations(self) -> Path:
        """The folder of alembic.ini."""
        return self.path / "migrations"

    @property
    def home(self) -> Path:
        """Letta's home: it writes below ~/.letta."""
        return self.path / "home"

    def file(self, name: str) -> Path:
        """Return the place of a stamp, a log or a note of what runs."""
        return self.path / name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one program at a time change the folder, which is made where it is missing."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self.file("lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def tail(log: Path, lines: int = 30) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
