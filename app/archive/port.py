"""What the service asks of an archive: where entries are indexed for semantic search."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.lineage.entry import Entry

Vector: TypeAlias = NDArray[np.float32]
Vectors: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Indexed entries in scope with their vectors, as the ledger holds them.

    Row i of `vectors`, shape (len(entries), dimensions), is the vector of `entries[i]`.
    """

    entries: Sequence[Entry]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Question:
    """A search: the query's text, how many hits at most, and what may be among them.

    `candidates` reads the entries that may be shown. An archive with a search of its own asks it
    only where that search falls short of the scope.
    """

    query: str
    limit: int
    candidates: Callable[[], Awaitable[Sequence[Candidates]]]


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that the archive found; `score` is the cosine similarity, None where not known."""

    entry_id: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry handed to the archive: its vector, or the reason of a refusal."""

    entry_id: str
    vector: Vector | None
    refused: str | None


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the archive answers, and if not, why (fit for an answer: no secrets)."""

    reason: str | None

    @property
    def ok(self) -> bool:
        """True where it answers."""
        return self.reason is None


class Archive(Protocol):
    """An index of entries that can be rebuilt from the ledger at any time.

    Every method may raise ArchiveUnavailable, which says that a repeat may go well.
    """

    @property
    def model(self) -> str:
        """The embedding model; a checkpoint indexed with another one is not searched."""

    @property
    def dimensions(self) -> int:
        """The length of the model's vectors."""

    async def vectors_at_write(self, texts: Sequence[str]) -> Vectors | None:
        """Return the vectors to store in the write's own transaction, one row a text.

        None where indexing cannot be part of it (a network is involved): the entries are then
        stored as pending and come by `index`.
        """

    async def index(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """Take entries of one checkpoint; each has an outcome, matched by its id.

        Doing so again with an entry that it has is fine.
        """

    async def search(self, question: Question) -> Sequence[Hit]:
        """Return hits in rank order, best first.

        All of min(limit, candidates) must be among them; whatever else is there is dropped by the
        caller, who trusts the ledger's rows and not the archive.
        """

    async def forget(self, checkpoint: str, entry_ids: Sequence[str]) -> None:
        """Remove entries that the ledger no longer has; those not there are fine."""

    async def purge(self, checkpoint: str, incarnation: str) -> None:
        """Remove all of a checkpoint's former self."""

    async def health(self) -> Health:
        """Tell whether a search would be answered now."""

    async def close(self) -> None:
        """Release connections."""
