"""README shows only what was run: its commands are run here, and their output compared."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import StartService

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.compile(r"```console\n(.*?)```", re.DOTALL)
# Ids, times and scores differ from run to run; all else is to the letter.
VOLATILE = (
    (re.compile(r'"(id|entry_id)":"[0-9a-f]{24}"'), r'"\1":"…"'),
    (re.compile(r'"created_at":"[^"]+"'), '"created_at":"…"'),
    (re.compile(r'"request_id":"[0-9a-f]+"'), '"request_id":"…"'),
    (re.compile(r'"score":[0-9.]+'), '"score":"…"'),
)


def steps() -> list[tuple[str, str]]:
    """Return the commands with the output that README shows of each."""
    found = []
    for block in BLOCKS.findall(README.read_text(encoding="utf-8")):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            found.append((command, output))
    return found


def settled(output: str) -> str:
    for pattern, replacement in VOLATILE:
        output = pattern.sub(replacement, output)
    return output.strip()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_tour_shows_what_its_commands_print(start_service: StartService) -> None:
    address = start_service().base_url.removeprefix("http://")
    tour = steps()
    assert len(tour) >= 10

    for command, shown in tour:
        done = subprocess.run(
            ["/bin/bash", "-c", command.replace("localhost:8000", address)],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert settled(done.stdout) == settled(shown), command
