"""Pages and help texts show no `letta-lineage …` with a command or an option that is not there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from app.cli import app
from tests.cli.running import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# In backticks, or as a line of a shell: prose that names the project is no command.
EXAMPLE = re.compile(r"^ *(?:\$ )?(?:\w+=\S+ )*(?:\.venv/bin/)?letta-lineage (.+)$", re.MULTILINE)
INLINE = re.compile(r"`letta-lineage ([^`]+)`")

Command: TypeAlias = TyperCommand | TyperGroup


def known(command: object) -> Command:
    assert isinstance(command, TyperCommand | TyperGroup)
    return command


CLI = known(typer.main.get_command(app))


def words(line: str) -> list[str]:
    """Return a command's words, up to what is the shell's, or stands for something."""
    parts = shlex.shlex(line, posix=True, punctuation_chars=True)
    parts.whitespace_split = True
    taken = []
    for word in parts:
        if set(word) & set("|&;<>()…"):
            break
        taken.append(word)
    return taken


def unknown(line: str) -> list[str]:
    """Return what a command line names that there is not: a command, or options."""
    command: Command = CLI
    rest = words(line)
    while isinstance(command, TyperGroup) and rest:
        name = rest.pop(0)
        if name not in command.commands:
            return [name]
        command = known(command.commands[name])
    names = [(*param.opts, *param.secondary_opts) for param in command.params]
    options = {"-", "--help"}.union(*names)
    return [word for word in rest if word.startswith("-") and word not in options]


def commands_of(command: Command) -> Iterator[Command]:
    yield command
    if isinstance(command, TyperGroup):
        for inner in command.commands.values():
            yield from commands_of(known(inner))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_commands_and_options_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = [*EXAMPLE.findall(text), *INLINE.findall(text)]

    assert {line: wrong for line in lines if (wrong := unknown(line))} == {}


def test_a_help_text_names_commands_and_options_that_exist() -> None:
    texts = [command.epilog or "" for command in commands_of(CLI)]
    lines = [line for text in texts for line in EXAMPLE.findall(text)]

    assert len(lines) > 30
    assert {line: wrong for line in lines if (wrong := unknown(line))} == {}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("serve", []),
        ("workspace push notes exp1 --dry-run", []),
        ("backup exp1 -o - | ssh other 'cat > file --no-option'", []),
        ("sreve", ["sreve"]),
        ("workspace sync notes", ["sync"]),
        ("tree exp1 --color", ["--color"]),
        ("workspace push notes --force", ["--force"]),
    ],
)
def test_what_does_not_exist_is_seen(line: str, wrong: list[str]) -> None:
    assert unknown(line) == wrong
