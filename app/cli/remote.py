"""A checkpoint as one side of a comparison with a folder: read, and brought up to the folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from app.client import DailyNote, Layers, Note, Refused, Service
from app.layers.core import Section
from app.layers.daily import DayItem, as_note, read_note, time_of_day
from app.workspace.syncing import Comparison, Difference, Side, leans_on

T = TypeVar("T")

DUPLICATE = "/problems/duplicate-fact"


@dataclass(frozen=True, slots=True)
class Remote:
    """What a checkpoint held when it was read, and the versions that an edit has to name.

    `id` names the checkpoint, and is another one once it is purged and made anew. `skipped` says
    which notes are on no side, for another one has their ref.
    """

    id: str
    side: Side
    etags: Mapping[Section, str]
    notes: Mapping[str, Note]
    skipped: Sequence[str]


@dataclass(frozen=True, slots=True)
class Sent:
    """What the service made of what was sent: refusals by key, and refs other than those asked."""

    refused: Mapping[str, Refused]
    renamed: Mapping[str, str]


def read_remote(service: Service, checkpoint: str) -> Remote:
    """Return what a checkpoint holds. Raises Refused and Unreachable."""
    made = service.get_checkpoint(checkpoint)["created_at"]
    layers = service.layers(checkpoint)
    sections = {section: layers.section(section.value) for section in Section}
    listed = layers.notes()
    notes = {note.ref: note for note in listed}
    return Remote(
        id=f"{checkpoint} {made}",
        side=Side(
            core={section: stored.text for section, stored in sections.items()},
            notes={ref: note.text for ref, note in notes.items()},
            days=tuple(item for note in layers.daily_notes() for item in _day_items(note)),
        ),
        etags={section: stored.etag for section, stored in sections.items()},
        notes=notes,
        skipped=[_hidden(note) for note in listed if note.id != notes[note.ref].id],
    )


def send(layers: Layers, remote: Remote, chosen: Comparison) -> Sent:
    """Bring a checkpoint up to the folder, difference by difference.

    What somebody else edits meanwhile is refused by its version. Notes go first, so that no fact is
    missing on its way from core to a note: a section waits with the note that it refers to. Notes
    that core still says are sent again at the end.
    Raises Unreachable.
    """
    renamed: dict[str, str] = {}

    def send_note(note: Difference[str]) -> None:
        ref = _send_note(layers, remote, note)
        if ref != note.key:
            renamed[note.key] = ref

    notes = _refused(chosen.notes, send_note)
    days = _refused(chosen.days, partial(_send_day, layers))
    said = {key for key, refused in notes.items() if refused.document.get("type") == DUPLICATE}
    waiting = {
        section.key: refused
        for section in chosen.core
        for ref, refused in notes.items()
        if ref not in said and leans_on(section, ref)
    }
    ready = [section for section in chosen.core if section.key not in waiting]
    core = waiting | _refused(ready, partial(_send_section, layers, remote))
    again = _refused([note for note in chosen.notes if note.key in said], send_note)
    for_good = {key: refused for key, refused in notes.items() if key not in said}
    return Sent(for_good | again | days | core, renamed)


def _send_note(layers: Layers, remote: Remote, note: Difference[str]) -> str:
    """Return the ref that the note has now: another one where somebody took its own meanwhile."""
    assert note.local is not None
    if (known := remote.notes.get(note.key)) is not None:
        return layers.correct_note(known.id, note.local, if_match=known.etag).ref
    topic, _, name = note.key.partition("/")
    return layers.write_note_text(topic, name, note.local).ref


def _send_day(layers: Layers, day: Difference[DayItem]) -> None:
    assert day.local is not None
    layers.write_daily_note(
        as_note(day.local),
        date=day.local.date.isoformat(),
        at=day.local.instant,
        heading=day.local.heading,
    )


def _send_section(layers: Layers, remote: Remote, section: Difference[str]) -> None:
    assert section.local is not None
    etag = remote.etags[Section(section.key)]
    layers.set_section(section.key, section.local, if_match=etag)


def _refused(
    differences: Sequence[Difference[T]], send_one: Callable[[Difference[T]], None]
) -> dict[str, Refused]:
    refused: dict[str, Refused] = {}
    for difference in differences:
        try:
            send_one(difference)
        except Refused as error:
            refused[difference.key] = error
    return refused


def _hidden(note: Note) -> str:
    return (
        f"note {note.id} of the checkpoint, {note.title!r}: a newer note is {note.ref} too. "
        "Give one of them another name there."
    )


def _day_items(note: DailyNote) -> list[DayItem]:
    """Return what a note says, as the service finds it; the time only where it is of that day."""
    at = time_of_day(note.at) if note.at and note.at.date() == note.date else None
    return read_note(note.text, note.date, at=at, heading=note.heading)
