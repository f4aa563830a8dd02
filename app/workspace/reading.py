"""Read a workspace: its files as the three layers, each with the bytes that were read."""

import datetime as dt
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from app.layers.core import CoreDocument, render_core
from app.layers.daily import DayItem, read_day
from app.layers.movements import Layers
from app.layers.note import Note, Topic, check_name, read_date
from app.lineage.errors import InvalidInput
from app.workspace.errors import LinkRefused, NotPlain, NotText, SystemRefused
from app.workspace.folder import Folder, Listing, Seen
from app.workspace.paths import ARCHIVE, CORE, ENDING, MEMORY, day_path
from app.workspace.texts import text_of

# Of a note that names no day: the same at every reading, and older than all that do.
UNDATED = dt.date(1970, 1, 1)
TOPICS = {topic: f"{ARCHIVE}/{topic.value}" for topic in Topic}
MARKDOWN = (ENDING, ".markdown")
# Folders that are not ours may hold anything, and as much of it as a disk has room for.
MAX_FOLDERS = 200
MAX_ENTRIES = 1_000
MAX_TOLD = 100


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

    Notes and daily notes that cannot be read are skipped, as are Markdown files that are neither;
    links are not followed. NotText for a core that is not UTF-8, LinkRefused where core or a folder
    of ours is a link.
    """
    skipped: list[str] = []
    core = folder.read(CORE)
    document = CoreDocument.read(render_core({}) if core.data is None else text_of(core))
    ours = _ours(folder)
    found = dict(_notes(folder, ours, skipped))
    layers = Layers(
        core=document.bodies,
        notes=sorted((note for note, _ in found.values()), key=lambda note: (note.date, note.ref)),
        days=tuple(_days(folder, ours[MEMORY], first, skipped)),
        other_words=document.other_words,
        shielded=True,
    )
    notes = {ref: seen for ref, (_, seen) in found.items()}
    skipped += _bounded(_left_out(folder, ours))
    return Reading(layers, core, document, notes, tuple(skipped))


def _ours(folder: Folder) -> dict[str, Listing]:
    """Return what lies in the folders that core, notes and days are in, by path."""
    archive = folder.list(ARCHIVE)
    there = [place for topic, place in TOPICS.items() if topic.value in archive.folders]
    topics = {place: folder.list(place) for place in there}
    return {MEMORY: folder.list(MEMORY), ARCHIVE: archive, **topics}


def _notes(
    folder: Folder, ours: Mapping[str, Listing], skipped: list[str]
) -> Iterator[tuple[str, tuple[Note, Seen]]]:
    """Yield the notes by ref; of two names that differ only to a computer, the first."""
    known: set[str] = set()
    for topic, place in TOPICS.items():
        for name in _visible(ours.get(place, Listing()).files):
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


def _days(
    folder: Folder, listing: Listing, first: dt.date, skipped: list[str]
) -> Iterator[DayItem]:
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


def _left(path: str, error: InvalidInput | NotText) -> str:
    why = "not UTF-8" if isinstance(error, NotText) else "no name for a note"
    return f"{path}: {why}; left as it is."


def _bounded(sentences: Iterator[str]) -> list[str]:
    told = list(islice(sentences, MAX_TOLD))
    if more := sum(1 for _ in sentences):
        told.append(f"{MEMORY}: {more:,} more are left as they are.")
    return told


def _left_out(folder: Folder, ours: Mapping[str, Listing]) -> Iterator[str]:
    """Say what is left out below `memory`: in the folders that are ours, and in all others."""
    waiting: deque[str] = deque()
    for place, listing in ours.items():
        yield from _left_out_of(place, listing)
        waiting += [inner for inner in _inner(place, listing) if inner not in (ARCHIVE, *ours)]
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        place = waiting.popleft()
        try:
            listing = folder.list(place, at_most=MAX_ENTRIES + 1)
        except (LinkRefused, NotPlain, SystemRefused) as error:
            yield str(error)
            continue
        yield from _left_out_of(place, listing)
        if len((*listing.files, *listing.folders, *listing.skipped)) > MAX_ENTRIES:
            yield f"{place}: more than {MAX_ENTRIES:,} files; the others are not looked at."
        waiting += _inner(place, listing)
    if waiting:
        yield f"{waiting[0]}: one folder too many; this one and further ones are not looked into."


def _inner(place: str, listing: Listing) -> list[str]:
    return [f"{place}/{name}" for name in _visible(listing.folders) if not _is_markdown(name)]


def _left_out_of(place: str, listing: Listing) -> Iterator[str]:
    for name in _visible(listing.files):
        if _is_markdown(name) and (why := _why_not(place, name)):
            yield f"{place}/{name}: {why}; left as it is."
    archived = _is_within(place, ARCHIVE)
    odd = [name for name in listing.skipped if archived or _is_markdown(name.strip("'\""))]
    odd += filter(_is_markdown, listing.folders)
    for name in _visible(odd):
        yield f"{place}/{name}: a link, or no plain file; left as it is."


def _why_not(place: str, name: str) -> str | None:
    """Return why a Markdown file is no note, no day and not core; None where it is one."""
    if place == MEMORY or place in TOPICS.values():
        if not name.endswith(ENDING):
            return f"its ending is not {ENDING}"
        is_known = place != MEMORY or f"{place}/{name}" == CORE or _date(name) is not None
        return None if is_known else "not named as a day is (YYYY-MM-DD)"
    if any(_is_within(place, topic) for topic in TOPICS.values()):
        return "in a folder within a topic's"
    return "in no topic's folder" if _is_within(place, ARCHIVE) else "in no folder of notes"


def _is_within(place: str, outer: str) -> bool:
    return f"{place}/".startswith(f"{outer}/")


def _visible(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if not name.startswith("."))


def _is_markdown(name: str) -> bool:
    return name.lower().endswith(MARKDOWN)
