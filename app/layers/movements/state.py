"""The layers at one instant, what a movement makes of them, and what has to be written for it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

from app.layers.core import Section, core_words, said_by
from app.layers.daily import DayItem
from app.layers.errors import UnknownNote
from app.layers.markdown.facts import facts
from app.layers.note import Note, Topic

TOPICS = "|".join(topic.value for topic in Topic)
# In a numbered list it keeps its number.
REFERENCE = re.compile(rf"(?:\d{{1,9}}[.)] )?See archival: (?P<ref>(?:{TOPICS})/.+)")
# A name may hold parentheses in pairs, as `notes (1)` does.
NAME = r"(?:[^()]|\([^()]*\))+"
PROMOTED = re.compile(rf"(?P<said>.+) \(See archival: (?P<ref>(?:{TOPICS})/{NAME})\)", re.DOTALL)


@dataclass(frozen=True)  # no slots: what is looked up often is kept
class Layers:
    """What is in core, in the archive and in the daily notes.

    `core` holds what stands below each heading, as it stands there: in a file (`shielded`), with a
    backslash where it would begin a section or a fence. `other_words` counts what core holds in no
    section. `notes` are in order of age, `merged` says which ref took over which.
    """

    core: Mapping[Section, str]
    notes: Sequence[Note] = ()
    days: Sequence[DayItem] = ()
    other_words: int = 0
    merged: Mapping[str, str] = field(default_factory=dict)
    shielded: bool = False

    @property
    def words(self) -> int:
        """How many words core counts for, by what its sections say."""
        texts = said_by(self.core) if self.shielded else self.core
        return core_words(texts) + self.other_words

    def find(self, ref: str) -> Note | None:
        """Return the note of this ref."""
        return self._by_ref.get(ref)

    @cached_property
    def _by_ref(self) -> dict[str, Note]:
        return {note.ref: note for note in self.notes}

    def note(self, ref: str) -> Note:
        """Return the note of this ref; UnknownNote where there is none."""
        if (note := self.find(ref)) is None:
            raise UnknownNote(ref)
        return note

    def names(self, topic: Topic) -> list[str]:
        """Return the names that are taken in a topic."""
        return [note.name for note in self.notes if note.topic is topic]

    def section_of(self, statement: str) -> Section | None:
        """Return the section of core that says this, with a reference behind it or without."""
        for section, body in self.core.items():
            if any(statement in (said, referred(said)[0]) for said in facts(body)):
                return section
        return None

    def kept_in(self) -> dict[str, str]:
        """Return the ref of the oldest note that says it, by fact."""
        kept: dict[str, str] = {}
        for note in self.notes:
            for statement in filter(None, (*note.facts, note.summary_fact)):
                kept.setdefault(statement, note.ref)
        return kept

    def mentions(self, ref: str) -> bool:
        """Tell whether core refers to a note."""
        form = mention_of(ref)
        return any(form.search(body) for body in self.core.values())

    def with_body(self, section: Section, body: str) -> Self:
        """Return the layers with other text in a section of core."""
        return replace(self, core={**self.core, section: body})

    def with_note(self, note: Note) -> Self:
        """Return the layers with a note in the place of the one of its ref, or as the newest."""
        if self.find(note.ref) is None:
            return replace(self, notes=(*self.notes, note))
        notes = tuple(note if other.ref == note.ref else other for other in self.notes)
        return replace(self, notes=notes)


class Action(StrEnum):
    """What a step of a movement did."""

    DEMOTED = "demoted"
    PROMOTED = "promoted"
    EXTRACTED = "extracted"
    MERGED = "merged"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what was done, to what (a line of it), from or to which section and note.

    KEPT says why something was left as it is.
    """

    action: Action
    text: str
    section: Section | None = None
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """What a movement made of the layers, and how."""

    layers: Layers
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be written: sections of core, notes that are new or differ, and notes that go.

    `removed` names the ref that took over, which is among the written ones.
    """

    core: Mapping[Section, str]
    notes: Sequence[Note]
    removed: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.core or self.notes or self.removed)


def plan(before: Layers, after: Layers) -> Plan:
    """Return what turns the one into the other."""
    removed = {ref: into for ref, into in after.merged.items() if before.find(ref) is not None}
    return Plan(
        core={
            section: body for section, body in after.core.items() if body != before.core[section]
        },
        notes=[
            note
            for note in after.notes
            if note.ref in removed.values()
            or (former := before.find(note.ref)) is None
            or former.text != note.text
        ],
        removed=removed,
    )


def reference_to(ref: str) -> str:
    """Return the line that core keeps in the place of what went to a note."""
    return f"See archival: {ref}"


def mention_of(ref: str) -> re.Pattern[str]:
    """Return the form of a reference to a note within a text."""
    return re.compile(rf"(?m){re.escape(reference_to(ref))}(?=\)|[ \t\r]*$)")


def referred(statement: str) -> tuple[str, str | None]:
    """Return what a fact says of its own, and the ref that it names behind it."""
    if found := REFERENCE.fullmatch(statement):
        return "", found["ref"]
    if found := PROMOTED.fullmatch(statement):
        return found["said"], found["ref"]
    return statement, None


def refers_to(statement: str, ref: str) -> bool:
    """Tell whether a fact is a reference to this note and nothing else."""
    return referred(statement) == ("", ref)


def in_order(refs: Mapping[str, int], *, at_least: int) -> Iterator[str]:
    """Yield the refs that were found often enough, the most often found first, then by name."""
    often = [(-count, ref) for ref, count in refs.items() if count >= at_least]
    yield from (ref for _, ref in sorted(often))
