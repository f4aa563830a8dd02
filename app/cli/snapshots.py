"""backup, restore and resume: a checkpoint as one file, out and in."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import IO, Annotated, Literal

import typer

from app.cli.arguments import known_checkpoint
from app.cli.options import DEFAULT_URL, ApiKey, AsJson, CheckpointId, ServiceUrl, Wait
from app.cli.output import BadInput, Bar, bar, counted, note, said_plainly, say
from app.cli.replacing import replacing
from app.cli.snapshot_file import FILE_NAME, checkpoint_in, read_tree, with_tree
from app.cli.waiting import refused_ones, wait_for_index
from app.client import Answer, Refused, Service
from app.client.environment import checkpoint_path

STANDARD = Path("-")
COUNTED = {
    "nodes": ("node",),
    "entries": ("entry", "entries"),
    "blocks": ("block of core memory", "blocks of core memory"),
}


def backup(
    checkpoint: CheckpointId,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file; - is standard output.")
    ] = Path(FILE_NAME),
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Write all of a checkpoint into one file: tree, entries, trace, core memory.

    The file is the old one or the whole new one, whatever happens meanwhile.
    """
    if output == STANDARD:
        _check_stdout(as_json=as_json)
    with (
        said_plainly(),
        Service(url, api_key=api_key) as service,
        _written(output) as file,
        bar(f"Saving {checkpoint}", total=None, quiet=as_json, unit="bytes") as progress,
    ):
        size = service.backup(checkpoint, file, on_size=progress.expect, advance=progress.advance)
    if output != STANDARD:
        say(
            {"checkpoint": checkpoint, "file": str(output), "bytes": size},
            f"{checkpoint}: {size:,} bytes in {output}.",
            as_json=as_json,
        )


def restore(
    file: Annotated[Path, typer.Argument(help=f"A {FILE_NAME}; - is standard input.")],
    *,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="Into which; else the one that the file names.", callback=known_checkpoint
        ),
    ] = None,
    on_conflict: Annotated[
        Literal["skip", "overwrite", "merge", "fail"],
        typer.Option(
            help="What is there stays (skip), stays beside what differs (merge), is replaced "
            "(overwrite), or refuses the restore (fail)."
        ),
    ] = "skip",
    tree: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Parents for a file without a tree: a JSON object of node to parent, or JSON "
            'lines of "name" and "parent".',
        ),
    ] = None,
    wait: Wait = True,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Store what a snapshot holds, all of it or nothing, and wait for the index."""
    with said_plainly(), Service(url, api_key=api_key) as service, _read(file) as given:
        named = "standard input" if file == STANDARD else str(file)
        into = checkpoint or checkpoint_in(given, named=named)
        if into is None:
            raise BadInput(f"{named} names no checkpoint: say --checkpoint ID.")
        with (
            _sent(given, tree, named=named) as snapshot,
            _sending(into, snapshot, quiet=as_json) as progress,
        ):
            answer = service.restore(
                into, snapshot, on_conflict=on_conflict, advance=progress.advance
            )
        answer["pending"], refused = _indexed(service, into, wait=wait, quiet=as_json)
    say(answer, f"{into}: {_counts(answer)}{_left(answer['pending'])}{refused}", as_json=as_json)


def resume(
    # As it was given: a Path would drop slashes that the workers' variable keeps.
    checkpoint_dir: Annotated[str, typer.Argument(help=f"A directory with a {FILE_NAME}.")],
    *,
    wait: Wait = True,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a checkpoint from its directory, copied from wherever it was.

    Restores it where the service has nothing of it, indexes it anew where Letta has lost it, else
    does nothing. Workers whose ARI_CHECKPOINT_DIR is this directory then find it.
    """
    file = Path(checkpoint_dir) / FILE_NAME
    with said_plainly(), Service(url, api_key=api_key) as service:
        if not file.is_file():
            raise BadInput(
                f"There is no {FILE_NAME} in {checkpoint_dir}. A service with "
                "LINEAGE_SNAPSHOT_DIR keeps one of each checkpoint; `backup -o` writes one."
            )
        with file.open("rb") as snapshot:
            known = checkpoint_in(snapshot, named=str(file))
            checkpoint = _place(service, known, checkpoint_path(checkpoint_dir).path)
            with _sending(checkpoint, snapshot, quiet=as_json) as progress:
                answer = service.resume(checkpoint, snapshot, advance=progress.advance)
        pending, refused = _indexed(service, checkpoint, wait=wait, quiet=as_json)
    say(
        {"checkpoint": checkpoint, **answer, "pending": pending},
        f"{checkpoint}: {_outcome(answer)}{_left(pending)}{refused}",
        as_json=as_json,
    )


COMMANDS = {
    backup: (
        "letta-lineage backup exp1",
        "letta-lineage backup exp1 -o exp1.jsonl.gz",
        "letta-lineage backup exp1 -o - | ssh other 'cat > exp1.jsonl.gz'",
    ),
    restore: (
        "letta-lineage restore memory_backup.jsonl.gz",
        "letta-lineage restore exp1.jsonl.gz --checkpoint exp2 --on-conflict fail",
        "letta-lineage restore old.jsonl.gz --checkpoint old --tree parents.json",
    ),
    resume: (
        "letta-lineage resume runs/exp1",
        "LINEAGE_URL=http://other:8000 letta-lineage resume /mnt/copied/exp1 --json",
    ),
}


def _check_stdout(*, as_json: bool) -> None:
    if as_json:
        raise typer.BadParameter("--json and -o - both want standard output.")
    if sys.stdout.isatty():
        raise typer.BadParameter("-o - writes packed bytes, which no terminal can show.")


@contextmanager
def _written(output: Path) -> Iterator[IO[bytes]]:
    if output == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(output) as file:
        yield file


@contextmanager
def _read(path: Path) -> Iterator[IO[bytes]]:
    """Give a file that can be read twice."""
    if path != STANDARD:
        with path.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        yield kept


@contextmanager
def _sent(file: IO[bytes], tree: Path | None, *, named: str) -> Iterator[IO[bytes]]:
    """Give the snapshot as it is sent: with the tree that was asked for."""
    if tree is None:
        yield file
        return
    with with_tree(file, read_tree(tree), named=named) as joined:
        yield joined


def _sending(checkpoint: str, file: IO[bytes], *, quiet: bool) -> AbstractContextManager[Bar]:
    return bar(
        f"Sending {checkpoint}",
        total=file.seek(0, 2),
        quiet=quiet,
        unit="bytes",
        then=f"Storing {checkpoint}",
    )


def _place(service: Service, checkpoint: str | None, path: str) -> str:
    """Return the checkpoint of a directory, made so that workers find it by the directory.

    Without an id, it is the one that the service makes from the path.
    """
    try:
        made = service.create_checkpoint(checkpoint, path=path)
    except Refused as refused:
        if checkpoint is None or refused.status != HTTPStatus.CONFLICT:
            raise
        note(f"{refused} Workers in {path} must name {checkpoint} by its id.")
        return checkpoint
    return str(made["id"])


def _indexed(service: Service, checkpoint: str, *, wait: bool, quiet: bool) -> tuple[int, str]:
    """Return how many entries still wait for the index, and what to say of refused ones."""
    if wait:
        state = wait_for_index(service, checkpoint, quiet=quiet)
    else:
        state = service.get_checkpoint(checkpoint)
    return state["pending"], refused_ones(state)


def _outcome(answer: Answer) -> str:
    match answer["did"]:
        case "restored":
            return _counts(answer["restored"])
        case "reindexed":
            return "Letta had lost it; indexed anew from the ledger."
        case _:
            return "nothing to do, it is here with its index."


def _counts(answer: Answer) -> str:
    stored = answer["restored"]
    counts = [counted(stored[kind], *words) for kind, words in COUNTED.items() if stored[kind]]
    parts = [f"restored {', '.join(counts) or 'nothing'}"]
    if answer["skipped"]:
        parts.append(f"{answer['skipped']:,} nodes, entries and blocks were there")
    if answer["conflicts"]:
        parts.append(counted(answer["conflicts"], "conflict"))
    if answer["ignored"]:
        parts.append(f"{counted(answer['ignored'], 'line')} of other kinds ignored")
    return f"{'; '.join(parts)}."


def _left(pending: int) -> str:
    return f" {pending} entries wait to be indexed." if pending else ""
