"""How a fact gets into the archive: once, and where it can be found again."""

import datetime as dt
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.layers.markdown.blocks import Kind, blocks, statements
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import as_item, fact, plain
from app.layers.movements.state import Layers, referred
from app.layers.note import CROSS, MAX_SUMMARY, Note, Topic

SUMMARY_LENGTH = 120
# Within the 32 KiB of an entry, and of a length that a search can still say something of.
LONGEST_BYTES = 24 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """The note that a fact goes to where no note has it yet; it is made with this title and day."""

    topic: Topic
    name: str
    title: str
    date: dt.date
    tags: Sequence[str] = ()

    @property
    def ref(self) -> str:
        """What names the note."""
        return f"{self.topic.value}/{self.name}"


def keep(layers: Layers, texts: Sequence[str], place: Place) -> tuple[Layers, list[str]]:
    """Let the archive keep these blocks; return for each the ref of the note that says it.

    What a note says already is not written twice. Where the note of the place takes no more, for
    its form or its length, another one of its name and a number takes it.
    """
    kept = layers.kept_in()
    added: dict[str, str] = {}
    for text in texts:
        said, named = referred(statement := fact(text))
        there = layers.find(named) if named else None
        if there is not None and (not said or there.says(said)):
            kept[statement] = there.ref
        elif statement not in kept:
            added.setdefault(statement, text)
    layers, refs = add(layers, list(added.values()), place)
    kept |= dict(zip(added, refs, strict=True))
    return layers, [kept[statement] for statement in map(fact, texts)]


def with_facts(note: Note, texts: Sequence[str], *, tags: Sequence[str] = ()) -> Note | None:
    """Return the note with blocks added to its details, each as an item of a list.

    None for a note of another form, whose text stays as somebody wrote it. A summary that was made
    of the details is made anew.
    """
    if not note.takes_facts:
        return None
    own = note.own_details
    details = _ended(own) + "".join(map(_item, texts))
    made = bool(own) and note.summary == summary_of(own)
    changed = note.with_parts(
        details=details,
        summary=summary_of(details) if made else None,
        tags=(*note.tags, *tags) if set(tags) - set(note.tags) else None,
    )
    # Half a fence further up could swallow what is added, or be closed by it.
    says = {*changed.facts, changed.summary_fact, *_crossings(texts)}
    whole = {*note.facts, *map(fact, texts)} <= says
    return changed if whole else None


def summary_of(details: str) -> str:
    """Return one line for details: the first of their statements, and how many more there are."""
    said = [block.text for block in statements(details) if not CROSS.fullmatch(fact(block.text))]
    first = cut(plain(said[0]), SUMMARY_LENGTH) if said else ""
    more = len(said) - 1
    return f"{first} (and {more} more)" if more > 0 else first


def add(layers: Layers, texts: Sequence[str], place: Place) -> tuple[Layers, list[str]]:
    """Let the note of a place say these blocks, whoever else does, or as many notes as it takes.

    Returns for each the ref of the note that says it.
    """
    if not texts:
        return layers, []
    for name in _names(place.name):
        note = layers.find(f"{place.topic.value}/{name}")
        missing = [text for text in texts if note is None or not note.says(fact(text))]
        if note is not None and note.takes_facts and not missing:
            return layers, [note.ref] * len(texts)
        made: Note | None = (
            _new_note(replace(place, name=name), missing)
            if note is None
            else with_facts(note, missing, tags=place.tags)
        )
        if made is None or (note is not None and _is_long(made) and _is_full(note, texts, place)):
            continue
        if len(texts) > 1 and _is_long(made):
            half = len(texts) // 2
            layers, first = add(layers, texts[:half], place)
            layers, second = add(layers, texts[half:], place)
            return layers, first + second
        return layers.with_note(made), [made.ref] * len(texts)
    raise AssertionError("there is always a further name")


def _is_full(note: Note, texts: Sequence[str], place: Place) -> bool:
    """Tell whether not even the first of these blocks fits in; one that it says does."""
    if any(note.says(fact(text)) for text in texts):
        return False
    more = with_facts(note, texts[:1], tags=place.tags)
    return more is None or _is_long(more)


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in itertools.count(2))


def _is_long(note: Note) -> bool:
    return len(note.text.encode()) > LONGEST_BYTES


def _crossings(texts: Sequence[str]) -> list[str]:
    return [statement for statement in map(fact, texts) if CROSS.fullmatch(statement)]


def _new_note(place: Place, texts: Sequence[str]) -> Note:
    details = "".join(map(_item, texts))
    return Note.write(
        place.topic,
        place.name,
        title=place.title,
        date=place.date,
        summary=summary_of(details)[:MAX_SUMMARY],
        details=details,
        tags=place.tags,
    )


def _item(text: str) -> str:
    return as_item(f"- {plain(text)}")


def _ended(details: str) -> str:
    """Return details to which a list item may be added."""
    if not details:
        return ""
    in_list = blocks(details)[-1:] and blocks(details)[-1].kind is Kind.ITEM
    return details.rstrip("\n") + ("\n" if in_list else "\n\n")
