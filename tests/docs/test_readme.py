"""README shows only what was run: it is followed here from top to bottom, and its output compared.

Blocks that install or start something are listed instead of run; a new block is one or the other.
"""

import re
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.cli.test_manual import steps
from tests.conftest import StartLive
from tests.docs.shell import Shell, blocks
from tests.support.client import Api, answer

README = ROOT / "README.md"
# By how they begin.
NOT_RUN = {"make serve": "installs and serves", "make letta": "installs a Letta and serves"}
# Ids, times and scores differ from run to run; all else is to the letter.
VOLATILE = (
    (re.compile(r'"(id|entry_id)":"[0-9a-f]{24}"'), r'"\1":"…"'),
    (re.compile(r'"created_at":"[^"]+"'), '"created_at":"…"'),
    (re.compile(r'"request_id":"[0-9a-f]+"'), '"request_id":"…"'),
    (re.compile(r'"score":[0-9.]+'), '"score":"…"'),
)


def settled(output: str) -> str:
    for pattern, replacement in VOLATILE:
        output = pattern.sub(replacement, output)
    return output.strip()


def beginning(commands: str) -> str:
    return " ".join(commands.split()[:2])


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_it_can_be_followed_from_top_to_bottom(start_live: StartLive, tmp_path: Path) -> None:
    service = start_live()
    shell = Shell(tmp_path, service.base_url)
    shown, printed = 0, ""

    for block in blocks(README):
        match block.language:
            case "console":
                for command, output in steps(block.text):
                    assert settled(shell.run(command)) == settled(output), command
                    shown += 1
            case "sh" if beginning(block.text) not in NOT_RUN:
                # curl takes a refusal for an answer.
                assert "/problems/" not in shell.run(block.text), block.text
            case "python":
                printed += shell.run_python(block.text)
            case language:
                assert language in {"", "sh"}, f"nothing runs {language}"

    assert shown >= 10
    assert re.fullmatch(r"0\.\d+ exp1\.root Rate 0\.1 diverges after 200 steps\.\n", printed)
    with Api(service.base_url) as api:
        counts = {name: answer(api.get_checkpoint(name)) for name in ("bikes", "exp1", "exp2")}
    assert {name: count["entries"] for name, count in counts.items()} == {
        "bikes": 60,
        "exp1": 3,
        "exp2": 3,
    }


def test_what_is_listed_as_not_run_is_there() -> None:
    assert NOT_RUN.keys() <= {beginning(block.text) for block in blocks(README)}
