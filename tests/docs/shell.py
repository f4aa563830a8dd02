"""A shell in which a page's commands run as they stand there, and what a page holds of them."""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cli.running import ROOT, environment

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Where pages take the service to be.
ADDRESS = re.compile(r"(?:localhost|127\.0\.0\.1):8000")


@dataclass(frozen=True)
class Block:
    """A block of code, and what it is in."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, from its top to its bottom."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


class Shell:
    """A folder that looks like the checkout to the commands of a page, and a service."""

    def __init__(self, folder: Path, url: str, **variables: str) -> None:
        self._folder = folder
        self._address = url.removeprefix("http://")
        self._environment = environment(url, **variables)
        for part in ("examples", "scripts"):
            (folder / part).symlink_to(ROOT / part)
        command = folder / ".venv" / "bin" / "letta-lineage"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m app.cli "$@"\n')
        command.chmod(0o755)

    def run(self, commands: str) -> str:
        """Return what commands print; the first one that fails is an error, with what it said."""
        return self._output("/bin/bash", "-euo", "pipefail", "-c", commands)

    def run_python(self, code: str) -> str:
        """Return what a program prints."""
        return self._output(sys.executable, "-c", code)

    def _output(self, *command: str) -> str:
        *program, code = command
        done = subprocess.run(
            [*program, ADDRESS.sub(self._address, code)],
            env=self._environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
        return done.stdout
