"""The command line: letta-lineage."""

import ctypes
import gc
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import uvicorn
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from app.client import Refused, Service, Unreachable
from app.client.run_file import BadRunFile, load_run, read_run
from app.logs import configure_logs
from app.main import StartRefused, check_start, create_app
from app.settings import Settings, SettingsError, read_settings

# How long requests on their way may take to end once the service is told to stop.
GRACE_S = 5
DEFAULT_URL = "http://127.0.0.1:8000"
POLL_S = 0.5
EXIT_REFUSED, EXIT_BAD_INPUT, EXIT_UNREACHABLE = 1, 2, 3
EXITS = "Exit codes: 1 the service refused, 2 the input is bad, 3 no service answers."
# <malloc.h> of glibc.
M_ARENA_MAX = -8

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ancestor-scoped, copy-on-write memory for trees of research agents.",
)


@app.callback()
def root() -> None:
    """Serve letta-lineage, or talk to a running one."""


@app.command()
def serve() -> None:
    """Migrate the database and serve until told to stop. Settings come from the environment."""
    try:
        settings = read_settings()
        check_start(settings)
    except (SettingsError, StartRefused) as error:
        print(f"letta-lineage: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    _share_arenas()
    configure_logs(settings.log_level)
    application = create_app(settings)
    _calm_collector()
    uvicorn.run(
        application,
        host=settings.host,
        port=settings.port,
        log_config=None,
        # The service logs requests itself, with their ids.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
    )


def _calm_collector() -> None:
    """Let the garbage collector look at what requests leave behind, not at what stays.

    A full collection stops the service for as long as it walks through cached entries: with
    Python's own thresholds, the slowest 1 % of writes took 80 ms at 32 clients, now 35 ms.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _share_arenas() -> None:
    """Let the C library's threads share their heaps: one each would keep 40 MiB of freed memory."""
    with suppress(OSError, AttributeError):  # a C library without it has no such heaps
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


@app.command()
def openapi() -> None:
    """Print the OpenAPI description of the service."""
    document = create_app(Settings(_env_file=None)).openapi()
    print(json.dumps(document, indent=2, ensure_ascii=False))


ServiceUrl = Annotated[
    str, typer.Option("--url", envvar="LINEAGE_URL", help="Where the service answers.")
]
ApiKey = Annotated[
    str | None, typer.Option("--api-key", envvar="LINEAGE_API_KEY", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command(epilog=f"Example: letta-lineage load examples/run.jsonl --checkpoint exp1\n\n{EXITS}")
def load(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON lines.")],
    *,
    checkpoint: Annotated[
        str | None, typer.Option(help="The checkpoint's id; else the file's name.")
    ] = None,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Load a run of nodes and entries into a running service.

    Doing so again within a day adds nothing.
    """
    into = checkpoint or _id_of(file)
    with _said_plainly(), Service(url, api_key=api_key) as service:
        run = read_run(file)
        with _progress(f"Loading {file.name}", total=run.steps, quiet=as_json) as advance:
            nodes, entries = load_run(service, run, into, on_step=advance)
    _say(
        {"checkpoint": into, "nodes": nodes, "entries": entries},
        f"{into}: {nodes} nodes, {entries} entries.",
        as_json=as_json,
    )


@app.command(epilog=f"Example: letta-lineage reindex exp1\n\n{EXITS}")
def reindex(
    checkpoint: str,
    *,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Index a checkpoint anew, for the embedding model that is configured, and wait for it."""
    with _said_plainly(), Service(url, api_key=api_key) as service:
        state = service.reindex(checkpoint)
        total = state["pending"]
        with _progress(f"Indexing {checkpoint}", total=total, quiet=as_json) as advance:
            while (left := state["pending"]) > 0:
                time.sleep(POLL_S)
                state = service.get_checkpoint(checkpoint)
                for _ in range(left - state["pending"]):
                    advance()
    _say(state, f"{checkpoint}: {total} entries indexed with {state['model']}.", as_json=as_json)


def _id_of(file: Path) -> str:
    """Make a checkpoint's id of a file's name."""
    return re.sub(r"[^a-z0-9_-]+", "-", file.stem.lower()).strip("-_")[:63] or "run"


@contextmanager
def _progress(title: str, *, total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error, and give what moves it on by one."""
    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def _said_plainly() -> Iterator[None]:
    """Turn what can go wrong into a sentence and an exit code."""
    try:
        yield
    except BadRunFile as error:
        _fail(str(error), code=EXIT_BAD_INPUT)
    except Refused as error:
        _fail(str(error), code=EXIT_REFUSED)
    except Unreachable as error:
        _fail(f"{error} Is the service running? (make serve)", code=EXIT_UNREACHABLE)


def _fail(message: str, *, code: int) -> NoReturn:
    print(f"letta-lineage: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _say(answer: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    print(json.dumps(answer) if as_json else sentence)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
