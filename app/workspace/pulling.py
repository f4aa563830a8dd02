"""Bring what a checkpoint has into the folder; what a person saved meanwhile is not touched."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.layers.core import Section
from app.layers.daily import DayItem
from app.layers.day_file import add_to_day
from app.layers.markdown.lines import newline_of
from app.layers.markdown.shields import shielded
from app.layers.note import check_name, read_topic
from app.layers.sections import body_text
from app.lineage.errors import InvalidInput
from app.workspace.applying import place_of
from app.workspace.errors import InTheWay, NotText
from app.workspace.folder import Folder, open_folder
from app.workspace.outcome import Change, Outcome, changed
from app.workspace.paths import day_path
from app.workspace.reading import Reading, read_workspace
from app.workspace.running import check_workspace, run
from app.workspace.sync_state import base_change, read_base
from app.workspace.syncing import Base, Comparison, Side, Way, agreed
from app.workspace.texts import text_of
from app.workspace.writer import open_writer


@dataclass(frozen=True, slots=True)
class Local:
    """The folder's side of a comparison, and the bytes that it was read from."""

    side: Side
    base: Base
    reading: Reading


@dataclass(frozen=True, slots=True)
class Pulled:
    """What changed in the folder, or would, and by its key what could not be pulled, and why."""

    outcome: Outcome
    skipped: Mapping[str, str]


def read_local(root: Path, *, remote: str) -> Local:
    """Read a folder, and what it last agreed on with a checkpoint.

    `remote` names the checkpoint, and has to change when it is made anew. What `read_workspace`
    and `read_base` raise.
    """
    with open_folder(root) as folder:
        check_workspace(folder)
        return _local(folder, remote)


def pull(root: Path, local: Local, comparison: Comparison, *, dry_run: bool = False) -> Pulled:
    """Write into the folder what the comparison pulls; what it has of conflicts stays as it is.

    ChangedMeanwhile where core or a note was saved since `local` was read.
    """
    pulled = comparison.having(Way.PULL)
    skipped: dict[str, str] = {}

    def plan(folder: Folder) -> Outcome:
        changes = changed(
            (
                *_notes(folder, local.reading, pulled, skipped),
                *_core(local.reading, pulled),
                *_days(folder, pulled, skipped),
            )
        )
        report = tuple(f"Pulls {change.path}." for change in changes)
        return Outcome(changes, report, tuple(dict.fromkeys(skipped.values())))

    return Pulled(run(root, plan, dry_run=dry_run), skipped)


def remember(root: Path, remote: str, held: Side) -> None:
    """Keep what the folder and the checkpoint, which holds this, agree on now."""
    with open_writer(root) as writer:
        local = _local(writer, remote)
        change = base_change(writer, remote, agreed(local.side, held, local.base))
        if changed((change,)):
            writer.write(change)


def _local(folder: Folder, remote: str) -> Local:
    reading = read_workspace(folder)
    layers = reading.layers
    side = Side(
        core=reading.document.texts,
        notes={note.ref: note.text for note in layers.notes},
        days=tuple(layers.days),
    )
    return Local(side, read_base(folder, remote), reading)


def _core(reading: Reading, pulled: Comparison) -> list[Change]:
    bodies = {
        Section(difference.key): _with_text(
            reading.document.bodies[Section(difference.key)],
            difference.remote or "",
            newline=newline_of(str(reading.document)),
        )
        for difference in pulled.core
    }
    document = reading.document.with_bodies(bodies)
    return [Change(reading.core, str(document).encode())] if bodies else []


def _with_text(body: str, text: str, *, newline: str) -> str:
    """Return a section's body that says this, with the blank lines around it that it had."""
    said = shielded(body_text(text)).replace("\r\n", "\n").replace("\n", newline)
    if not (before := body_text(body)):
        return f"{newline}{said}{newline}{newline if body else ''}"
    start = body.index(before)
    return f"{body[:start]}{said}{body[start + len(before) :]}"


def _notes(
    folder: Folder, reading: Reading, pulled: Comparison, skipped: dict[str, str]
) -> Iterator[Change]:
    for difference in pulled.notes:
        text = difference.remote or ""
        try:
            seen = place_of(folder, reading, _checked(difference.key))
        except (InvalidInput, InTheWay) as error:
            skipped[difference.key] = (
                f"note {difference.key!r} of the checkpoint, which cannot be pulled: {error}"
            )
            continue
        if newline_of(text_of(seen)) == "\r\n":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        yield Change(seen, text.encode())


def _checked(ref: str) -> str:
    """Return a ref that a checkpoint sent, if it is one. InvalidInput."""
    topic, _, name = ref.partition("/")
    return f"{read_topic(topic).value}/{check_name(name)}"


def _days(folder: Folder, pulled: Comparison, skipped: dict[str, str]) -> Iterator[Change]:
    days: dict[dt.date, dict[str, DayItem]] = {}
    for difference in pulled.days:
        if (item := difference.remote) is not None:
            days.setdefault(item.date, {})[difference.key] = item
    for date, items in days.items():
        seen = folder.read(day_path(date))
        try:
            text = add_to_day(text_of(seen), items.values(), date)
        except NotText as error:
            skipped |= dict.fromkeys(items, str(error))
            continue
        yield Change(seen, text.encode())
