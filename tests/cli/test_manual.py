"""docs/cli.md shows only what was run: its commands are run here, and their output compared.

`python -m tests.cli.test_manual` writes the output anew.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.running import ROOT, environment
from tests.conftest import StartLive
from tests.support.service import LiveService
from tests.support.storage import Storage

MANUAL = ROOT / "docs" / "cli.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
# Sizes follow times, which differ from run to run; scores may differ in the last digit; notes have
# the day on which they were written.
VOLATILE = (
    (re.compile(r"[\d,]+ bytes"), "… bytes"),
    (re.compile(r"\S+ is writable, .*? free"), "… is writable, … free"),
    (re.compile(r"\d\.\d{3} │"), "….… │"),
    (re.compile(r"\d{4}-\d{2}-\d{2}"), "…"),
)


def steps(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output that the page shows of it."""
    parts = [step.partition("\n") for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, output) for command, _, output in parts]


def settled(output: str) -> str:
    for pattern, replacement in VOLATILE:
        output = pattern.sub(replacement, output)
    return output.strip()


class Terminal:
    """A folder, two services, and a shell."""

    def __init__(self, folder: Path, here: LiveService, other: LiveService) -> None:
        self._folder = folder
        self._here, self._other = here.base_url, other.base_url
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "data").symlink_to(here.storage.data_dir)

    def run(self, command: str) -> str:
        """Return what a command prints, with the addresses as the page has them."""
        plain, real = "http://127.0.0.1:8000", self._here
        there = command.replace("http://other:8000", self._other)
        done = subprocess.run(
            [
                "/bin/bash",
                "-c",
                f'letta-lineage() {{ {sys.executable} -m app.cli "$@"; }}\n'
                + there.replace("localhost:8000", real.removeprefix("http://")),
            ],
            env=environment(real),
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=True,
        )
        shown = done.stdout.replace(self._other, "http://other:8000").replace(real, plain)
        return shown.replace(str(self._folder), "/srv/lineage")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_manual_shows_what_its_commands_print(start_live: StartLive, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, start_live(), start_live())
    blocks = BLOCK.findall(MANUAL.read_text(encoding="utf-8"))
    shown = [step for block in blocks for step in steps(block)]
    assert len(shown) > 15

    for command, output in shown:
        assert settled(terminal.run(command)) == settled(output), command


def main() -> None:
    """Write the page's screens anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("work", "here", "other"):
            (folder / part).mkdir()
        with (
            LiveService(Storage(folder / "here" / "data"), scratch=folder / "here") as here,
            LiveService(Storage(folder / "other" / "data"), scratch=folder / "other") as other,
        ):
            terminal = Terminal(folder / "work", here, other)

            def run(block: re.Match[str]) -> str:
                screens = [
                    f"$ {command}\n{terminal.run(command)}" for command, _ in steps(block[1])
                ]
                return f"```console\n{''.join(screens)}```"

            page = BLOCK.sub(run, MANUAL.read_text(encoding="utf-8"))
    MANUAL.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
