"""Trim: demote items until core is within its limit, in an order that anyone can foresee.

1. The sections in the order Active Context, Quick Reference, User; never Identity. In each from
   its top: what is newest stands at its end.
2. Whole items only, and no more than it takes. All that one section gives up goes to one note, so
   that one reference stays for all of them.
3. Where that is not enough, the references that stand in the sections, in the same order: the
   section's own note takes them up as well.

What core holds in no section is never touched.
"""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.layers.core import DEFAULT_MAX_WORDS, Section
from app.layers.markdown.blocks import Block, statements
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import fact, plain
from app.layers.movements.bodies import without_items
from app.layers.movements.demote import SHOWN, TOPIC_OF
from app.layers.movements.keeping import Place, add, keep
from app.layers.movements.state import (
    Action,
    Layers,
    Moved,
    Step,
    reference_to,
    referred,
)
from app.layers.words import count_words

ORDER = (Section.ACTIVE_CONTEXT, Section.QUICK_REFERENCE, Section.USER)


def trim(layers: Layers, *, today: dt.date, max_words: int = DEFAULT_MAX_WORDS) -> Moved:
    """Demote items until core counts for at most `max_words`.

    Where what may go is not enough, it goes all the same, and a step says how much stays.
    """
    steps: list[Step] = []
    for references in (False, True):
        for section in ORDER:
            while layers.words > max_words:
                place = Place(TOPIC_OF[section], section.value, section.title, today)
                items = _enough(layers, section, place.ref, max_words, references=references)
                if not items:
                    break
                layers, more = _move(layers, section, items, place)
                steps += more
    if layers.words > max_words:
        steps.append(
            Step(Action.KEPT, f"{layers.words} words stay, over {max_words}: no more may go.")
        )
    return Moved(layers, tuple(steps))


def _enough(
    layers: Layers, section: Section, ref: str, max_words: int, *, references: bool
) -> list[Block]:
    """Return the fewest items from the top that bring core within the limit, all if none do."""
    body = layers.core[section]
    items = statements(body)
    may_go = [
        block
        for block in items
        if not _refers_to_own(block, ref) and _is_reference(block) is references
    ]
    refers = any(_refers_to_own(block, ref) for block in items)
    cost = 0 if refers else count_words(reference_to(ref))
    over = layers.words - max_words
    chosen = list(_until(may_go, over + cost))
    gain = sum(count_words(block.text) for block in chosen) - cost
    return chosen if gain > 0 else []


def _until(blocks: Sequence[Block], words: int) -> Iterator[Block]:
    for block in blocks:
        if words <= 0:
            return
        words -= count_words(block.text)
        yield block


def _refers_to_own(block: Block, ref: str) -> bool:
    """Tell whether an item refers to the section's own note, or to a further one of its name."""
    said, named = referred(fact(block.text))
    return not said and named is not None and _is_own(named, ref)


def _is_own(named: str, ref: str) -> bool:
    return re.fullmatch(rf"{ref}(-\d+)?", named) is not None


def _grows(layers: Layers, ref: str) -> bool:
    """Tell whether a note can be added to; what somebody wrote in another form cannot."""
    note = layers.find(ref)
    return note is not None and note.takes_facts


def _is_reference(block: Block) -> bool:
    return not referred(fact(block.text))[0]


def _move(
    layers: Layers, section: Section, items: Sequence[Block], place: Place
) -> tuple[Layers, list[Step]]:
    layers, refs = keep(layers, [block.text for block in items], place)
    growing = (ref for ref in reversed(refs) if _is_own(ref, place.ref) and _grows(layers, ref))
    own = next(growing, None)
    # What other notes say is not written again: the section's own note tells where it is.
    elsewhere = [reference_to(ref) for ref in dict.fromkeys(refs) if ref != own]
    name = (own or place.ref).partition("/")[2]
    layers, told = add(layers, elsewhere, replace(place, name=name))
    own = told[-1] if told else own or place.ref
    body = without_items(layers.core[section], items, own)
    steps = [Step(Action.DEMOTED, cut(plain(block.text), SHOWN), section, own) for block in items]
    return layers.with_body(section, body), steps
