"""Files of experiment runs: one JSON object a line, nodes and entries."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.client.connection import Refused
from app.client.service import Service

# Of the longest texts and metadata (32 and 16 KiB), a hundred stay below the 8 MiB of a body.
BATCH = 100


class BadRunFile(Exception):
    """A line is not what it should be; the message names it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")


@dataclass(frozen=True, slots=True)
class RunNode:
    """A node, after its parent."""

    name: str
    parent: str | None
    eval_summary: str | None = None


@dataclass(slots=True)
class Run:
    """A whole run: nodes in the order of the file, and each node's entries in theirs."""

    digest: str
    nodes: list[RunNode] = field(default_factory=list)
    entries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    """Where each node's entries stand in the file."""

    @property
    def steps(self) -> int:
        """How many calls a load makes: one a node, one a batch of entries."""
        return len(self.nodes) + sum(len(list(_batches(some))) for some in self.entries.values())


def read_run(file: Path) -> Run:
    """Read a file of records `{"kind": "node", …}` and `{"kind": "entry", …}`.

    A node comes after its parent and before its entries. BadRunFile names the line that breaks
    this; nothing is sent before the whole file is read.
    """
    raw = file.read_bytes()
    run = Run(hashlib.sha256(raw).hexdigest())
    for number, line in enumerate(raw.splitlines(), start=1):
        if line.strip():
            _take(run, number, _record(number, line))
    return run


def load_run(
    service: Service, run: Run, checkpoint: str, *, on_step: Callable[[], None]
) -> tuple[int, int]:
    """Load a run into a checkpoint; return how many nodes and entries it holds.

    Doing so again adds nothing: nodes are found again, and each batch of entries has a key made
    from the file and its place (for the 24 hours that the service keeps keys). BadRunFile names the
    line of an entry that the service refuses; its batch is not stored, those before it are.
    """
    service.create_checkpoint(checkpoint)
    for node in run.nodes:
        service.create_node(
            checkpoint, node.name, parent=node.parent, eval_summary=node.eval_summary
        )
        on_step()
    for name, entries in run.entries.items():
        for number, batch in enumerate(_batches(entries)):
            key = hashlib.sha256(f"{run.digest} {name} {number}".encode()).hexdigest()
            try:
                service.write_batch(f"{checkpoint}.{name}", batch, key=key)
            except Refused as refused:
                place = _place_at_fault(refused)
                if place is None:
                    raise
                line = run.lines[name][number * BATCH + place]
                raise BadRunFile(line, str(refused)) from refused
            on_step()
    return len(run.nodes), sum(map(len, run.entries.values()))


def _record(number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRunFile(number, f"not JSON ({error})") from None
    if not isinstance(record, dict):
        raise BadRunFile(number, "not a JSON object")
    return record


def _take(run: Run, number: int, record: dict[str, Any]) -> None:
    try:
        match record.get("kind"):
            case "node":
                _take_node(run, number, record)
            case "entry":
                entry = {
                    "text": _word(number, record, "text"),
                    "metadata": record.get("metadata", {}),
                }
                node = _word(number, record, "node")
                run.entries[node].append(entry)
                run.lines[node].append(number)
            case kind:
                raise BadRunFile(number, f"unknown kind {kind!r}")
    except KeyError as error:
        raise BadRunFile(number, f"no {error} is known here") from None


def _take_node(run: Run, number: int, record: dict[str, Any]) -> None:
    name = _word(number, record, "name")
    parent = None if record.get("parent") is None else _word(number, record, "parent")
    if name in run.entries:
        raise BadRunFile(number, f"node {name!r} is already above")
    if parent is not None and parent not in run.entries:
        raise BadRunFile(number, f"parent {parent!r} is not above")
    run.nodes.append(RunNode(name, parent, record.get("eval_summary")))
    run.entries[name] = []
    run.lines[name] = []


def _word(number: int, record: dict[str, Any], name: str) -> str:
    value = record[name]
    if not isinstance(value, str):
        raise BadRunFile(number, f"{name!r} is not a string")
    return value


def _place_at_fault(refused: Refused) -> int | None:
    """Return which entry of a batch the service blames, if it is one."""
    for fault in refused.document.get("errors", []):
        match fault["loc"]:
            case ["body", "entries", int(place), *_]:
                return place
    return None


def _batches(entries: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    for first in range(0, len(entries), BATCH):
        yield entries[first : first + BATCH]
