"""tree and search: look at what is there."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from app.cli.arguments import known_node
from app.cli.options import DEFAULT_URL, ApiKey, AsJson, CheckpointId, ServiceUrl
from app.cli.output import counted, note, printable, said_plainly, say, to_stdout
from app.cli.tree_drawing import drawn
from app.client import Answer, Service

# Of a long text, what a table shows without --full.
SHOWN = 240


def tree(
    checkpoint: CheckpointId,
    *,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Draw a checkpoint's tree.

    Of each node it shows how many entries it has, whether it is sealed, and its direction, which is
    cut at the edge of a terminal and whole in a pipe.
    """
    with said_plainly(), Service(url, api_key=api_key) as service:
        found = service.tree(checkpoint)
    if as_json:
        say(found, "", as_json=True)
        return
    console = to_stdout()
    nodes = found["nodes"]
    width = console.width if console.is_terminal else None
    entries = sum(node["entry_count"] for node in nodes)
    console.print(
        Text.assemble(
            (checkpoint, "bold"),
            (f"  {counted(len(nodes), 'node')}, {counted(entries, 'entry', 'entries')}", "dim"),
        ),
        soft_wrap=True,
    )
    for line in drawn(nodes, width=width, ascii_only=console.options.ascii_only):
        console.print(line, soft_wrap=True)


def search(
    node: Annotated[
        str, typer.Argument(help="The node's id, such as exp1.fast.", callback=known_node)
    ],
    query: Annotated[
        str | None, typer.Argument(help="What to look for; else the node's direction.")
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many hits at most.")] = 5,
    include_self: Annotated[
        bool, typer.Option("--include-self", help="The node's own entries as well.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Long texts are not cut.")] = False,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Search what a node may see, as the worker that executes it: its ancestors' entries."""
    with said_plainly(), Service(url, api_key=api_key) as service:
        found = service.search(node, query, limit=limit, include_self=include_self)
    if found["pending"]:
        note(f"{found['pending']} entries are not indexed yet, and may be missing here.")
    if as_json:
        say(found, "", as_json=True)
    elif found["results"]:
        to_stdout().print(_table(found["results"], full=full))
    else:
        scope = ", ".join(found["scope"]) or "no ancestors"
        say(found, f"Nothing found. Searched: {scope}.", as_json=False)


COMMANDS = {
    tree: ("letta-lineage tree exp1", "letta-lineage tree exp1 --json | jq '.nodes[].id'"),
    search: (
        'letta-lineage search exp1.fast "which rate converges"',
        'letta-lineage search exp1.fast "loss" --limit 20 --include-self --full',
    ),
}


def _table(hits: list[Answer], *, full: bool) -> Table:
    table = Table(show_lines=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("node", style="cyan", overflow="fold")
    table.add_column("text", overflow="fold", ratio=1)
    for hit in hits:
        score = "-" if hit["score"] is None else f"{hit['score']:.3f}"
        text = printable(hit["text"])
        shown = text if full or len(text) <= SHOWN else f"{text[:SHOWN].rstrip()}…"
        table.add_row(score, Text(hit["node"]), Text(shown))
    return table
