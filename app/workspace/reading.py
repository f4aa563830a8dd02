"""Read a workspace: its files as the three layers, each with the bytes that were read."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.layers.core import CoreDocument, render_core
from app.layers.daily import DayItem, read_day
from app.layers.movements import Layers
from app.layers.note import Note, Topic, check_name, read_date
from app.lineage.errors import InvalidInput
from app.workspace.errors import NotText
from app.workspace.folder import Folder, Seen
from app.workspace.paths import ARCHIVE, CORE, ENDING, MEMORY, day_path
from app.workspace.texts import text_of

# Of a note that names no day: the same at every reading, and older than all that do.
UNDATED = dt.date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Reading:
    """The layers, and what they were read from; `skipped` says what was left alone, and why."""

    layers: Layers
    core: Seen
    document: CoreDocument
    notes: Mapping[str, Seen]
    skipped: tuple[str, ...]


def read_workspace(folder: Folder, *, first: dt.date = dt.date.min) -> Reading:
    """Read core, all notes, and the daily notes from this day on.

    Notes and daily notes that cannot be read are skipped; links are not followed. NotText for a
    core that is not UTF-8, LinkRefused where core or a folder of ours is a link.
    """
    skipped: list[str] = []
    core = folder.read(CORE)
    document = CoreDocument.read(render_core({}) if core.data is None else text_of(core))
    found = dict(_notes(folder, skipped))
    layers = Layers(
        core=document.bodies,
        notes=sorted((note for note, _ in found.values()), key=lambda note: (note.date, note.ref)),
        days=tuple(_days(folder, first, skipped)),
        other_words=document.other_words,
        shielded=True,
    )
    notes = {ref: seen for ref, (_, seen) in found.items()}
    return Reading(layers, core, document, notes, tuple(skipped))


def _notes(folder: Folder, skipped: list[str]) -> Iterator[tuple[str, tuple[Note, Seen]]]:
    """Yield the notes by ref; of two names that differ only to a computer, the first."""
    topics = folder.list(ARCHIVE)
    skipped += _odd(ARCHIVE, topics.skipped)
    known: set[str] = set()
    for topic in Topic:
        place = f"{ARCHIVE}/{topic.value}"
        names = folder.list(place) if topic.value in topics.folders else None
        if names is None:
            continue
        skipped += _odd(place, names.skipped)
        for name in names.files:
            if not name.endswith(ENDING):
                continue
            seen = folder.read(f"{place}/{name}")
            try:
                note = _note(topic, name.removesuffix(ENDING), seen)
            except (InvalidInput, NotText) as error:
                skipped.append(_left(seen.path, error))
                continue
            if note.ref in known:
                skipped.append(f"{seen.path}: another file has the same name; left as it is.")
                continue
            known.add(note.ref)
            yield note.ref, (note, seen)


def _note(topic: Topic, name: str, seen: Seen) -> Note:
    return Note.read(topic, check_name(name), text_of(seen), otherwise=UNDATED)


def _days(folder: Folder, first: dt.date, skipped: list[str]) -> Iterator[DayItem]:
    listing = folder.list(MEMORY)
    skipped += _odd(MEMORY, [name for name in listing.skipped if name.endswith(ENDING)])
    for name in listing.files:
        if (date := _date(name)) is None or date < first:
            continue
        seen = folder.read(day_path(date))
        try:
            yield from read_day(text_of(seen), date)
        except NotText as error:
            skipped.append(_left(seen.path, error))


def _date(name: str) -> dt.date | None:
    try:
        return read_date(name.removesuffix(ENDING)) if name.endswith(ENDING) else None
    except InvalidInput:
        return None


def _odd(place: str, names: Iterable[str]) -> list[str]:
    return [f"{place}/{name}: a link, or no plain file; left as it is." for name in names]


def _left(path: str, error: InvalidInput | NotText) -> str:
    why = "not UTF-8" if isinstance(error, NotText) else "no name for a note"
    return f"{path}: {why}; left as it is."
