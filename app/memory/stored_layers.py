"""The layers of a checkpoint as they are stored, for a movement to be planned on."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.db import core_blocks
from app.db import entries as entry_rows
from app.db import notes as note_rows
from app.db.transaction import ReadTransaction
from app.layers.daily import DayItem, read_note
from app.layers.movements import Layers
from app.layers.note import Note, free_name
from app.lineage.entry import Entry
from app.lineage.lineage import daily_notes_of
from app.memory.core_memory import read_core, section_texts
from app.memory.daily_notes import date_of
from app.memory.notes import note_of
from app.memory.services import Services

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Stored:
    """The layers, and what tells whether they still are what is stored.

    `ids` has the entry of each note by its ref, in the ledger's order.
    """

    layers: Layers
    ids: Mapping[str, str]
    versions: Mapping[str, int]
    notes_version: note_rows.Version

    def ref_of(self, note: str) -> str:
        """Return the ref of a note that is named by its ref or its id."""
        return next((ref for ref, entry_id in self.ids.items() if entry_id == note), note)


def stored_layers(
    services: Services, connection: ReadTransaction, checkpoint: str, *, days: int
) -> Stored:
    """Read the layers of a checkpoint; of the daily notes, those of the last `days`."""
    core = read_core(connection, checkpoint)
    # Before the notes: what comes in between is noticed.
    notes_version = note_rows.version(connection, checkpoint)
    notes = list(_notes(services, connection, checkpoint))
    return Stored(
        layers=Layers(
            core=section_texts(core),
            notes=tuple(note for note, _ in notes),
            days=tuple(_days(services, connection, checkpoint, days=days)) if days else (),
        ),
        ids={note.ref: entry_id for note, entry_id in notes},
        versions=core.versions,
        notes_version=notes_version,
    )


def is_still(connection: ReadTransaction, checkpoint: str, stored: Stored) -> bool:
    """Tell whether core memory and the notes are what they were."""
    if core_blocks.read(connection, checkpoint).versions != stored.versions:
        return False
    if note_rows.version(connection, checkpoint) == stored.notes_version:
        return True
    # An archive may have taken one meanwhile, which is no change of what it says.
    now = [item.id for item in note_rows.listed(connection, checkpoint)]
    return now == list(stored.ids.values())


def _notes(
    services: Services, connection: ReadTransaction, checkpoint: str
) -> Iterator[tuple[Note, str]]:
    """Yield the notes that count with their ids; a restore may have brought two of one name."""
    taken: dict[str, list[str]] = {}
    for entry in note_rows.current(connection, checkpoint):
        note = note_of(services, entry)
        names = taken.setdefault(note.topic, [])
        if (name := free_name(note.name, names)) != note.name:
            note = Note.read(note.topic, name, note.text, otherwise=note.date)
        names.append(name)
        yield note, entry.id


def _days(
    services: Services, connection: ReadTransaction, checkpoint: str, *, days: int
) -> Iterator[DayItem]:
    first = services.local_time.date() - dt.timedelta(days=days - 1)
    after = None
    while True:
        page = entry_rows.page(
            connection, daily_notes_of(checkpoint), index_epoch=0, limit=PAGE, after=after
        )
        for entry in (listed.entry for listed in page):
            date = date_of(services, entry.metadata, entry.created_at)
            if date >= first:
                yield from _items(entry, date)
        if len(page) < PAGE:
            return
        after = page[-1].position


def _items(entry: Entry, date: dt.date) -> list[DayItem]:
    """Return what a daily note says, which may be several things."""
    heading = entry.metadata.get("heading")
    return read_note(entry.text, date, heading=heading if isinstance(heading, str) else None)
