"""docs/layers.md shows only what was run: its example is run here, and its output compared.

`python -m tests.docs.test_layers` writes the output anew.
"""

import datetime as dt
import re
import tempfile
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.cli.test_manual import BLOCK, Terminal, steps
from tests.conftest import StartLive
from tests.support.service import LiveService
from tests.support.storage import Storage

PAGE = ROOT / "docs" / "layers.md"
# The page's today.
TODAY = "2026-11-30"
VOLATILE = (
    (re.compile(r'"created_at":"[^"]+"'), '"created_at":"…"'),
    (re.compile(r"\d\.\d{3} │"), "….… │"),
)


def settled(output: str) -> str:
    for pattern, replacement in VOLATILE:
        output = pattern.sub(replacement, output)
    return output.strip()


class Desk:
    """A folder with the scripts beside it, and a service, on the page's day."""

    def __init__(self, folder: Path, service: LiveService) -> None:
        self._terminal = Terminal(folder, service, service)
        (folder / "scripts").symlink_to(ROOT / "scripts")

    def run(self, command: str) -> str:
        """Return what a command prints."""
        today = dt.datetime.now(dt.UTC).date().isoformat()
        shown = self._terminal.run(command.replace(TODAY, today)).replace(today, TODAY)
        return shown if shown.endswith("\n") or not shown else f"{shown}\n"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_example_shows_what_its_commands_print(start_live: StartLive, tmp_path: Path) -> None:
    desk = Desk(tmp_path, start_live())
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    shown = [step for block in blocks for step in steps(block)]
    assert len(shown) > 12

    for command, output in shown:
        assert settled(desk.run(command)) == settled(output), command


def main() -> None:
    """Write the page's screens anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "desk").mkdir()
        with LiveService(Storage(folder / "data"), scratch=folder) as service:
            desk = Desk(folder / "desk", service)

            def run(block: re.Match[str]) -> str:
                screens = [f"$ {command}\n{desk.run(command)}" for command, _ in steps(block[1])]
                return f"```console\n{''.join(screens)}```"

            page = BLOCK.sub(run, PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
