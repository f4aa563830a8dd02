"""Snapshot files on this side: whose one is, and parents for one that has no tree."""

import gzip
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from app.cli.output import BadInput
from app.lineage.ids import CHECKPOINT_ID

FILE_NAME = "memory_backup.jsonl.gz"
# As the service has it.
MAX_LINE_BYTES = 512 * 1024
NODE_FIELDS = {"kind", "name", "parent", "eval_summary"}


@dataclass(frozen=True, slots=True)
class Parent:
    """What a tree file says of a node."""

    parent: str | None
    eval_summary: str | None = None


def checkpoint_in(file: IO[bytes], *, named: str) -> str | None:
    """Return the checkpoint that a snapshot's header names; None for a file of another tool.

    BadInput where it is no snapshot, or names what is no id. Only its first line is read.
    """
    first = next(_records(file, named=named), None)
    if first is None:
        raise BadInput(f"{named} is empty: this is no snapshot.")
    if first.get("kind") != "header":
        return None
    checkpoint = first.get("checkpoint")
    if not isinstance(checkpoint, str):
        return None
    if not CHECKPOINT_ID.fullmatch(checkpoint):
        raise BadInput(f"{named} names {checkpoint!r}, which is no checkpoint's id.")
    return checkpoint


def read_tree(file: Path) -> dict[str, Parent]:
    """Read a JSON object `{node: parent}`, or JSON lines of `{"name": …, "parent": …}`.

    BadInput names what is wrong. Lines of a kind other than `node` are passed over, so that a run
    file serves as well.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8.") from None
    whole = _parsed(text)
    if isinstance(whole, dict) and not ("name" in whole and whole.keys() <= NODE_FIELDS):
        return {name: Parent(_parent(file, name, value)) for name, value in whole.items()}
    tree: dict[str, Parent] = {}
    # Not splitlines(): a text may hold U+2028, which ends no line of JSON.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        record = _parsed(line)
        if not isinstance(record, dict):
            raise BadInput(f"{file}, line {number}: this is no JSON object.")
        if record.get("kind", "node") == "node":
            _take(file, number, record, tree)
    return tree


def with_tree(file: IO[bytes], tree: Mapping[str, Parent], *, named: str) -> IO[bytes]:
    """Return a copy of a snapshot of another tool, with a line for each node of a tree.

    The lines stand behind the file's own, whose numbers the service's complaints then name. A node
    is as old as the first of its entries, or as the file's. BadInput for a file of ours, whose tree
    is in it.
    """
    if checkpoint_in(file, named=named) is not None:
        raise BadInput(f"{named} has its own tree in it: it takes no --tree.")
    times, earliest = _times(file, named=named)
    copy = tempfile.TemporaryFile()  # noqa: SIM115  (whoever called closes it)
    file.seek(0)
    shutil.copyfileobj(file, copy)
    # A gzip file may have several members. The first line break ends a last line that had none.
    with gzip.GzipFile(fileobj=copy, mode="wb", mtime=0) as packed:
        packed.write(b"\n")
        for name, said in tree.items():
            line = {
                "kind": "node",
                "name": name,
                "parent": said.parent,
                "eval_summary": said.eval_summary,
                "created_at": times.get(name, earliest),
            }
            packed.write(json.dumps(line).encode() + b"\n")
    copy.seek(0)
    return copy


def _times(file: IO[bytes], *, named: str) -> tuple[dict[str, Any], Any]:
    """Return when each node is first spoken of, and when any is."""
    times: dict[str, Any] = {}
    for record in _records(file, named=named):
        if isinstance(node := record.get("node_id"), str) and "ts" in record:
            times.setdefault(node, record["ts"])
    return times, next(iter(times.values()), 0)


def _records(file: IO[bytes], *, named: str) -> Iterator[dict[str, Any]]:
    """Yield the lines that are JSON objects; the service judges the others."""
    file.seek(0)
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as lines:
            while line := lines.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise BadInput(f"{named} has a line longer than {MAX_LINE_BYTES} bytes.")
                if line.strip():
                    record = _parsed(line)
                    yield record if isinstance(record, dict) else {}
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise BadInput(f"{named} is not a whole gzip file.") from None


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _take(file: Path, number: int, record: dict[str, Any], tree: dict[str, Parent]) -> None:
    name = record.get("name")
    if not isinstance(name, str):
        raise BadInput(f"{file}, line {number}: it has no name.")
    if name in tree:
        raise BadInput(f"{file}, line {number}: node {name!r} was there before.")
    direction = record.get("eval_summary")
    if direction is not None and not isinstance(direction, str):
        raise BadInput(f"{file}, line {number}: its eval_summary is no text.")
    tree[name] = Parent(_parent(file, name, record.get("parent")), direction)


def _parent(file: Path, name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise BadInput(f"{file}: the parent of {name!r} is neither a name nor null.")
