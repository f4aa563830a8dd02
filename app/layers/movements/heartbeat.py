"""Heartbeat: all that keeps the layers in order, in one go and with one report."""

import datetime as dt
from collections.abc import Mapping

from app.layers.core import DEFAULT_MAX_WORDS
from app.layers.movements.consolidate import DAYS, consolidate
from app.layers.movements.merge import merge
from app.layers.movements.promote import promote_found
from app.layers.movements.state import Layers, Moved
from app.layers.movements.trim import trim


def heartbeat(
    layers: Layers,
    *,
    today: dt.date,
    days: int = DAYS,
    max_words: int = DEFAULT_MAX_WORDS,
    found: Mapping[str, int] | None = None,
) -> Moved:
    """Consolidate, promote what was found often (`found` counts by ref), trim, merge duplicates.

    A second run on what came of it changes nothing.
    """
    moved = consolidate(layers, today=today, days=days)
    steps = list(moved.steps)
    for step in (
        lambda layers: promote_found(layers, found or {}),
        lambda layers: trim(layers, today=today, max_words=max_words),
        merge,
    ):
        moved = step(moved.layers)
        steps += moved.steps
    return Moved(moved.layers, tuple(steps))
