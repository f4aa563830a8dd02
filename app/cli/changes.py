"""How a command tells what it changed, or in a dry run would change."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.cli.output import note, say, show


def tell_change(
    answer: Mapping[str, Any], sentences: Iterable[str], *, diff: str | None, as_json: bool
) -> None:
    """Print a change as JSON or in sentences; the `diff` of a dry run stands for the sentences."""
    if as_json:
        say(answer, "", as_json=True)
    elif diff is None:
        tell(sentences)
    else:
        show(diff or "Nothing would change.\n")


def tell(sentences: Iterable[str]) -> None:
    """Print sentences, a line each."""
    show("".join(f"{sentence}\n" for sentence in sentences))


def tell_skipped(skipped: Iterable[str]) -> None:
    """Tell beside the result what was left alone, and why."""
    for sentence in skipped:
        note(f"Skipped {sentence}")
