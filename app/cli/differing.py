"""How what differs between a folder and a checkpoint is told: in sentences, as a diff, as JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from app.layers.daily import DayItem
from app.layers.diffs import unified
from app.layers.markdown.cut import cut
from app.workspace.syncing import Comparison, Difference, Way

# Of a daily note, in letters: enough to find it in the file of its day.
FIRST_WORDS = 40
WAYS = {
    Way.PUSH: "Push sends",
    Way.PULL: "Pull brings",
    Way.CONFLICT: "Both sides changed",
    Way.GONE_HERE: "The folder no longer has",
    Way.GONE_THERE: "The checkpoint no longer has",
}


def told(
    comparison: Comparison, verb: str, *, renamed: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """Yield a sentence for each section and note, with its new ref if it has one, and each day."""
    for section in comparison.core:
        yield f"{verb} the section {section.key} of core."
    for note in comparison.notes:
        new = f" as {renamed[note.key]}" if note.key in renamed else ""
        yield f"{verb} the note {note.key}{new}."
    days = Counter(_day_of(day) for day in comparison.days)
    for day, count in sorted(days.items()):
        yield f"{verb} {count} {'note' if count == 1 else 'notes'} of the day {day}."


def told_of_all(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence for each difference, whatever it asks for."""
    for way, verb in WAYS.items():
        yield from told(comparison.having(way), verb)


def names(comparison: Comparison) -> dict[str, str]:
    """Return by its key what a person calls each difference: a daily note its day and its words."""
    texts = {item.key: item.key for item in (*comparison.core, *comparison.notes)}
    return texts | {item.key: f"{_day_of(item)}, {_begins(item)!r}" for item in comparison.days}


def diff(comparison: Comparison) -> str:
    """Return a unified diff that turns what the checkpoint holds into what the folder does."""
    texts = [
        *((f"core/{item.key}", item.remote, item.local) for item in comparison.core),
        *((f"archival/{item.key}", item.remote, item.local) for item in comparison.notes),
        *((_day_of(item), _said(item.remote), _said(item.local)) for item in comparison.days),
    ]
    return "".join(unified(name, old, new) for name, old, new in texts)


def jsonable(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    """Return the differences for scripts; null stands for the side that lacks it."""
    return {
        "core": [_shown(item, item.local, item.remote) for item in comparison.core],
        "notes": [_shown(item, item.local, item.remote) for item in comparison.notes],
        "days": [_shown(item, _said(item.local), _said(item.remote)) for item in comparison.days],
    }


def _shown(item: Difference[Any], local: str | None, remote: str | None) -> dict[str, Any]:
    return {"key": item.key, "way": item.way.value, "local": local, "remote": remote}


def _day_of(item: Difference[DayItem]) -> str:
    return item.key.partition("/")[0]


def _begins(item: Difference[DayItem]) -> str:
    said = item.local or item.remote
    return cut(said.text, FIRST_WORDS) if said else ""


def _said(item: DayItem | None) -> str | None:
    return None if item is None else f"{item.text}\n"
