"""How the scripts speak: a short report, with a dry run's diff, and an exit code."""

import os
import re
import sys
from collections.abc import Callable

from app.lineage.errors import LineageError
from app.workspace.errors import BadInput, WorkspaceError
from app.workspace.outcome import Outcome

DONE, REFUSED, BAD_INPUT = 0, 1, 2
# What moves a terminal's cursor or turns its text around: notes are other people's words.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def told(call: Callable[[], Outcome], *, dry_run: bool) -> int:
    """Do a call, print what it did or would do, and return the exit code."""
    try:
        outcome = call()
    except BadInput as error:
        _print(str(error), to_stderr=True)
        return BAD_INPUT
    except (WorkspaceError, LineageError) as error:
        _print(str(error), to_stderr=True)
        return REFUSED
    for sentence in outcome.skipped:
        _print(f"Skipped {sentence}", to_stderr=True)
    if dry_run:
        _print(outcome.diff.removesuffix("\n") or "Nothing would change.")
    else:
        for sentence in outcome.report:
            _print(sentence)
    return DONE


def _print(text: str, *, to_stderr: bool = False) -> None:
    """Print text, which a terminal shows and does not obey; a file gets it as it is."""
    stream = sys.stderr if to_stderr else sys.stdout
    if stream.isatty():
        text = UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    try:
        stream.buffer.write(f"{text}\n".encode(errors="replace"))
        stream.flush()
    except BrokenPipeError:
        # Whoever read has seen enough; what comes still, and Python's last flush, goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
