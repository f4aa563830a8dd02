"""core and session: look at the layers of a checkpoint."""

from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from app.cli.options import DEFAULT_URL, ApiKey, AsJson, CheckpointId, ServiceUrl
from app.cli.output import note, printable, said_plainly, say, show, to_stdout
from app.client import CoreMemory, Movement, NotesFound, Service, Session
from app.layers.core import Section, render_core


def core(
    checkpoint: CheckpointId,
    *,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the Markdown form and nothing else.")
    ] = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show core memory: what is always in context, and how many words it has."""
    if markdown and as_json:
        raise typer.BadParameter("--json and --markdown both want standard output.")
    with said_plainly(), Service(url, api_key=api_key) as service:
        layers = service.layers(checkpoint)
        if markdown:
            show(layers.core_markdown())
            return
        found = layers.core()
    if as_json:
        say(asdict(found), "", as_json=True)
        return
    show(f"{_markdown(found)}\n{budget(found)}\n")


def session(
    checkpoint: CheckpointId,
    query: Annotated[
        str | None, typer.Argument(help="What the session is about: finds the notes that help.")
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many notes at most.")] = 5,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show what a session loads at its start: core memory, today's notes, and notes that help."""
    with said_plainly(), Service(url, api_key=api_key) as service:
        found = service.layers(checkpoint).session(query, limit=limit)
    if as_json:
        say(_jsonable(asdict(found)), "", as_json=True)
        return
    _tell_session(found)


COMMANDS = {
    core: ("letta-lineage core exp1", "letta-lineage core exp1 --markdown > core.md"),
    session: ("letta-lineage session exp1", 'letta-lineage session exp1 "learning rates"'),
}


def budget(counted: CoreMemory | Movement) -> str:
    """Say how many words core memory has of how many."""
    return f"Core memory has {counted.words:,} words of at most {counted.max_words:,}."


def _tell_session(found: Session) -> None:
    show(f"{_markdown(found.core)}\n")
    said = "".join(f"{daily.text}\n" for daily in found.notes) or "Nothing yet.\n"
    show(f"# Today, {found.date.isoformat()}\n\n{said}")
    if found.archival is not None:
        show("\n")
        _tell_notes(found.archival)


def _tell_notes(found: NotesFound) -> None:
    if found.pending:
        note(f"{found.pending} notes are not indexed yet, and may be missing here.")
    if not found.results:
        show("No note was found.\n")
        return
    table = Table(show_lines=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("note", style="cyan", overflow="fold")
    table.add_column("summary", overflow="fold", ratio=1)
    for hit in found.results:
        score = "-" if hit.score is None else f"{hit.score:.3f}"
        table.add_row(score, Text(printable(hit.note.ref)), Text(printable(hit.note.summary)))
    to_stdout().print(table)


def _markdown(core: CoreMemory) -> str:
    texts = {section: getattr(core, section.block) for section in Section}
    return render_core(texts)


def _jsonable(value: Any) -> Any:
    """Return what was read from an answer with its times as the answer had them."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner) for inner in value]
    return value
