"""init, note, and the movements between the layers of a plain folder, without a service."""

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from app import workspace
from app.cli.changes import tell_change, tell_skipped
from app.cli.core_check import refuse_credentials
from app.cli.options import (
    AsJson,
    Days,
    DryRun,
    Folder,
    ItemName,
    MaxWords,
    SectionName,
    SectionTo,
    Tags,
    Title,
    TopicName,
)
from app.cli.output import said_plainly
from app.layers.core import DEFAULT_MAX_WORDS, Section
from app.layers.movements.consolidate import DAYS
from app.workspace import Outcome
from app.workspace.paths import CORE


def init(
    folder: Folder,
    *,
    timezone: Annotated[
        str | None,
        typer.Option(help="The zone that says which day it is there, as Asia/Tokyo; else UTC."),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make a workspace of a folder: what is missing of its structure, and nothing over the rest."""
    with said_plainly():
        outcome = workspace.init(folder, timezone=timezone, dry_run=dry_run)
    _tell(outcome, dry_run=dry_run, as_json=as_json)


def note(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="What happened, in Markdown.")],
    *,
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="The day; else today.")
    ] = None,
    heading: Annotated[
        str | None, typer.Option(help="What it is to stand below in the day's file.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Write down what happened: with a heading at a day's end, else above the headings there."""
    _run(
        partial(workspace.note, folder, text, date=date, heading=heading),
        dry_run=dry_run,
        as_json=as_json,
    )


def demote(
    folder: Folder,
    section: SectionName,
    item: ItemName,
    *,
    topic: TopicName = None,
    title: Title = None,
    tags: Tags = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Move an item of core to the archive, and leave a reference in its place."""
    _run(
        partial(workspace.demote, folder, section, item, topic=topic, title=title, tags=tags or ()),
        dry_run=dry_run,
        as_json=as_json,
    )


def promote(
    folder: Folder,
    ref: Annotated[str, typer.Argument(metavar="NOTE", help="Such as projects/locatering.")],
    *,
    section: SectionTo = Section.QUICK_REFERENCE,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Copy what a note says in short to core; the note stays."""
    _run(partial(workspace.promote, folder, ref, section=section), dry_run=dry_run, as_json=as_json)


def consolidate(
    folder: Folder, *, days: Days = DAYS, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Take decisions, lessons and new facts of the last days' notes into the archive."""
    _run(partial(workspace.consolidate, folder, days=days), dry_run=dry_run, as_json=as_json)


def trim(
    folder: Folder,
    *,
    max_words: MaxWords = DEFAULT_MAX_WORDS,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Move items of core to the archive until core is within its limit of words."""
    _run(partial(workspace.trim, folder, max_words=max_words), dry_run=dry_run, as_json=as_json)


def heartbeat(
    folder: Folder,
    *,
    days: Days = DAYS,
    max_words: MaxWords = DEFAULT_MAX_WORDS,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Consolidate, trim, and merge notes that are doubled, in one go."""
    _run(
        partial(workspace.heartbeat, folder, days=days, max_words=max_words),
        dry_run=dry_run,
        as_json=as_json,
    )


COMMANDS: dict[Callable[..., None], tuple[str, ...]] = {
    init: (
        "letta-lineage workspace init notes",
        "letta-lineage workspace init notes --timezone Asia/Tokyo",
    ),
    note: (
        'letta-lineage workspace note notes "Decision: train in bf16 from now on."',
        'letta-lineage workspace note notes "Loss 0.31" --date 2026-03-14 --heading Training',
    ),
    demote: (
        'letta-lineage workspace demote notes active-context "Locatering: survey of sites"',
        'letta-lineage workspace demote notes user "Ada likes tea" --topic people --title Ada',
    ),
    promote: ("letta-lineage workspace promote notes projects/locatering",),
    consolidate: (
        "letta-lineage workspace consolidate notes --dry-run",
        "letta-lineage workspace consolidate notes --days 30",
    ),
    trim: ("letta-lineage workspace trim notes --max-words 800 --dry-run",),
    heartbeat: ("letta-lineage workspace heartbeat notes",),
}


def _run(call: Callable[..., Outcome], *, dry_run: bool, as_json: bool) -> None:
    """Plan, refuse a credential that would get into core, and do it all in the same moment."""
    now = dt.datetime.now(dt.UTC)
    with said_plainly():
        outcome = call(now=now, dry_run=True)
        for change in outcome.changes:
            if change.path == CORE:
                before, after = (data or b"" for data in (change.seen.data, change.data))
                refuse_credentials(CORE, after.decode(), known=before.decode())
        if not dry_run:
            outcome = call(now=now, dry_run=False)
    _tell(outcome, dry_run=dry_run, as_json=as_json)


def _tell(outcome: Outcome, *, dry_run: bool, as_json: bool) -> None:
    tell_skipped(outcome.skipped)
    answer = {
        "changes": [{"path": item.path, "diff": item.diff} for item in outcome.changes],
        "report": list(outcome.report),
        "skipped": list(outcome.skipped),
        "dry_run": dry_run,
    }
    diff = outcome.diff if dry_run else None
    tell_change(answer, outcome.report, diff=diff, as_json=as_json)
