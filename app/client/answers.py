"""What the service answers to a worker.

Frozen dataclasses, not TypedDicts: entries are immutable, times arrive as datetimes, a misspelt
field is found by the type checker and at run time, and what a later service adds is ignored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self, TypeAlias, TypeVar

T = TypeVar("T")

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """A node in its tree; ids are global, the lineage is root first."""

    id: str
    parent: str | None
    lineage: Sequence[str]
    eval_summary: str | None
    sealed: bool

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, lineage=tuple))


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory as it was accepted; the node of a trace step may be None."""

    id: str
    node: str | None
    text: str
    metadata: Json
    created_at: datetime
    sha256: str
    indexed: bool

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, created_at=datetime.fromisoformat))


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that a search found; rank 1 is the best, the score is None where not known."""

    entry_id: str
    node: str | None
    text: str
    metadata: Json
    created_at: datetime
    rank: int
    score: float | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, created_at=datetime.fromisoformat))


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, the nodes it looked at, and how many entries are not indexed yet."""

    results: Sequence[Hit]
    scope: Sequence[str]
    pending: int

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, results=each(Hit.read), scope=tuple))


@dataclass(frozen=True, slots=True)
class Page:
    """A page of entries."""

    items: Sequence[Entry]
    next_cursor: str | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, items=each(Entry.read)))


@dataclass(frozen=True, slots=True)
class WorkingContext:
    """What a worker loads when it starts on a node.

    `inherited` are the lineage's conclusions (`type=result_summary`), root first; `search` is None
    without a query and without an eval_summary.
    """

    node: str
    context: Json
    persona: str
    human: str
    active_context: str
    quick_reference: str
    inherited: Sequence[Entry]
    search: Found | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        found = answer["search"]
        return cls(
            node=answer["node"],
            context=answer["context"],
            persona=answer["core_memory"]["persona"],
            human=answer["core_memory"]["human"],
            active_context=answer["core_memory"]["active_context"],
            quick_reference=answer["core_memory"]["quick_reference"],
            inherited=tuple(map(Entry.read, answer["inherited"])),
            search=None if found is None else Found.read(found),
        )


def fields_of(kind: type[Any], answer: Json, **read: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what an answer says of each field of a dataclass.

    Where one is kept as something else than JSON has, `read` says how it is read. KeyError for a
    field that the answer lacks, and what these raise.
    """
    said = {field.name: answer[field.name] for field in fields(kind)}
    return said | {name: read_one(said[name]) for name, read_one in read.items()}


def each(read: Callable[[Json], T]) -> Callable[[Sequence[Json]], tuple[T, ...]]:
    """Return what reads every item of a list."""
    return lambda items: tuple(map(read, items))
