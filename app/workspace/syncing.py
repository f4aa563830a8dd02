"""What a folder and a checkpoint owe each other: a comparison of three, and nothing is deleted.

Both sides are compared with what they held when they last agreed. What changed on one side goes to
the other; what changed on both is a conflict, for a person to settle, and so is a section of core
that refers to such a note on one side alone, for it may have given its words to it. What is missing
on one side and was not changed on the other since stays missing there, and stays here. Daily notes
are never changed but added to: each side gets the facts that it lacks.
"""

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from app.layers.core import Section
from app.layers.daily import DayItem, read_day
from app.layers.day_file import render_day
from app.layers.movements.state import mention_of
from app.layers.sections import body_text

T = TypeVar("T")


class Way(StrEnum):
    """What a difference asks for."""

    PUSH = "push"
    PULL = "pull"
    CONFLICT = "conflict"
    GONE_HERE = "gone-here"
    GONE_THERE = "gone-there"


@dataclass(frozen=True, slots=True)
class Side:
    """What one side holds: the sections of core, notes by ref (`topic/name`), daily notes."""

    core: Mapping[Section, str]
    notes: Mapping[str, str]
    days: tuple[DayItem, ...]


@dataclass(frozen=True, slots=True)
class Base:
    """What both sides held when they last agreed, as digests by key; empty where they never did."""

    core: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    days: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difference(Generic[T]):
    """One thing that differs; None stands for the side that lacks it.

    `key` is a section's slug, a note's ref, or a daily note's date with a digest behind it.
    """

    key: str
    way: Way
    local: T | None
    remote: T | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs between two sides."""

    core: tuple[Difference[str], ...]
    notes: tuple[Difference[str], ...]
    days: tuple[Difference[DayItem], ...]

    def having(self, way: Way) -> "Comparison":
        """Return the part that asks for this."""
        return Comparison(
            core=tuple(difference for difference in self.core if difference.way is way),
            notes=tuple(difference for difference in self.notes if difference.way is way),
            days=tuple(difference for difference in self.days if difference.way is way),
        )

    def only(self, keys: Container[str]) -> "Comparison":
        """Return the part that these keys name."""
        return Comparison(
            core=tuple(difference for difference in self.core if difference.key in keys),
            notes=tuple(difference for difference in self.notes if difference.key in keys),
            days=tuple(difference for difference in self.days if difference.key in keys),
        )

    def without(self, keys: Container[str]) -> "Comparison":
        """Return what these keys do not name."""
        return Comparison(
            core=tuple(difference for difference in self.core if difference.key not in keys),
            notes=tuple(difference for difference in self.notes if difference.key not in keys),
            days=tuple(difference for difference in self.days if difference.key not in keys),
        )

    def __bool__(self) -> bool:
        return bool(self.core or self.notes or self.days)


def compare(local: Side, remote: Side, base: Base) -> Comparison:
    """Return what differs between a folder and a checkpoint, and what each difference asks for."""
    notes = tuple(_differences(_notes(local), _notes(remote), base.notes))
    stuck = [note.key for note in notes if note.way is Way.CONFLICT]
    return Comparison(
        core=tuple(
            replace(section, way=Way.CONFLICT)
            if section.way in (Way.PUSH, Way.PULL) and _leans_on_any(section, stuck)
            else section
            for section in _differences(_core(local), _core(remote), base.core)
        ),
        notes=notes,
        days=tuple(_differences(_days(local), _days(remote), base.days)),
    )


def agreed(local: Side, remote: Side, base: Base) -> Base:
    """Return the base of the next comparison: what is alike now, and else what was alike before."""
    return Base(
        core=_agreed(_core(local), _core(remote), base.core),
        notes=_agreed(_notes(local), _notes(remote), base.notes),
        days=_agreed(_days(local), _days(remote), base.days),
    )


def leans_on(section: Difference[str], ref: str) -> bool:
    """Tell whether the side to be sent refers to a note as the other does not.

    Brought over without the note, it would take along what it said before.
    """
    sent, there = (
        (section.local, section.remote)
        if section.way is Way.PUSH
        else (section.remote, section.local)
    )
    form = mention_of(ref)
    return bool(form.search(sent or "")) and not form.search(there or "")


def _leans_on_any(section: Difference[str], refs: Iterable[str]) -> bool:
    return any(leans_on(section, ref) for ref in refs)


# What is compared: by key, its digest and itself.
_Held: TypeAlias = Mapping[str, tuple[str, T]]


def _core(side: Side) -> _Held[str]:
    """Return the sections that say something: an emptied one deletes nothing on the other side."""
    return {
        section.value: (_digest(text), text) for section, text in side.core.items() if text.strip()
    }


def _notes(side: Side) -> _Held[str]:
    """Return the notes that say something: a blank file is none to the service."""
    return {ref: (_digest(text), text) for ref, text in side.notes.items() if text.strip()}


def _days(side: Side) -> _Held[DayItem]:
    """Return the daily notes, each fact of a day once, known by what a file of the day says of it.

    What says nothing there (a rule, three dots) is left out: it would be found missing for ever.
    """
    held: dict[str, tuple[str, DayItem]] = {}
    for item in side.days:
        for said in read_day(render_day([item], item.date), item.date):
            digest = hashlib.sha256(said.fact.encode()).hexdigest()
            held.setdefault(f"{item.date.isoformat()}/{digest}", (digest, item))
    return held


def _differences(
    local: _Held[T], remote: _Held[T], base: Mapping[str, str]
) -> Iterator[Difference[T]]:
    for key in dict.fromkeys((*local, *remote)):
        here, mine = local.get(key, (None, None))
        there, theirs = remote.get(key, (None, None))
        if here != there:
            way = _way(here, there, base.get(key))
            yield Difference(key, way, mine, theirs)


def _way(here: str | None, there: str | None, before: str | None) -> Way:
    """Return what two digests that differ ask for, given what both were before."""
    if here is None:
        return Way.GONE_HERE if there == before else Way.PULL
    if there is None:
        return Way.GONE_THERE if here == before else Way.PUSH
    if here == before:
        return Way.PULL
    return Way.PUSH if there == before else Way.CONFLICT


def _agreed(local: _Held[T], remote: _Held[T], base: Mapping[str, str]) -> dict[str, str]:
    now: dict[str, str] = {}
    for key in dict.fromkeys((*local, *remote)):
        here, there = (side[key][0] if key in side else None for side in (local, remote))
        known = here if here == there else base.get(key)
        if known is not None:
            now[key] = known
    return now


def _digest(text: str) -> str:
    """Return what a text is known by: line ends and blank lines around it do not count."""
    return hashlib.sha256(body_text(text.replace("\r\n", "\n")).encode()).hexdigest()
