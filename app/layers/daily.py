"""Daily notes: what was written down on a day, read from its file or kept by itself."""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.layers.markdown.blocks import Kind, blocks
from app.layers.markdown.facts import as_item, fact, plain
from app.layers.markdown.lines import INNER
from app.layers.markdown.shields import unshielded
from app.layers.words import has_words
from app.lineage.errors import InvalidInput
from app.lineage.instants import CLOCK, OFFSET, read_rfc3339

# Only with its offset: a bare time of day is a person's own word.
TIME = re.compile(rf"({CLOCK}(?::[0-5]\d)?{OFFSET})[ \t]+(?=\S)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DayItem:
    """One daily note: what it says, its day, and the heading that it stands below in a file.

    `at` is the time of day with its offset, such as `09:30+09:00`, None where nobody wrote it down.
    """

    text: str
    date: dt.date
    at: str | None = None
    heading: str | None = None

    @property
    def fact(self) -> str:
        """The normal form by which it is compared."""
        return fact(self.text)

    @property
    def instant(self) -> str | None:
        """Day and time as RFC 3339 writes them, None where nobody wrote down the time."""
        if self.at is None:
            return None
        seconds = "" if self.at[len("09:30")] == ":" else ":00"
        time, offset = self.at[: len("09:30")], self.at[len("09:30") :]
        return f"{self.date.isoformat()}T{time}{seconds}{offset}"


def time_of_day(instant: dt.datetime) -> str:
    """Return the time of day of a local instant with its offset, as `09:30+09:00`."""
    return instant.isoformat(timespec="seconds" if instant.second else "minutes").partition("T")[2]


def read_instant(text: str) -> dt.datetime:
    """Read a time with its offset as RFC 3339 writes it. InvalidInput."""
    instant = read_rfc3339(text)
    if instant is None or instant.tzinfo is None:
        raise InvalidInput(
            "A time is written as 2026-03-14T09:30:00+09:00, with its offset.", place=("body", "at")
        )
    return instant


def read_day(text: str, date: dt.date) -> list[DayItem]:
    """Return what a day's file says, item by item; nothing that says something is left out."""
    found = []
    heading = None
    for block in blocks(text):
        if block.kind is Kind.HEADING:
            heading = title_of(block.title, date)
        elif block.kind is not Kind.OTHER and has_words(block.text):
            found.append(_read(block.text, date, heading))
    return found


def read_note(
    text: str, date: dt.date, *, at: str | None = None, heading: str | None = None
) -> list[DayItem]:
    """Return what a daily note that is kept by itself says, which may be several items.

    One that is no more than a heading or a comment is an item too.
    """
    return [
        replace(item, at=item.at or at, heading=item.heading or heading)
        for item in read_day(text, date) or read_day(as_item(text), date)
    ]


def as_note(item: DayItem) -> str:
    """Return an item as a text to be kept by itself, in which `read_note` finds that one fact.

    A line stands without a bullet, unless it is something else then; several are a list item.
    """
    said = plain(item.text)
    first, *rest = said.split("\n")
    listed = "\n".join([first, *_indented(rest)])
    forms = [f"- {listed}", f"- {item.at} {listed}", said, as_item(said).rstrip("\n")]
    if not rest:
        forms.insert(0, said)
    return next((form for form in forms if _says_only(form, item)), said)


def _read(text: str, date: dt.date, heading: str | None) -> DayItem:
    said = plain(text)
    time = TIME.match(said)
    return DayItem(
        text=unshielded(said[time.end() :] if time else said),
        date=date,
        at=time[1] if time else None,
        heading=heading,
    )


def title_of(heading: str | None, date: dt.date) -> str | None:
    """Return a heading's words; None for the day's own, which is its date and what goes with it."""
    title = (heading or "").strip()
    own = not title or title.split()[0].rstrip(",:") == date.isoformat()
    return None if own else title


def _says_only(text: str, item: DayItem) -> bool:
    return [found.fact for found in read_note(text, item.date)] == [item.fact]


def _indented(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines below a list item's first one, so that they belong to it."""
    if all(line.startswith(INNER) for line in lines if line.strip()):
        return lines
    return [f"  {line}" if line.strip() else "" for line in lines]
