"""What the service asks of an archive: where entries are indexed for semantic search."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.lineage.checkpoint import IndexKey
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
    """A search of one index: the query's text, how many hits at most, what may be among them.

    `candidates` reads the entries that may be shown, and `count_between` counts all entries of the
    index, in scope or not, whose instants are within two, both included.
    """

    index: IndexKey
    query: str
    limit: int
    candidates: Callable[[], Awaitable[Sequence[Candidates]]]
    count_between: Callable[[datetime, datetime], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that the archive found; `score` is the cosine similarity, None where not known."""

    entry_id: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries of one index, oldest first; somebody may have brought those `maybe_there` before."""

    index: IndexKey
    entries: Sequence[Entry]
    maybe_there: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry handed to the archive: its vector, or the reason of a refusal.

    `passage_id` is what an archive elsewhere calls the entry.
    """

    entry_id: str
    vector: Vector | None
    refused: str | None
    passage_id: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """What an archive elsewhere holds: under which id, of which entry (None: of none of ours).

    `sha256` is of the text as the archive has it, and `sound` tells whether it can be ranked.
    """

    id: str
    entry_id: str | None
    sha256: bytes
    sound: bool


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the archive answers, and if not, why (fit for an answer: no secrets).

    `facts` is what an operator wants to see: versions, models.
    """

    reason: str | None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True where it answers."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Lag:
    """What an archive elsewhere has not been told yet, each a count."""

    purges: int = 0
    removals: int = 0
    core_memories: int = 0


class Archive(Protocol):
    """An index of entries that can be rebuilt from the ledger at any time.

    Every method may raise ArchiveUnavailable, which says that a repeat may go well.
    """

    @property
    def model(self) -> str:
        """What the index is made with; a checkpoint indexed with another one is not searched."""

    @property
    def dimensions(self) -> int:
        """The length of the model's vectors."""

    @property
    def elsewhere(self) -> bool:
        """True where the archive keeps entries outside of the ledger."""

    @property
    def batch_size(self) -> int:
        """How many entries `index` takes at a time at most."""

    async def vectors_at_write(self, texts: Sequence[str]) -> Vectors | None:
        """Return the vectors to store in the write's own transaction, one row a text.

        None where indexing cannot be part of it (a network is involved): the entries are then
        stored as pending and come by `index`.
        """

    async def index(self, batch: Batch) -> Sequence[Outcome]:
        """Take entries; an outcome is matched by its id.

        One without an outcome was not taken now: bring it again. Doing so with an entry that is
        there is fine.
        """

    async def search(self, question: Question) -> Sequence[Hit]:
        """Return hits in rank order, best first.

        All of min(limit, candidates) must be among them; whatever else is there is dropped by the
        caller, who trusts the ledger's rows and not the archive.
        """

    def passages(self, index: IndexKey) -> AsyncIterator[Sequence[Passage]]:
        """Walk through all that an archive elsewhere holds, in parts; nothing where it is here."""

    async def prepare(self, index: IndexKey) -> None:
        """Make a place for the index where an archive elsewhere has lost its own."""

    async def remove(self, index: IndexKey, passage_ids: Sequence[str]) -> None:
        """Remove passages; those not there are fine."""

    async def purge(self, checkpoint: str, incarnation: str) -> bool:
        """Remove all of a purged checkpoint; tell whether nothing is left for `upkeep` to do."""

    async def upkeep(self) -> bool:
        """Do some of what is left to do: removals, purges, core memory; tell whether any was."""

    async def lag(self) -> Lag:
        """Count what `upkeep` has left to do."""

    async def health(self) -> Health:
        """Tell whether a search would be answered now."""

    async def close(self) -> None:
        """Release connections."""
