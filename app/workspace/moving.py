"""The movements between the layers, on a folder: the rules of `app.layers`, applied to files."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.layers import movements
from app.layers.core import DEFAULT_MAX_WORDS, Section
from app.layers.movements import Action, Layers, Moved, Step
from app.layers.movements.consolidate import DAYS
from app.layers.note import Topic
from app.workspace.applying import changes_of
from app.workspace.clock import local, zone_of
from app.workspace.errors import BadInput
from app.workspace.folder import Folder
from app.workspace.outcome import Outcome
from app.workspace.reading import read_workspace
from app.workspace.running import run

MAX_DAYS = 36_500


def demote(
    root: Path,
    section: Section,
    item: str,
    *,
    topic: Topic | None = None,
    title: str | None = None,
    tags: Sequence[str] = (),
    now: dt.datetime | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Move an item of core, named by its text or first line, to the archive; leave a reference.

    UnknownItem, and what `move` raises.
    """

    def movement(layers: Layers, today: dt.date) -> Moved:
        return movements.demote(
            layers, section, item, today=today, topic=topic, title=title, tags=tags
        )

    return move(root, movement, now=now, dry_run=dry_run)


def promote(
    root: Path,
    ref: str,
    *,
    section: Section = Section.QUICK_REFERENCE,
    now: dt.datetime | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Copy what a note (`topic/name`) says in one line to a section of core.

    UnknownNote, and what `move` raises.
    """
    return move(
        root,
        lambda layers, _: movements.promote(layers, ref, section=section),
        now=now,
        dry_run=dry_run,
    )


def consolidate(
    root: Path,
    *,
    days: int = DAYS,
    now: dt.datetime | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Copy what the daily notes of the last days say, today included, into notes of the archive.

    BadInput for a number of days that is none, and what `move` raises.
    """
    _check_days(days)
    return move(
        root,
        lambda layers, today: movements.consolidate(layers, today=today, days=days),
        days=days,
        now=now,
        dry_run=dry_run,
    )


def trim(
    root: Path,
    *,
    max_words: int = DEFAULT_MAX_WORDS,
    now: dt.datetime | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Demote items of core until it counts for at most `max_words`.

    BadInput for a limit below 1, and what `move` raises.
    """
    _check_words(max_words)
    return move(
        root,
        lambda layers, today: movements.trim(layers, today=today, max_words=max_words),
        max_words=max_words,
        now=now,
        dry_run=dry_run,
    )


def heartbeat(
    root: Path,
    *,
    days: int = DAYS,
    max_words: int = DEFAULT_MAX_WORDS,
    found: Mapping[str, int] | None = None,
    now: dt.datetime | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Consolidate, promote what was found often (`found` counts by ref), trim, merge duplicates.

    BadInput as for consolidate and trim, and what `move` raises.
    """
    _check_days(days)
    _check_words(max_words)

    def movement(layers: Layers, today: dt.date) -> Moved:
        return movements.heartbeat(layers, today=today, days=days, max_words=max_words, found=found)

    return move(root, movement, days=days, max_words=max_words, now=now, dry_run=dry_run)


def move(
    root: Path,
    movement: Callable[[Layers, dt.date], Moved],
    *,
    days: int = 0,
    max_words: int | None = None,
    now: dt.datetime | None,
    dry_run: bool,
) -> Outcome:
    """Do a movement on the layers of a folder, with the daily notes of the last `days`.

    The day is decided once, at the start. ChangedMeanwhile where a person saved a file that was to
    be written: what was written before stays right, and the next run does the rest. What `run`,
    `read_workspace` and `changes_of` raise.
    """
    instant = now or dt.datetime.now(dt.UTC)

    def plan(folder: Folder) -> Outcome:
        today = local(instant, zone_of(folder)).date()
        first = today - dt.timedelta(days=days - 1)
        reading = read_workspace(folder, first=first)
        moved = movement(reading.layers, today)
        return Outcome(
            changes_of(folder, reading, movements.plan(reading.layers, moved.layers)),
            tuple(_sentences(moved, max_words)),
            reading.skipped,
        )

    return run(root, plan, dry_run=dry_run)


def _sentences(moved: Moved, max_words: int | None) -> list[str]:
    told = [_sentence(step) for step in moved.steps] or ["Nothing to move."]
    limit = "" if max_words is None else f" of at most {max_words:,}"
    return [*told, f"Core has {moved.layers.words:,} words{limit}."]


def _sentence(step: Step) -> str:
    origin = f" from {step.section.title}" if step.section else ""
    match step.action:
        case Action.DEMOTED:
            return f"Demoted{origin} to {step.ref}: {step.text}"
        case Action.PROMOTED:
            return (
                f"Promoted {step.ref} to {step.section.title if step.section else ''}: {step.text}"
            )
        case Action.EXTRACTED:
            return f"Extracted to {step.ref}: {step.text}"
        case Action.MERGED:
            return f"Merged into {step.ref}: {step.text}"
        case Action.KEPT:
            return f"Kept: {step.text}"


def _check_days(days: int) -> None:
    if not 1 <= days <= MAX_DAYS:
        raise BadInput(f"The number of days is 1 to {MAX_DAYS:,}.")


def _check_words(max_words: int) -> None:
    if max_words < 1:
        raise BadInput("The number of words is at least 1.")
