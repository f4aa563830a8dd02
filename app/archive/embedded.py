"""The embedded archive: vectors in the ledger itself, exact cosine over the scope."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from app.archive.port import (
    Batch,
    Health,
    Hit,
    Lag,
    Outcome,
    Passage,
    Question,
    Vector,
    Vectors,
)
from app.archive.ranking import rank
from app.embedding.port import Embedder, EmbedderRefused, EmbedderUnavailable
from app.lineage.checkpoint import IndexKey
from app.lineage.entry import Entry
from app.lineage.errors import ArchiveUnavailable

# Ranking so many rows takes about 1 ms at 256 dimensions; more than that leaves the event loop.
INLINE_ROWS = 4_000
BATCH = 256
NOTHING: Sequence[Sequence[Passage]] = ()


class EmbeddedArchive:
    """Needs nothing beside the ledger but an embedder."""

    def __init__(self, embedder: Embedder, *, search_wait_s: float = 10.0) -> None:
        """Let a search wait so long, in seconds, for an embedder that is not local."""
        self._embedder = embedder
        self._search_wait_s = None if embedder.local else search_wait_s

    @property
    def model(self) -> str:
        """The embedder's model."""
        return self._embedder.model

    @property
    def dimensions(self) -> int:
        """The length of the embedder's vectors."""
        return self._embedder.dimensions

    async def vectors_at_write(self, texts: Sequence[str]) -> Vectors | None:
        """Embed at once where no network can fail it; see the port."""
        return await self._embedder.embed(texts) if self._embedder.local else None

    @property
    def elsewhere(self) -> bool:
        """The ledger is the archive."""
        return False

    @property
    def batch_size(self) -> int:
        """As many texts as an embedder takes in a few requests."""
        return BATCH

    async def index(self, batch: Batch) -> Sequence[Outcome]:
        """Embed entries that were stored without vectors, and find out which ones are at fault."""
        return await self._index(batch.entries)

    async def _index(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        try:
            vectors = await self._embed([entry.text for entry in entries])
        except EmbedderRefused as error:
            if len(entries) == 1:
                return [Outcome(entries[0].id, None, error.reason)]
            middle = len(entries) // 2
            return [*await self._index(entries[:middle]), *await self._index(entries[middle:])]
        return [
            Outcome(entry.id, vector, None) for entry, vector in zip(entries, vectors, strict=True)
        ]

    async def search(self, question: Question) -> Sequence[Hit]:
        """Rank the candidates; see the port."""
        query = await self._query_vector(question.query)
        parts = await question.candidates()
        if sum(len(part.entries) for part in parts) <= INLINE_ROWS:
            return rank(parts, query, limit=question.limit)
        return await asyncio.to_thread(rank, parts, query, limit=question.limit)

    async def passages(self, index: IndexKey) -> AsyncIterator[Sequence[Passage]]:
        """Nothing: what is held here is held in the ledger."""
        for part in NOTHING:
            yield part

    async def prepare(self, index: IndexKey) -> None:
        """Nothing to do: the ledger is the place."""

    async def remove(self, index: IndexKey, passage_ids: Sequence[str]) -> None:
        """Nothing to do: the vectors went with their rows."""

    async def purge(self, checkpoint: str, incarnation: str) -> bool:
        """Nothing to do: the vectors went with their rows."""
        return True

    async def upkeep(self) -> bool:
        """Nothing to do: the ledger is the archive."""
        return False

    async def lag(self) -> Lag:
        """Nothing ever lags."""
        return Lag()

    async def health(self) -> Health:
        """Ask an embedder that is not local; a local one is always there."""
        facts = {"embedding": self.model}
        if self._embedder.local:
            return Health(None, facts)
        try:
            await self._embed(["health"])
        except ArchiveUnavailable as error:
            return Health(error.reason, facts)
        except EmbedderRefused as error:
            return Health(error.reason, facts)
        return Health(None, facts)

    async def close(self) -> None:
        """Nothing to close: the embedder is not ours alone."""

    async def _query_vector(self, query: str) -> Vector:
        # Indexing may repeat and queue for longer; whoever searches has somebody waiting.
        try:
            async with asyncio.timeout(self._search_wait_s):
                vectors = await self._embed([query])
        except TimeoutError:
            raise ArchiveUnavailable(
                f"the embedder did not answer within {self._search_wait_s:g} s"
            ) from None
        except EmbedderRefused as error:
            raise ArchiveUnavailable(error.reason) from error
        vector: Vector = vectors[0]
        return vector

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        try:
            return await self._embedder.embed(texts)
        except EmbedderUnavailable as error:
            raise ArchiveUnavailable(error.reason, retry_after_s=error.retry_after_s) from error
