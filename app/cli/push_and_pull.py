"""push, pull and diff: between a folder and a checkpoint."""

from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias

import typer

from app.cli import differing, syncing
from app.cli.changes import tell, tell_change, tell_skipped
from app.cli.options import (
    DEFAULT_URL,
    EXIT_REFUSED,
    ApiKey,
    AsJson,
    CheckpointId,
    DryRun,
    Folder,
    ServiceUrl,
)
from app.cli.output import note, said_plainly, say, show
from app.cli.syncing import Left
from app.client import Service
from app.workspace.syncing import Comparison, Way

Overwrite: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Settle conflicts: what is sent wins.")
]


def push(
    folder: Folder,
    checkpoint: CheckpointId,
    *,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Bring a checkpoint up to a folder: core, notes and daily notes. Nothing is deleted there.

    What both sides changed since they last agreed is told, and left as it is.
    """
    with said_plainly(), Service(url, api_key=api_key) as service:
        done = syncing.push(folder, service, checkpoint, overwrite=overwrite, dry_run=dry_run)
    diff = differing.diff(done.sent) if dry_run else None
    _tell(
        done.sent,
        done.left,
        verb="Sent",
        nothing="Nothing to send.",
        renamed=done.renamed,
        diff=diff,
        as_json=as_json,
    )


def pull(
    folder: Folder,
    checkpoint: CheckpointId,
    *,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Bring a folder up to a checkpoint: core, notes and daily notes. Nothing is deleted here.

    What both sides changed since they last agreed is told, and left as it is.
    """
    with said_plainly(), Service(url, api_key=api_key) as service:
        done = syncing.pull(folder, service, checkpoint, overwrite=overwrite, dry_run=dry_run)
    diff = done.outcome.diff if dry_run else None
    _tell(
        done.taken,
        done.left,
        verb="Pulled",
        nothing="Nothing to pull.",
        renamed={},
        diff=diff,
        as_json=as_json,
    )


def diff(
    folder: Folder,
    checkpoint: CheckpointId,
    *,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show how a folder and a checkpoint differ, and what push and pull would do about it.

    The diff turns what the checkpoint holds into what the folder does.
    """
    with said_plainly(), Service(url, api_key=api_key) as service:
        found, left = syncing.differences(folder, service, checkpoint)
    tell_skipped(left.skipped)
    if as_json:
        say({**differing.jsonable(found), "skipped": list(left.skipped)}, "", as_json=True)
        return
    nothing = "Nothing else differs." if left.skipped else "Nothing differs."
    tell([*differing.told_of_all(found)] or [nothing])
    show(differing.diff(found))


COMMANDS: dict[Callable[..., None], tuple[str, ...]] = {
    push: (
        "letta-lineage workspace push notes exp1 --dry-run",
        "letta-lineage workspace push notes exp1",
    ),
    pull: (
        "letta-lineage workspace pull notes exp1",
        "letta-lineage workspace pull notes exp1 --overwrite --json",
    ),
    diff: ("letta-lineage workspace diff notes exp1",),
}


def _tell(
    done: Comparison,
    left: Left,
    *,
    verb: str,
    nothing: str,
    renamed: Mapping[str, str],
    diff: str | None,
    as_json: bool,
) -> None:
    """Tell what was done and what is left; end with 1 where anything is left to settle."""
    tell_skipped(left.skipped)
    answer = {
        verb.lower(): differing.jsonable(done),
        "renamed": dict(renamed),
        "conflicts": differing.jsonable(left.conflicts),
        "refused": {key: str(error) for key, error in left.refused.items()},
        "skipped": list(left.skipped),
        "dry_run": diff is not None,
    }
    sentences = [*differing.told(done, verb, renamed=renamed)] or [nothing]
    tell_change(answer, sentences, diff=diff, as_json=as_json)
    for sentence in differing.told(left.conflicts, differing.WAYS[Way.CONFLICT]):
        note(f"{sentence} Push or pull with --overwrite settles it.")
    for key, ref in renamed.items():
        note(
            f"Somebody else's note is {key} in the checkpoint now. "
            f"Call yours {ref} in the folder too, then pull."
        )
    names = differing.names(left.unsent)
    for key, error in left.refused.items():
        note(f"Refused {names[key]}: {error}")
    if left.conflicts or left.refused:
        raise typer.Exit(EXIT_REFUSED)
