"""Store notes in the ledger, each in the place of those that it stands for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.db import notes as rows
from app.db.append import PreparedEntry
from app.db.idempotency import Once
from app.db.transaction import Transaction
from app.db.vectors import Vectors
from app.layers.note import Note
from app.lineage.entry import Draft, Entry
from app.lineage.json_rules import check_object
from app.memory.note_drafts import WrittenNote
from app.memory.notes import StoredNote
from app.memory.services import Services
from app.memory.write_entries import await_index, new_entry_id


@dataclass(frozen=True, slots=True)
class NewNote:
    """A note that is new, and the ids of those whose place it takes, if any."""

    note: Note
    supersedes: Sequence[str] = ()

    def prepared(self) -> PreparedEntry:
        """Return it for the ledger. InvalidInput."""
        metadata: dict[str, Any] = {
            "topic": self.note.topic.value,
            "name": self.note.name,
            "date": self.note.date.isoformat(),
        }
        if self.supersedes:
            metadata[rows.SUPERSEDES] = list(self.supersedes)
        compact = check_object(metadata, place=("body",))
        return PreparedEntry.of(new_entry_id(), Draft(self.note.text, metadata), compact)


def store_notes(
    services: Services,
    tx: Transaction,
    checkpoint: str,
    notes: Sequence[NewNote],
    *,
    vectors: Vectors | None,
) -> list[Entry]:
    """Store notes in order and return their rows; the caller holds the lock."""
    prepared = [each.prepared() for each in notes]
    model = services.archive.model
    entries = rows.add(tx, checkpoint, prepared, vectors=vectors, model=model)
    for each, entry in zip(notes, entries, strict=True):
        if each.supersedes:
            rows.supersede(tx, checkpoint, each.supersedes, by=entry.id)
    return entries


def store_note(
    services: Services,
    tx: Transaction,
    checkpoint: str,
    written: WrittenNote,
    *,
    vectors: Vectors | None,
    supersedes: Sequence[str] = (),
) -> StoredNote:
    """Store one note and return it as made; the caller holds the lock."""
    new = NewNote(written.note, supersedes)
    (entry,) = store_notes(services, tx, checkpoint, [new], vectors=vectors)
    return StoredNote(entry, new.note, written.words, made=True)


async def indexed_note(services: Services, stored: StoredNote, once: Once | None) -> StoredNote:
    """Return a note as it is once the archive had its time; one that was not made, as it is."""
    if not stored.made:
        return stored
    services.upkeep.wake()

    def shown(entries: tuple[Entry, ...]) -> StoredNote:
        return replace(stored, entry=entries[0])

    return shown(await await_index(services, (stored.entry,), once, shown=shown))
