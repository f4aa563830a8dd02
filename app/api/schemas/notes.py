"""Notes, daily notes, and what searches and sessions show of them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field

from app.api.schemas.base import Answer, Cursor, Instant, Json, Request
from app.api.schemas.entries import MAX_HITS
from app.api.schemas.memory import CoreMemoryOut
from app.lineage.errors import InvalidInput
from app.memory.daily_notes import DailyDraft, DailyNote
from app.memory.note_drafts import NoteDraft, Parts
from app.memory.notes import FoundNote, NotesFound, StoredNote
from app.memory.recall import Recalled
from app.memory.search_entries import Found
from app.memory.session import Session

TopicName = Literal["people", "projects", "decisions", "learnings", "reference"]
PARTS = ("title", "summary", "details", "tags", "date")

Text = Annotated[
    str | None,
    Field(description="The whole note in Markdown, in the place of title and all parts."),
]
Words = Annotated[int, Field(description="Of the text, as every budget counts them.")]


class NoteContent(Request):
    """What a note says: its parts, or the whole of its Markdown as `text`."""

    name: Annotated[
        str | None,
        Field(description="At most 80 characters, a file's name; without it, made of the title."),
    ] = None
    title: Annotated[
        str | None, Field(description="One line, of the heading. Required unless `text` is given.")
    ] = None
    summary: Annotated[
        str | None,
        Field(description="One line of at most 200 characters. Required unless `text` is given."),
    ] = None
    details: Annotated[str, Field(description="Markdown.")] = ""
    tags: Annotated[list[str], Field(default_factory=list, description="Without commas.")]
    date: Annotated[
        str | None, Field(description="YYYY-MM-DD; without it, today in LINEAGE_TIMEZONE.")
    ] = None
    text: Text = None

    def content(self) -> Parts | str:
        """Return it as the use cases know it; InvalidInput for both forms at once, or neither."""
        if self.text is not None:
            if given := [part for part in PARTS if part in self.model_fields_set]:
                raise InvalidInput(
                    f"The whole `text` was sent, and `{given[0]}` too.", place=("body", given[0])
                )
            return self.text
        for part in ("title", "summary"):
            if getattr(self, part) is None:
                raise InvalidInput("It is missing, and so is `text`.", place=("body", part))
        assert self.title is not None
        assert self.summary is not None
        return Parts(self.title, self.summary, self.details, self.tags, self.date)


class NoteIn(NoteContent):
    """A new note."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "topic": "learnings",
                    "title": "Learning rate",
                    "summary": "Halving the learning rate cured the divergence.",
                    "details": "- loss 0.31 after 500 steps\n- warm-up was not needed",
                    "tags": ["training", "learning-rate"],
                }
            ]
        }
    )

    topic: TopicName

    def draft(self) -> NoteDraft:
        """Return it as the use cases know it. InvalidInput."""
        return NoteDraft(self.topic, self.name, self.content())


class NoteCorrection(NoteContent):
    """What takes the place of a note; topic, name and day stay where they are left out."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Learning rate",
                    "summary": "Halving the learning rate cured the divergence.",
                    "details": "- loss 0.29 after 800 steps",
                    "tags": ["training"],
                }
            ]
        }
    )

    topic: TopicName | None = None

    def draft(self) -> NoteDraft:
        """Return it as the use cases know it. InvalidInput."""
        return NoteDraft(self.topic, self.name, self.content())


class NoteOut(Answer):
    """A note; a correction is a note of its own, which names those that it supersedes."""

    id: str
    ref: Annotated[str, Field(description="`topic/name`, unique among the notes that count.")]
    topic: TopicName
    name: str
    title: str
    date: Annotated[str, Field(description="YYYY-MM-DD.")]
    summary: str
    details: str
    tags: list[str]
    text: Annotated[str, Field(description="All of it, in Markdown.")]
    words: Words
    created_at: Instant
    sha256: Annotated[str, Field(description="Of the text's UTF-8 bytes, in hex.")]
    indexed: Annotated[bool, Field(description="Whether searches find it.")]
    supersedes: Annotated[list[str], Field(description="Ids of the notes that it stands for.")]
    superseded_by: Annotated[
        str | None,
        Field(description="The note in its place; it is then in no search and no list."),
    ]

    @classmethod
    def of(cls, stored: StoredNote) -> Self:
        """Show a note."""
        return cls(**_note(stored))


class NotePage(Answer):
    """A page of notes."""

    items: list[NoteOut]
    next_cursor: Cursor

    @classmethod
    def of(cls, notes: Sequence[StoredNote], next_cursor: str | None) -> Self:
        """Show a page."""
        return cls(items=[NoteOut.of(stored) for stored in notes], next_cursor=next_cursor)


class NoteSearchIn(Request):
    """A search of the archive."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "which learning rate works", "limit": 5}]}
    )

    query: Annotated[str, Field(description="At most 16 KiB, not blank.")]
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 5
    topic: Annotated[TopicName | None, Field(description="Only notes of this topic.")] = None


class NoteHit(NoteOut):
    """A note that a search found."""

    rank: Annotated[int, Field(description="1 is the best.")]
    score: Annotated[
        float | None, Field(description="Cosine similarity, floored at 0; null where not known.")
    ]

    @classmethod
    def of_found(cls, found: FoundNote) -> Self:
        """Show a hit."""
        return cls(**_note(found.stored), rank=found.rank, score=found.score)


class NoteSearchOut(Answer):
    """What a search of the archive found."""

    results: list[NoteHit]
    pending: Annotated[int, Field(description="Notes that are accepted but not searchable yet.")]

    @classmethod
    def of(cls, found: NotesFound) -> Self:
        """Show a result."""
        return cls(results=[NoteHit.of_found(hit) for hit in found.found], pending=found.pending)


class DailyNoteIn(Request):
    """What happened."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Decision: train in bf16 from now on.", "heading": "Training"},
            ]
        }
    )

    text: Annotated[str, Field(description="Markdown, at most 32 KiB of UTF-8, not blank.")]
    date: Annotated[
        str | None,
        Field(
            description="YYYY-MM-DD; without it, the day of `at`, else today in LINEAGE_TIMEZONE."
        ),
    ] = None
    at: Annotated[
        str | None,
        Field(
            description="RFC 3339 with an offset, kept as given; without it and `date`, now in "
            "LINEAGE_TIMEZONE, and with `date` alone, no time."
        ),
    ] = None
    heading: Annotated[
        str | None, Field(description="What it stands below in the day's file; one line.")
    ] = None

    def draft(self) -> DailyDraft:
        """Return it as the use case knows it."""
        return DailyDraft(self.text, self.date, self.at, self.heading)


class DailyNoteOut(Answer):
    """A daily note; it never changes."""

    id: str
    date: Annotated[str, Field(description="YYYY-MM-DD.")]
    at: Annotated[
        str | None,
        Field(description="When it was, RFC 3339 with its offset; null where nobody said."),
    ]
    heading: str | None
    text: str
    words: Words
    created_at: Instant
    sha256: Annotated[str, Field(description="Of the text's UTF-8 bytes, in hex.")]
    indexed: Annotated[bool, Field(description="Whether searches find it.")]

    @classmethod
    def of(cls, note: DailyNote) -> Self:
        """Show a daily note."""
        entry = note.entry
        return cls(
            id=entry.id,
            date=note.date.isoformat(),
            at=note.at,
            heading=note.heading,
            text=entry.text,
            words=note.words,
            created_at=entry.created_at,
            sha256=entry.sha256.hex(),
            indexed=entry.indexed,
        )


class DailyNotePage(Answer):
    """A page of daily notes."""

    items: list[DailyNoteOut]
    next_cursor: Cursor

    @classmethod
    def of(cls, notes: Sequence[DailyNote], next_cursor: str | None) -> Self:
        """Show a page."""
        return cls(items=[DailyNoteOut.of(note) for note in notes], next_cursor=next_cursor)


class RecallSearchIn(Request):
    """A search of the trace and the daily notes."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "why did the loss diverge", "limit": 5}]}
    )

    query: Annotated[str, Field(description="At most 16 KiB, not blank.")]
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 5


class RecallHit(Answer):
    """A trace step or a daily note that a search found."""

    collection: Literal["react_step", "daily_note"]
    entry_id: str
    node: Annotated[str | None, Field(description="The step's node; null for one of no node.")]
    text: str
    metadata: Json
    created_at: Instant
    rank: Annotated[int, Field(description="1 is the best.")]
    score: Annotated[
        float | None, Field(description="Cosine similarity, floored at 0; null where not known.")
    ]

    @classmethod
    def of(cls, found: Found) -> Self:
        """Show a hit."""
        entry = found.entry
        return cls(
            collection=entry.collection.value,
            entry_id=entry.id,
            node=entry.node_id,
            text=entry.text,
            metadata=dict(entry.metadata),
            created_at=entry.created_at,
            rank=found.rank,
            score=found.score,
        )


class RecallOut(Answer):
    """What a search of what happened found, and of which nodes it looked at steps."""

    results: list[RecallHit]
    scope: Annotated[
        list[str],
        Field(description="The nodes whose steps were searched; empty for the whole trace."),
    ]
    pending: Annotated[
        int, Field(description="Entries in scope that are accepted but not searchable yet.")
    ]

    @classmethod
    def of(cls, recalled: Recalled) -> Self:
        """Show a result."""
        return cls(
            results=[RecallHit.of(found) for found in recalled.found],
            scope=recalled.trace.node_ids,
            pending=recalled.pending,
        )


class SessionOut(Answer):
    """What a session loads at its start."""

    core_memory: CoreMemoryOut
    context: Json
    date: Annotated[str, Field(description="Today in LINEAGE_TIMEZONE.")]
    notes: Annotated[
        list[DailyNoteOut], Field(description="Today's daily notes, the first 1,000, oldest first.")
    ]
    archival: Annotated[NoteSearchOut | None, Field(description="Null without a query.")]

    @classmethod
    def of(cls, session: Session, *, max_words: int) -> Self:
        """Show what was loaded."""
        core = CoreMemoryOut.of(session.core, max_words=max_words)
        return cls(
            core_memory=core,
            context=core.context,
            date=session.date.isoformat(),
            notes=[DailyNoteOut.of(note) for note in session.notes],
            archival=None if session.archival is None else NoteSearchOut.of(session.archival),
        )


def _note(stored: StoredNote) -> dict[str, Any]:
    entry, note = stored.entry, stored.note
    return {
        "id": entry.id,
        "ref": note.ref,
        "topic": note.topic.value,
        "name": note.name,
        "title": note.title,
        "date": note.date.isoformat(),
        "summary": note.summary,
        "details": note.details,
        "tags": list(note.tags),
        "text": entry.text,
        "words": stored.words,
        "created_at": entry.created_at,
        "sha256": entry.sha256.hex(),
        "indexed": entry.indexed,
        "supersedes": stored.supersedes,
        "superseded_by": entry.superseded_by,
    }
