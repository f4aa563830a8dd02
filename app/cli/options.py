"""What commands have in common: options, exit codes, examples."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from app.cli.arguments import known_checkpoint
from app.layers.core import Section
from app.layers.note import Topic

DEFAULT_URL = "http://127.0.0.1:8000"
EXIT_REFUSED, EXIT_BAD_INPUT, EXIT_UNREACHABLE = 1, 2, 3
EXITS = (
    "Exit codes: 0 done, 1 the service refused, 2 the input is bad, "
    "3 no service answers, or it cannot just now, 130 interrupted."
)

ServiceUrl: TypeAlias = Annotated[
    str, typer.Option("--url", envvar="LINEAGE_URL", help="Where the service answers.")
]
ApiKey: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--api-key", envvar="LINEAGE_API_KEY", show_default=False, help="Where it asks for one."
    ),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]
CheckpointId: TypeAlias = Annotated[
    str, typer.Argument(help="The checkpoint's id.", callback=known_checkpoint)
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]
Wait: TypeAlias = Annotated[
    bool, typer.Option(help="Wait until every entry is indexed; it goes on by itself without.")
]

Folder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DIR", file_okay=False, help="The workspace's directory.")
]
SectionName: TypeAlias = Annotated[Section, typer.Argument(help="The section of core.")]
SectionTo: TypeAlias = Annotated[Section, typer.Option("--section", help="Where it goes in core.")]
ItemName: TypeAlias = Annotated[
    str, typer.Argument(help="The item's text or its first line, without its bullet.")
]
Title: TypeAlias = Annotated[str | None, typer.Option(help="The note's title.")]
TopicName: TypeAlias = Annotated[
    Topic | None, typer.Option(help="The note's topic; else what the item says of itself.")
]
Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", help="A tag for the note; may be repeated.")
]
Days: TypeAlias = Annotated[int, typer.Option(help="Today and the days before it.")]
MaxWords: TypeAlias = Annotated[
    int, typer.Option(envvar="LINEAGE_CORE_MAX_WORDS", help="How many words core may have.")
]
OwnMaxWords: TypeAlias = Annotated[
    int | None, typer.Option(help="How many words core may have; else what the service is set to.")
]


def epilog(*examples: str) -> str:
    """Return the end of a help text: examples and exit codes, a paragraph each."""
    title = "Example:" if len(examples) == 1 else "Examples:"
    return "\n\n".join((title, *(f"  {example}" for example in examples), EXITS))
