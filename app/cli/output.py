"""How commands speak: results on standard output, bars and complaints on standard error."""

import errno
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NoReturn

import httpx
import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from app.cli.options import EXIT_BAD_INPUT, EXIT_REFUSED, EXIT_UNREACHABLE
from app.client import BadSegment, NotConfigured, Refused, Unreachable
from app.client.run_file import BadRunFile
from app.layers.errors import CredentialInCore
from app.lineage.errors import InvalidInput, LineageError
from app.workspace import errors as workspace

# What a gateway says of a service that is away, and the service of a database that is.
AWAY = {502, 503, 504}
# Too large, or not what it should be: the same again will be refused again.
BAD = {413, 415, 422}
# Wider than the longest line of an entry.
NO_EDGE = 1_000_000
BAD_INPUT = (
    BadRunFile,
    BadSegment,
    CredentialInCore,
    InvalidInput,
    NotConfigured,
    workspace.BadInput,
)
# What moves a terminal's cursor or turns its text around: entries are other people's words. And
# what no encoding has: a file's name may be any bytes.
UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class BadInput(Exception):
    """What was given cannot be used; the message says why."""


def to_stdout() -> Console:
    """Return where results go; colours only on a terminal, and not with NO_COLOR.

    In a pipe there is no edge at which lines are folded.
    """
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = NO_EDGE
    return console


def to_stderr() -> Console:
    """Return where bars and complaints go."""
    return Console(stderr=True, highlight=False, emoji=False, markup=False)


def printable(text: str) -> str:
    """Return text that a terminal shows and does not obey."""
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number of things in words."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def say(answer: Mapping[str, Any], sentence: str, *, as_json: bool) -> None:
    """Print a result: for scripts, or for people."""
    typer.echo(json.dumps(answer) if as_json else printable(sentence))


def show(text: str) -> None:
    """Print a text as it is: a terminal shows it and does not obey, a pipe gets every byte."""
    if sys.stdout.isatty():
        text = printable(text)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.buffer.flush()


def note(sentence: str) -> None:
    """Tell something beside the result."""
    typer.echo(printable(sentence), err=True)


def fail(message: str, *, code: int) -> NoReturn:
    """End the command with a sentence and an exit code."""
    note(f"letta-lineage: {message}")
    raise typer.Exit(code)


class _Known(ProgressColumn):
    """A column that is empty while nobody knows how much there is."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: Task) -> RenderableType:
        return "" if task.total is None else self._column.render(task)


class Bar:
    """A bar on standard error; where nobody watches, nothing."""

    def __init__(self, progress: Progress, title: str, total: int | None, then: str | None) -> None:
        self._progress = progress
        self._task = progress.add_task(printable(title), total=total)
        self._then = then
        self._left = total

    def advance(self, by: int = 1) -> None:
        """Move on; at the end, show what is waited for then."""
        self._progress.advance(self._task, by)
        if self._left is None or self._then is None:
            return
        self._left -= by
        if self._left <= 0:
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(printable(self._then), total=None)

    def expect(self, total: int | None) -> None:
        """Say how much there is in all."""
        self._progress.update(self._task, total=total)


@contextmanager
def bar(
    title: str,
    *,
    total: int | None,
    quiet: bool,
    unit: Literal["steps", "bytes"] = "steps",
    then: str | None = None,
) -> Iterator[Bar]:
    """Show a bar of steps or of bytes while the block runs; `then` is what follows the last one."""
    console = to_stderr()
    size: tuple[ProgressColumn, ...] = (
        (DownloadColumn(), TransferSpeedColumn()) if unit == "bytes" else (MofNCompleteColumn(),)
    )
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *(_Known(column) for column in size),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=hidden) as progress:
        yield Bar(progress, title, total, then)


@contextmanager
def said_plainly() -> Iterator[None]:
    """Turn what can go wrong into a sentence and an exit code."""
    try:
        yield
    except (BadInput, *BAD_INPUT) as error:
        fail(str(error), code=EXIT_BAD_INPUT)
    except (workspace.WorkspaceError, LineageError) as error:
        fail(str(error), code=EXIT_REFUSED)
    except Refused as error:
        fail(str(error), code=_code_of(error.status))
    except Unreachable as error:
        nobody = isinstance(error.__cause__, httpx.ConnectError)
        hint = " Is the service running? (letta-lineage serve)" if nobody else ""
        fail(f"{error}{hint}", code=EXIT_UNREACHABLE)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read our output has had enough
            raise
        where = f"{error.filename}: " if error.filename else ""
        fail(f"{where}{error.strerror or error}.", code=EXIT_BAD_INPUT)


def _code_of(status: int) -> int:
    if status in AWAY:
        return EXIT_UNREACHABLE
    return EXIT_BAD_INPUT if status in BAD else EXIT_REFUSED
