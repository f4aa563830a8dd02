"""The movements between the layers of a checkpoint."""

from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.changes import tell_change
from app.cli.layers import budget
from app.cli.options import (
    DEFAULT_URL,
    ApiKey,
    AsJson,
    CheckpointId,
    Days,
    DryRun,
    ItemName,
    OwnMaxWords,
    SectionName,
    SectionTo,
    ServiceUrl,
    Tags,
    Title,
    TopicName,
)
from app.cli.output import said_plainly
from app.client import Movement, Service
from app.client.movements import Step
from app.layers.core import Section
from app.layers.movements.consolidate import DAYS

SENTENCES = {
    "demoted": "Demoted from {section} to {ref}: {text}",
    "promoted": "Promoted {ref} to {section}: {text}",
    "extracted": "Extracted to {ref}: {text}",
    "merged": "Merged into {ref}: {text}",
    "kept": "Kept: {text}",
}


def demote(
    checkpoint: CheckpointId,
    section: SectionName,
    item: ItemName,
    *,
    topic: TopicName = None,
    title: Title = None,
    tags: Tags = None,
    dry_run: DryRun = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Move an item of core memory to the archive, and leave a reference in its place."""
    with said_plainly(), Service(url, api_key=api_key) as service:
        done = service.movements(checkpoint).demote(
            section.value, item, topic=topic, title=title, tags=tags or (), dry_run=dry_run
        )
    _tell(done, as_json=as_json)


def promote(
    checkpoint: CheckpointId,
    note: Annotated[
        str | None,
        typer.Argument(help="Its id, or such as projects/locatering; else what is found often."),
    ] = None,
    *,
    section: SectionTo = Section.QUICK_REFERENCE,
    dry_run: DryRun = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Copy what a note says in short to core memory; the note stays.

    Without a note, it is what searches found three times or more in the last seven days.
    """
    with said_plainly(), Service(url, api_key=api_key) as service:
        movements = service.movements(checkpoint)
        done = movements.promote(note, section=section.value, dry_run=dry_run)
    _tell(done, as_json=as_json)


def consolidate(
    checkpoint: CheckpointId,
    *,
    days: Days = DAYS,
    dry_run: DryRun = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Take decisions, lessons and new facts of the last days' notes into the archive."""
    with said_plainly(), Service(url, api_key=api_key) as service:
        done = service.movements(checkpoint).consolidate(days=days, dry_run=dry_run)
    _tell(done, as_json=as_json)


def trim(
    checkpoint: CheckpointId,
    *,
    max_words: OwnMaxWords = None,
    dry_run: DryRun = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Move items of core memory to the archive until it is within its limit of words."""
    with said_plainly(), Service(url, api_key=api_key) as service:
        done = service.movements(checkpoint).trim(max_words=max_words, dry_run=dry_run)
    _tell(done, as_json=as_json)


def heartbeat(
    checkpoint: CheckpointId,
    *,
    days: Days = DAYS,
    max_words: OwnMaxWords = None,
    dry_run: DryRun = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Consolidate, promote what is found often, trim, and merge notes that are doubled."""
    with said_plainly(), Service(url, api_key=api_key) as service:
        movements = service.movements(checkpoint)
        done = movements.heartbeat(days=days, max_words=max_words, dry_run=dry_run)
    _tell(done, as_json=as_json)


COMMANDS = {
    demote: (
        'letta-lineage demote exp1 active-context "Locatering: survey of sites" --dry-run',
        'letta-lineage demote exp1 user "Ada likes tea" --topic people --title Ada',
    ),
    promote: (
        "letta-lineage promote exp1 projects/locatering",
        "letta-lineage promote exp1 --dry-run",
    ),
    consolidate: (
        "letta-lineage consolidate exp1 --dry-run",
        "letta-lineage consolidate exp1 --days 30",
    ),
    trim: ("letta-lineage trim exp1 --dry-run", "letta-lineage trim exp1 --max-words 800"),
    heartbeat: ("letta-lineage heartbeat exp1 --dry-run", "letta-lineage heartbeat exp1 --json"),
}


def _tell(done: Movement, *, as_json: bool) -> None:
    sentences = [_sentence(step) for step in done.steps] or ["Nothing to move."]
    diff = done.diff if done.dry_run else None
    tell_change(asdict(done), [*sentences, budget(done)], diff=diff, as_json=as_json)


def _sentence(step: Step) -> str:
    title = "" if step.section is None else Section(step.section).title
    sentence = SENTENCES.get(step.action, "{text}")
    return sentence.format(section=title, ref=step.ref, text=step.text)
