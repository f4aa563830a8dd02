"""Read notes: the archive of a checkpoint, the same for every node."""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.db import entries as entry_rows
from app.db import notes as rows
from app.db.entries import Position
from app.db.transaction import ReadTransaction
from app.layers.errors import UnknownNote
from app.layers.note import Note, Topic, check_name, read_date, read_topic
from app.layers.words import count_words
from app.lineage.access import Operation
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Entry, Metadata
from app.lineage.errors import InvalidInput
from app.lineage.filters import MetadataFilter
from app.lineage.guard import Claim
from app.lineage.json_rules import compact
from app.lineage.lineage import notes_of
from app.lineage.snapshot import ENTRY_ID
from app.memory.claims import reader_in
from app.memory.read_entries import record_shown
from app.memory.search_entries import (
    Wanted,
    check_query,
    search_scope,
)
from app.memory.services import Services

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A note with its ledger row."""

    entry: Entry
    note: Note
    words: int
    made: bool = False

    @property
    def supersedes(self) -> list[str]:
        """The ids of the notes whose place it took."""
        return rows.superseded_of(self.entry.metadata)

    @property
    def etag(self) -> str:
        """The entity tag: a correction is made on this very note, or it is refused."""
        return note_etag(self.entry.id)


def note_etag(note_id: str) -> str:
    """Return the entity tag of the note of this id."""
    return f'"{note_id}"'


@dataclass(frozen=True, slots=True)
class NotePage:
    """A page of notes, oldest first; `next_position` is None on the last one."""

    notes: Sequence[StoredNote]
    next_position: Position | None


@dataclass(frozen=True, slots=True)
class FoundNote:
    """A note that a search found; see Found."""

    stored: StoredNote
    rank: int
    score: float | None


@dataclass(frozen=True, slots=True)
class NotesFound:
    """What a search of the archive found, and how many notes it could not find yet."""

    found: Sequence[FoundNote]
    pending: int


@dataclass(frozen=True, slots=True)
class NoteFilter(MetadataFilter):
    """Lets notes of one topic through, or of one name."""

    topic: Topic | None = None
    name: str | None = None

    def __bool__(self) -> bool:
        return self.topic is not None or self.name is not None

    def matches(self, metadata: Metadata) -> bool:
        """Tell whether a note with this metadata is of the topic and name."""
        return self.topic in (None, topic_of(metadata)) and self.name in (
            None,
            metadata.get("name"),
        )

    @property
    def saying(self) -> str:
        """What the metadata of all that it lets through has in common, as compact JSON."""
        return "" if self.name is None else compact({"name": self.name}).strip("{}")

    @classmethod
    def of_query(cls, topic: str | None, name: str | None) -> "NoteFilter":
        """Read the values of a query string; InvalidInput where no note can have them."""
        return cls(
            topic=None if topic is None else _of_query("topic", lambda: read_topic(topic)),
            name=None if name is None else _of_query("name", lambda: check_name(name)),
        )


ALL_NOTES = NoteFilter()


async def list_notes(
    services: Services,
    checkpoint: str,
    *,
    matching: NoteFilter,
    limit: int,
    after: Position | None,
    claim: Claim | None,
) -> NotePage:
    """Return the notes that count, oldest first. UnknownCheckpoint, ScopeViolation, StaleToken."""
    await reader_in(services, checkpoint, claim=claim, operation=Operation.ARCHIVAL_READ)
    row = await services.ledger.places.checkpoint(checkpoint)
    found = await services.ledger.read(
        lambda connection: entry_rows.page(
            connection,
            notes_of(checkpoint),
            index_epoch=row.index_epoch,
            limit=limit + 1,
            after=after,
            matching=matching,
            saying=matching.saying,
        )
    )
    page = found[:limit]
    shown = [item.entry for item in page]
    record_shown(services, row, Operation.ARCHIVAL_READ, shown, claim=claim)
    stored = await asyncio.to_thread(lambda: [stored_as(services, entry) for entry in shown])
    return NotePage(stored, page[-1].position if len(found) > limit else None)


async def show_note(
    services: Services, checkpoint: str, note_id: str, *, claim: Claim | None
) -> StoredNote:
    """Return a note, one that was superseded too. UnknownNote, and what list_notes raises."""
    await reader_in(services, checkpoint, claim=claim, operation=Operation.ARCHIVAL_READ)
    row = await services.ledger.places.checkpoint(checkpoint)
    stored = await services.ledger.read(
        lambda connection: stored_note(services, connection, checkpoint, note_id)
    )
    shown = [stored.entry]
    record_shown(services, row, Operation.ARCHIVAL_READ, shown, claim=claim)
    return stored


async def search_notes(
    services: Services,
    checkpoint: str,
    query: str,
    *,
    limit: int,
    matching: NoteFilter,
    claim: Claim | None,
) -> NotesFound:
    """Find the best notes that count; the access log tells that they were found.

    Raises InvalidInput and TooLarge for the query, what list_notes raises, ModelChanged and
    ArchiveUnavailable.
    """
    check_query(query)
    operation = Operation.ARCHIVAL_SEARCH
    await reader_in(services, checkpoint, claim=claim, operation=operation)
    row = await services.ledger.places.checkpoint(checkpoint)
    found = await find_notes(services, row, query, limit=limit, matching=matching)
    entries = [item.stored.entry for item in found.found]
    record_shown(services, row, operation, entries, claim=claim, query=query)
    return found


async def find_notes(
    services: Services,
    checkpoint: Checkpoint,
    query: str,
    *,
    limit: int,
    matching: NoteFilter = ALL_NOTES,
) -> NotesFound:
    """Search the notes that count. ModelChanged, ArchiveUnavailable."""
    wanted = Wanted(query, limit, matching=matching)
    result = await search_scope(services, checkpoint, notes_of(checkpoint.id), query, wanted)

    def read() -> list[FoundNote]:
        return [
            FoundNote(stored_as(services, hit.entry), hit.rank, hit.score) for hit in result.found
        ]

    # In a thread, for a note may take a tenth of a second to be taken apart.
    return NotesFound(await asyncio.to_thread(read), result.pending)


def stored_note(
    services: Services, connection: ReadTransaction, checkpoint: str, note_id: str
) -> StoredNote:
    """Return a note of a checkpoint that exists; UnknownNote where none has the id."""
    found = rows.find(connection, checkpoint, note_id) if ENTRY_ID.fullmatch(note_id) else None
    if found is None:
        raise UnknownNote(note_id)
    return stored_as(services, found)


def counting_note(
    services: Services, connection: ReadTransaction, checkpoint: str, note_id: str
) -> StoredNote:
    """Return the note that counts in the place of one. UnknownNote."""
    found = rows.counting(connection, checkpoint, note_id) if ENTRY_ID.fullmatch(note_id) else None
    if found is None:
        raise UnknownNote(note_id)
    return stored_as(services, found)


def stored_as(services: Services, entry: Entry) -> StoredNote:
    """Read a note's row."""
    return StoredNote(entry, note_of(services, entry), count_words(entry.text))


def note_of(services: Services, entry: Entry) -> Note:
    """Read a note's row.

    One that another tool made, without topic and name, is of topic reference and called by its id.
    """
    name = entry.metadata.get("name")
    local = entry.created_at.astimezone(services.limits.timezone)
    return Note.read(
        topic_of(entry.metadata),
        name if isinstance(name, str) else entry.id,
        entry.text,
        otherwise=day_of(entry.metadata) or local.date(),
    )


def topic_of(metadata: Metadata) -> Topic:
    """Return the topic that a note's metadata names, `reference` where it names none."""
    named = metadata.get("topic")
    return next((topic for topic in Topic if topic.value == named), Topic.REFERENCE)


def day_of(metadata: Metadata) -> dt.date | None:
    """Return the day that a note's metadata names."""
    named = metadata.get("date")
    try:
        return read_date(named) if isinstance(named, str) else None
    except InvalidInput:
        return None


def _of_query(field: str, read: Callable[[], T]) -> T:
    """Read a value of the query string, and say so where it is refused."""
    try:
        return read()
    except InvalidInput as error:
        raise InvalidInput(str(error), place=("query", field)) from None
