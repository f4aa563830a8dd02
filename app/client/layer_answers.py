"""What the service answers of the layers of memory: core, archive, and what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Self

from app.client.answers import Json, each, fields_of


@dataclass(frozen=True, slots=True)
class CoreMemory:
    """What is always in context, and how many words of how many it is."""

    persona: str
    human: str
    active_context: str
    quick_reference: str
    context: Json
    words: int
    max_words: int
    over_budget: bool

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer))


@dataclass(frozen=True, slots=True)
class Section:
    """A section of core memory; an edit names its `etag`."""

    section: str
    title: str
    text: str
    words: int
    version: int

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer))

    @property
    def etag(self) -> str:
        """What `If-Match` takes."""
        return f'"{self.version}"'


@dataclass(frozen=True, slots=True)
class Note:
    """A note as it was accepted; `ref` is `topic/name`, a correction names its `etag`."""

    id: str
    ref: str
    topic: str
    name: str
    title: str
    date: date
    summary: str
    details: str
    tags: Sequence[str]
    text: str
    created_at: datetime

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(
            **fields_of(
                cls, answer, date=date.fromisoformat, tags=tuple, created_at=datetime.fromisoformat
            )
        )

    @property
    def etag(self) -> str:
        """What `If-Match` takes where no other note has taken its place."""
        return f'"{self.id}"'


@dataclass(frozen=True, slots=True)
class NoteHit:
    """A note that a search found; rank 1 is the best, the score is None where not known."""

    note: Note
    rank: int
    score: float | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(Note.read(answer), answer["rank"], answer["score"])


@dataclass(frozen=True, slots=True)
class NotesFound:
    """What a search of the archive found, and how many notes are not indexed yet."""

    results: Sequence[NoteHit]
    pending: int

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, results=each(NoteHit.read)))


@dataclass(frozen=True, slots=True)
class DailyNote:
    """What was written down on a day; `at` has its offset, and is None where nobody said."""

    id: str
    date: date
    at: datetime | None
    heading: str | None
    text: str

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, date=date.fromisoformat, at=_instant))


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A trace step or a daily note that a search found; `collection` says which of the two."""

    collection: str
    entry_id: str
    node: str | None
    text: str
    metadata: Json
    created_at: datetime
    rank: int
    score: float | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, created_at=datetime.fromisoformat))


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search of what happened found, of which nodes, and how much is not indexed yet."""

    results: Sequence[RecallHit]
    scope: Sequence[str]
    pending: int

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, results=each(RecallHit.read), scope=tuple))


@dataclass(frozen=True, slots=True)
class Session:
    """What a session loads at its start: core, today's notes, and the notes that help.

    `archival` is None without a query.
    """

    core: CoreMemory
    date: date
    notes: Sequence[DailyNote]
    archival: NotesFound | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        found = answer["archival"]
        return cls(
            core=CoreMemory.read(answer["core_memory"]),
            date=date.fromisoformat(answer["date"]),
            notes=tuple(map(DailyNote.read, answer["notes"])),
            archival=None if found is None else NotesFound.read(found),
        )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
