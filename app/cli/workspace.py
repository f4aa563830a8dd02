"""letta-lineage workspace: the layers on a plain folder of Markdown."""

import typer

from app.cli import folder, push_and_pull
from app.cli.arguments import Command
from app.cli.options import epilog

group = typer.Typer(
    no_args_is_help=True,
    help="The three layers of memory on a plain folder of Markdown, with no service.",
    epilog=epilog(
        "letta-lineage workspace init notes",
        "letta-lineage workspace heartbeat notes --dry-run",
    ),
)


@group.callback()
def root() -> None:
    """Work on a folder: DIR/memory/core.md, DIR/memory/archival, DIR/memory/YYYY-MM-DD.md."""


for module in (folder, push_and_pull):
    for command, examples in module.COMMANDS.items():
        group.command(cls=Command, epilog=epilog(*examples))(command)
