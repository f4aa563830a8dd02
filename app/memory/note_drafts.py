"""A note as somebody sends it, and as it is to be stored."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.layers.note import Note, Topic, check_name, read_date, slug
from app.layers.words import count_words
from app.lineage.texts import check_text
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class Parts:
    """What a note says, part by part; a day left out is today, or that of the note corrected."""

    title: str
    summary: str
    details: str
    tags: Sequence[str]
    date: str | None


@dataclass(frozen=True, slots=True)
class NoteDraft:
    """A note as somebody sends it, in parts or as the whole of its Markdown.

    Topic and name are None where they are left out: a name is then made from the title, and a
    correction keeps what the note has.
    """

    topic: str | None
    name: str | None
    content: Parts | str


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """A note that is to be stored: as its text says it, its name, and how many words it has."""

    nameless: Note
    name: str
    words: int

    @property
    def note(self) -> Note:
        """The note under its name, which is the title of a text without any."""
        return replace(self.nameless, name=self.name, title=self.nameless.title or self.name)

    def named(self, name: str) -> "WrittenNote":
        """Return it under another name."""
        return replace(self, name=name)

    def of(self, date: dt.date) -> "WrittenNote":
        """Return it as of another day, which a text without any may have."""
        return replace(self, nameless=replace(self.nameless, date=date))


async def written_note(
    services: Services, draft: NoteDraft, *, topic: Topic, former: Note | None = None
) -> WrittenNote:
    """Return the note that a draft makes, in the place of a former one. InvalidInput, TooLarge.

    In a thread, and never within a write: a note may take a tenth of a second to be taken apart.
    """
    return await asyncio.to_thread(_written, services, draft, topic=topic, former=former)


def _written(
    services: Services, draft: NoteDraft, *, topic: Topic, former: Note | None
) -> WrittenNote:
    name = None if draft.name is None else check_name(draft.name)
    kept = former.name if former else None
    day = former.date if former else services.local_time.date()
    note = _note(topic, draft.content, day=day)
    check_text(note.text, max_bytes=services.limits.max_text_bytes, place=("body", "text"))
    return WrittenNote(note, name or kept or slug(note.title), count_words(note.text))


def _note(topic: Topic, content: Parts | str, *, day: dt.date) -> Note:
    """Return a note without a name; one that gives no day is of `day`."""
    if isinstance(content, str):
        return Note.read(topic, "", content, otherwise=day)
    return Note.write(
        topic,
        "",
        title=content.title,
        date=day if content.date is None else read_date(content.date),
        summary=content.summary,
        details=content.details,
        tags=content.tags,
    )
