"""Consolidate: what the daily notes of the last days say goes into notes, one a day and topic."""

import datetime as dt
from collections.abc import Sequence

from app.layers.classify import hashtags, topic_of
from app.layers.daily import DayItem
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import facts
from app.layers.movements.demote import SHOWN
from app.layers.movements.keeping import Place, keep
from app.layers.movements.state import Action, Layers, Moved, Step, referred
from app.layers.note import Topic

DAYS = 7
DAILY = "daily"


def consolidate(layers: Layers, *, today: dt.date, days: int = DAYS) -> Moved:
    """Copy decisions, lessons and new facts of the last days, today included, into notes.

    What core or a note says already is left out, so a second run adds nothing. The daily notes stay
    as they are. `app.layers.classify` says which topic each belongs to.
    """
    first = today - dt.timedelta(days=days - 1)
    known = {statement for body in layers.core.values() for statement in facts(body)}
    known |= layers.kept_in().keys()
    chosen: dict[tuple[dt.date, Topic], list[DayItem]] = {}
    for item in sorted(layers.days, key=lambda item: item.date):
        if not first <= item.date <= today or item.fact in known:
            continue
        said, named = referred(item.fact)
        if named is not None and not said and layers.find(named) is not None:
            continue
        known.add(item.fact)
        topic = topic_of(item.text, heading=item.heading)
        chosen.setdefault((item.date, topic), []).append(item)
    steps: list[Step] = []
    for (date, topic), items in chosen.items():
        place = Place(topic, date.isoformat(), topic.value.title(), date, _tags(items))
        layers, refs = keep(layers, [item.text for item in items], place)
        steps += [
            Step(Action.EXTRACTED, cut(item.text, SHOWN), ref=ref)
            for item, ref in zip(items, refs, strict=True)
        ]
    return Moved(layers, tuple(steps))


def _tags(items: Sequence[DayItem]) -> list[str]:
    return list(dict.fromkeys((DAILY, *(tag for item in items for tag in hashtags(item.text)))))
