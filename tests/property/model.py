"""What the service should hold and answer, in plain Python: lists, a dict and `sorted`."""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.embedding.port import Vector
from tests.support.client import Json


@dataclass(frozen=True)
class Caller:
    """Who asks: the node claimed, and the token where one fixes the claim.

    `epoch` counts the node's tokens; only the newest is worth anything.
    """

    node: str | None = None
    token: str | None = None
    epoch: int | None = None


OPERATOR = Caller()
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(eq=False)
class Experiment:
    """A checkpoint: its nodes in their order, and its trace."""

    id: str
    nodes: "list[Node]" = field(default_factory=list)
    trace: list[Json] = field(default_factory=list)
    newest: datetime = BEFORE_ALL

    def find(self, node_id: str | None) -> "Node | None":
        return next((node for node in self.nodes if node.id == node_id), None)

    @property
    def entry_count(self) -> int:
        return len(self.trace) + sum(len(node.entries) for node in self.nodes)


@dataclass(eq=False)
class Node:
    """A node; its entries are those acknowledged and not cleared, as they were answered."""

    experiment: Experiment
    name: str
    parent: "Node | None"
    entries: list[Json] = field(default_factory=list)
    sealed: bool = False
    tokens: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.experiment.id}.{self.name}"

    @property
    def lineage(self) -> "list[Node]":
        return [] if self.parent is None else [*self.parent.lineage, self.parent]

    @property
    def header(self) -> Caller:
        """The executor that names its node with an API key."""
        return Caller(self.id)

    @property
    def digest(self) -> str:
        digests = [bytes.fromhex(entry["sha256"]) for entry in self.entries]
        return hashlib.sha256(b"".join(digests)).hexdigest()

    def outdates(self, caller: Caller) -> bool:
        return caller.epoch is not None and caller.epoch != len(self.tokens)


# Who may do what: the slug of the refusal, None where it is allowed.


def write_refusal(node: Node, caller: Caller, *, writes_anew: bool = True) -> str | None:
    """A repeat that was answered before writes nothing anew, so a seal does not refuse it."""
    if caller.node is None:
        return "current-node-required"
    if caller.node != node.id:
        return "cow-violation"
    if node.outdates(caller):
        return "stale-token"
    return "node-sealed" if node.sealed and writes_anew else None


def read_refusal(node: Node, caller: Caller) -> str | None:
    if caller.node is None:
        return None
    reader = node.experiment.find(caller.node)
    if reader is None or node not in [*reader.lineage, reader]:
        return "scope-violation"
    return "stale-token" if reader.outdates(caller) else None


def trace_refusal(experiment: Experiment, caller: Caller, *, writes: bool) -> str | None:
    if caller.node is None:
        return None
    reader = experiment.find(caller.node)
    if reader is None:
        return "scope-violation"
    if reader.outdates(caller):
        return "stale-token"
    return "node-sealed" if writes and reader.sealed else None


# What is seen


def visible_steps(experiment: Experiment, caller: Caller) -> list[Json]:
    reader = experiment.find(caller.node)
    if reader is None:
        return experiment.trace
    reach = {None, *(node.id for node in [*reader.lineage, reader])}
    return [step for step in experiment.trace if step["node"] in reach]


def matches(metadata: Json, wanted: Json) -> bool:
    """JSON equality: 1 is 1.0 and neither is true."""
    return all(
        key in metadata
        and metadata[key] == value
        and isinstance(metadata[key], bool) == isinstance(value, bool)
        for key, value in wanted.items()
    )


def spelt_as(metadata: Json, wanted: Json) -> bool:
    """How a URL filters: by the string itself, or by a scalar's JSON."""
    return all(
        key in metadata and text in (metadata[key], json.dumps(metadata[key]))
        for key, text in wanted.items()
    )


def cosine(left: Vector, right: Vector) -> float:
    """Exactly rounded, so that it depends on the two unit vectors alone."""
    return math.fsum(a * b for a, b in zip(left.tolist(), right.tolist(), strict=True))


def instant(entry: Json) -> datetime:
    return datetime.fromisoformat(entry["created_at"])


def ranked(entries: Iterable[Json], scores: Sequence[float], *, limit: int) -> list[Json]:
    """Best first; `sorted` keeps what comes first, the older one, first among equals."""
    by_age = sorted(zip(entries, scores, strict=True), key=lambda pair: instant(pair[0]))
    return [entry for entry, _ in sorted(by_age, key=lambda pair: -pair[1])][:limit]
