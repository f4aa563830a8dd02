"""load, reindex and reconcile: fill a checkpoint, and keep its index whole."""

import re
from pathlib import Path
from typing import Annotated

import typer

from app.cli.arguments import known_checkpoint
from app.cli.options import DEFAULT_URL, ApiKey, AsJson, CheckpointId, ServiceUrl, Wait
from app.cli.output import bar, said_plainly, say
from app.cli.waiting import refused_ones, wait_for_index
from app.client import Answer, Service
from app.client.run_file import load_run, read_run

REMEDIES = {
    "missing": "are indexed again",
    "differing": "have another text there; reindex makes all anew",
    "orphans": "are deleted",
    "doubles": "are deleted",
}


def load(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON lines.")],
    *,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="The checkpoint's id; else the file's name.", callback=known_checkpoint),
    ] = None,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Load a run of nodes and entries into a running service.

    Doing so again within a day adds nothing.
    """
    into = checkpoint or _id_of(file)
    with said_plainly(), Service(url, api_key=api_key) as service:
        run = read_run(file)
        with bar(f"Loading {file.name}", total=run.steps, quiet=as_json) as progress:
            nodes, entries = load_run(service, run, into, on_step=progress.advance)
    say(
        {"checkpoint": into, "nodes": nodes, "entries": entries},
        f"{into}: {nodes} nodes, {entries} entries.",
        as_json=as_json,
    )


def reindex(
    checkpoint: CheckpointId,
    *,
    wait: Wait = True,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Index a checkpoint anew, for the embedding model that is configured, and wait for it."""
    with said_plainly(), Service(url, api_key=api_key) as service:
        state = service.reindex(checkpoint)
        total = state["pending"]
        if wait:
            state = wait_for_index(service, checkpoint, quiet=as_json)
    done = f"{total - state['refused']} entries indexed with {state['model']}"
    going_on = f"{total} entries wait to be indexed"
    say(
        state,
        f"{checkpoint}: {done if wait else going_on}.{refused_ones(state)}",
        as_json=as_json,
    )


def reconcile(
    checkpoint: CheckpointId,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell.")] = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Compare the ledger with Letta, and mend what Letta lacks or has too much of."""
    with (
        said_plainly(),
        Service(url, api_key=api_key) as service,
        bar(f"Comparing {checkpoint}", total=None, quiet=as_json),
    ):
        found = service.reconcile(checkpoint, dry_run=dry_run)
    say(found, f"{checkpoint}: {_told(found)}", as_json=as_json)


COMMANDS = {
    load: ("letta-lineage load examples/run.jsonl --checkpoint exp1",),
    reindex: ("letta-lineage reindex exp1", "letta-lineage reindex exp1 --no-wait --json"),
    reconcile: ("letta-lineage reconcile exp1 --dry-run", "letta-lineage reconcile exp1"),
}


def _told(found: Answer) -> str:
    """Say what a reconciliation found, and what became of it."""
    parts = [
        f"{len(found[kind])} {kind} ({done})" for kind, done in REMEDIES.items() if found[kind]
    ]
    outcome = "; ".join(parts) if parts else "nothing to mend"
    unchanged = " Nothing was changed: a dry run." if parts and found["dry_run"] else ""
    return f"{found['checked']} entries compared: {outcome}.{unchanged}"


def _id_of(file: Path) -> str:
    """Make a checkpoint's id of a file's name."""
    return re.sub(r"[^a-z0-9_-]+", "-", file.stem.lower()).strip("-_")[:63] or "run"
