"""Demote: move an item of core to the archive and leave a reference in its place."""

import datetime as dt
from collections.abc import Sequence

from app.layers.classify import hashtags, topic_of
from app.layers.core import Section
from app.layers.errors import UnknownItem
from app.layers.markdown.blocks import Block, statements
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import fact, plain
from app.layers.markdown.lines import lines_of
from app.layers.movements.bodies import without_items
from app.layers.movements.keeping import Place, keep
from app.layers.movements.state import Action, Layers, Moved, Step, referred
from app.layers.note import Topic, free_name, slug

TITLE_LENGTH = 60
SHOWN = 100
# Where what says nothing of its topic goes to.
TOPIC_OF = {
    Section.IDENTITY: Topic.PEOPLE,
    Section.USER: Topic.PEOPLE,
    Section.ACTIVE_CONTEXT: Topic.PROJECTS,
    Section.QUICK_REFERENCE: Topic.REFERENCE,
}


def demote(
    layers: Layers,
    section: Section,
    item: str,
    *,
    today: dt.date,
    topic: Topic | None = None,
    title: str | None = None,
    tags: Sequence[str] = (),
) -> Moved:
    """Move an item to a note, and leave `See archival: topic/name` in its place.

    `item` is the item's text, or its first line; UnknownItem where the section has none such. A
    note of this topic and title takes it up, else one is made; where a note says it already, the
    reference is to that one, and an item that is a reference stays as it is.
    """
    body = layers.core[section]
    block = _find(body, item, section)
    alike = [other for other in statements(body) if fact(other.text) == fact(block.text)]
    said, _ = referred(fact(block.text))
    shown = cut(plain(block.text), SHOWN)
    if not said:
        return Moved(layers, (Step(Action.KEPT, f"It is a reference already: {shown}", section),))
    place = _place(layers, block, section, topic=topic, title=title, today=today, tags=tags)
    layers, (ref,) = keep(layers, [block.text], place)
    layers = layers.with_body(section, without_items(body, alike, ref))
    return Moved(layers, (Step(Action.DEMOTED, shown, section, ref),))


def _find(body: str, item: str, section: Section) -> Block:
    wanted = fact(item)
    items = statements(body)
    for block in items:
        if fact(block.text) == wanted:
            return block
    for block in items:
        if fact(lines_of(block.text)[0]) == wanted:
            return block
    raise UnknownItem(section.value)


def _place(
    layers: Layers,
    block: Block,
    section: Section,
    *,
    topic: Topic | None,
    title: str | None,
    today: dt.date,
    tags: Sequence[str],
) -> Place:
    if topic is None:
        named = topic_of(block.text, heading=None)
        topic = TOPIC_OF[section] if named is Topic.REFERENCE else named
    all_tags = tuple(dict.fromkeys((*tags, *hashtags(block.text))))
    if title is None:
        title = cut(plain(block.text), TITLE_LENGTH)
        name = free_name(slug(title), layers.names(topic))
    else:
        name = slug(title)
    return Place(topic, name, title, today, all_tags)
