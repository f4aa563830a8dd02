"""The command line: letta-lineage. It speaks HTTP, but for serve, migrate and doctor.

What only those three need is imported when they run: a client's command starts in half a second.
"""

from importlib.metadata import version
from typing import Annotated

import typer

from app.cli import doctor, layers, movements, reading, serving, snapshots, upkeep, workspace
from app.cli.arguments import Command
from app.cli.options import epilog

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ancestor-scoped, copy-on-write memory for trees of research agents.",
    epilog=epilog("letta-lineage doctor", "letta-lineage load run.jsonl --checkpoint exp1"),
)


def tell_version(asked: bool) -> None:  # noqa: FBT001  (called by typer)
    """Print the version, where it is asked for, and end."""
    if asked:
        typer.echo(version("letta-lineage"))
        raise typer.Exit


@app.callback()
def root(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=tell_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Serve letta-lineage, or talk to a running one."""


for panel, module in (
    ("Look", reading),
    ("Layers of memory", layers),
    ("Layers of memory", movements),
    ("Save and bring back", snapshots),
    ("Fill and mend", upkeep),
    ("The service", serving),
    ("The service", doctor),
):
    for command, examples in module.COMMANDS.items():
        app.command(cls=Command, epilog=epilog(*examples), rich_help_panel=panel)(command)
app.add_typer(workspace.group, name="workspace", rich_help_panel="Layers of memory")


def main() -> None:
    """Run the command line."""
    app()
