"""Promote: copy what a note says in one line to core; the note stays and tells where it went."""

from collections.abc import Mapping

from app.layers.core import Section
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import as_item
from app.layers.movements.bodies import with_item
from app.layers.movements.demote import SHOWN
from app.layers.movements.keeping import with_facts
from app.layers.movements.state import (
    Action,
    Layers,
    Moved,
    Step,
    in_order,
    reference_to,
)
from app.layers.note import Note

# Found so often in the last seven days, a note is worth its place in core.
OFTEN = 3
DAYS = 7


def promote(layers: Layers, ref: str, *, section: Section = Section.QUICK_REFERENCE) -> Moved:
    """Copy a note's summary, its key facts in one line, to a section of core.

    Nothing changes where core refers to the note, or says the same already. UnknownNote.
    """
    note = layers.note(ref)
    shown = cut(note.summary, SHOWN)
    if layers.mentions(ref):
        return Moved(layers, (Step(Action.KEPT, f"Core refers to it: {shown}", ref=ref),))
    if (there := layers.section_of(note.summary_fact)) is not None:
        return Moved(layers, (Step(Action.KEPT, f"Core says it: {shown}", there, ref),))
    item = as_item(f"- {note.summary} ({reference_to(ref)})")
    layers = layers.with_body(section, with_item(layers.core[section], item))
    layers = layers.with_note(_crossed(note, section))
    return Moved(layers, (Step(Action.PROMOTED, shown, section, ref),))


def promote_found(layers: Layers, found: Mapping[str, int]) -> Moved:
    """Promote the notes that were found OFTEN or more; `found` counts by ref.

    Those that core refers to, itself or through the note of a section, stay as they are, and so do
    those that were promoted before.
    """
    steps: list[Step] = []
    for ref in in_order(found, at_least=OFTEN):
        note = layers.find(ref)
        if note is None or _is_known(layers, note):
            continue
        moved = promote(layers, ref)
        layers = moved.layers
        steps += moved.steps
    return Moved(layers, tuple(steps))


def _is_known(layers: Layers, note: Note) -> bool:
    return (
        layers.mentions(note.ref)
        or _cross_references(note)
        or any(other.says(reference_to(note.ref)) for other in layers.notes)
    )


def _crossed(note: Note, section: Section) -> Note:
    """Return the note with its cross-reference; one of another form stays as it was written."""
    if _cross_references(note):
        return note
    return with_facts(note, [_cross_reference(section)]) or note


def _cross_reference(section: Section) -> str:
    return f"Promoted to core: {section.title}"


def _cross_references(note: Note) -> bool:
    return any(_cross_reference(section) in note.text for section in Section)
