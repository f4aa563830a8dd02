"""Merge: two notes that are one become one, and every reference follows."""

from collections.abc import Hashable
from dataclasses import replace

from app.layers.markdown.blocks import RULE, Kind, blocks
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import fact
from app.layers.movements.bodies import with_reference
from app.layers.movements.demote import SHOWN
from app.layers.movements.keeping import summary_of, with_facts
from app.layers.movements.state import Action, Layers, Moved, Step
from app.layers.note import PARTS, Note


def merge(layers: Layers) -> Moved:
    """Merge the notes of a topic that have one title and day, or say exactly the same.

    The one that says more stays, of two alike the older; it takes up what only the other said. Of
    notes in another form, only those that say nothing else are merged, and none that has front
    matter, comments or headings of its own goes.
    """
    steps: list[Step] = []
    seen: dict[Hashable, str] = {}
    for ref in [note.ref for note in layers.notes]:
        note = layers.note(ref)
        for key in _keys(note):
            other = layers.find(seen.setdefault(key, ref))
            if other is None or other.ref == ref:
                continue
            ordered = sorted((other, note), key=lambda one: len(one.facts), reverse=True)
            stays, goes = ordered
            if (merged := _merged(layers, stays, goes)) is not None:
                layers = merged
                seen |= dict.fromkeys((*_keys(stays), *_keys(goes)), stays.ref)
                steps.append(Step(Action.MERGED, cut(goes.title, SHOWN), ref=stays.ref))
                break
    return Moved(layers, tuple(steps))


def _keys(note: Note) -> tuple[Hashable, ...]:
    """Return what two notes that are one have in common."""
    return (
        (note.topic, note.title.casefold(), note.date),
        (note.topic, frozenset(note.facts)),
    )


def _merged(layers: Layers, stays: Note, goes: Note) -> Layers | None:
    """Return the layers with one note in the place of the two; None where that cannot be."""
    if not _unknown(goes) <= _unknown(stays):
        return None
    told = list(goes.statements)
    if goes.summary != summary_of(goes.own_details):
        told.append(goes.summary)
    only_there: dict[str, str] = {}
    for text in told:
        if not stays.says(statement := fact(text)):
            only_there.setdefault(statement, text)
    missing = list(only_there.values())
    title = () if goes.title.casefold() == stays.title.casefold() else (_tag(goes.title),)
    tags = [tag for tag in (*goes.tags, *title) if tag not in stays.tags]
    survivor = with_facts(stays, missing, tags=tags) if missing or tags else stays
    if survivor is None:
        return None
    notes = (
        survivor if note.ref == stays.ref else note for note in layers.notes if note.ref != goes.ref
    )
    followed = {ref: stays.ref if into == goes.ref else into for ref, into in layers.merged.items()}
    layers = replace(layers, notes=tuple(notes), merged={**followed, goes.ref: stays.ref})
    return _following(layers, goes.ref, stays.ref)


def _unknown(note: Note) -> set[str]:
    """Return what somebody wrote beside facts: front matter, comments, headings of their own."""
    parts = {part.casefold() for part in PARTS}
    own = blocks(note.text)
    title = next((block for block in own if block.level == 1), None)
    return {
        block.title or block.text.strip()
        for block in own
        if (block.kind is Kind.OTHER and not RULE.fullmatch(block.text))
        or (block.level and block != title and block.title.casefold() not in parts)
    }


def _following(layers: Layers, former: str, ref: str) -> Layers:
    """Let what refers to the note that went, and says nothing else, refer to the one that stayed.

    A sentence that happens to name it stays as somebody wrote it.
    """
    notes = []
    for note in layers.notes:
        text = with_reference(note.text, former, ref)
        same = text == note.text
        notes.append(note if same else Note.read(note.topic, note.name, text, otherwise=note.date))
    core = {at: with_reference(body, former, ref) for at, body in layers.core.items()}
    return replace(layers, core=core, notes=tuple(notes))


def _tag(title: str) -> str:
    return " ".join(title.replace(",", " ").split())
