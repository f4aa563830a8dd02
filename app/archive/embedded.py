"""The embedded archive: vectors in the ledger itself, exact cosine over the scope."""

import asyncio
from collections.abc import Sequence

from app.archive.port import Health, Hit, Outcome, Question, Vector, Vectors
from app.archive.ranking import rank
from app.embedding.port import Embedder, EmbedderRefused, EmbedderUnavailable
from app.lineage.entry import Entry
from app.lineage.errors import ArchiveUnavailable

# Ranking so many rows takes about 1 ms at 256 dimensions; more than that leaves the event loop.
INLINE_ROWS = 4_000


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

    async def index(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """Embed entries that were stored without vectors, and find out which ones are at fault."""
        try:
            vectors = await self._embed([entry.text for entry in entries])
        except EmbedderRefused as error:
            if len(entries) == 1:
                return [Outcome(entries[0].id, None, error.reason)]
            middle = len(entries) // 2
            return [*await self.index(entries[:middle]), *await self.index(entries[middle:])]
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

    async def forget(self, checkpoint: str, entry_ids: Sequence[str]) -> None:
        """Nothing to do: the vectors went with their rows."""

    async def purge(self, checkpoint: str, incarnation: str) -> None:
        """Nothing to do: the vectors went with their rows."""

    async def health(self) -> Health:
        """Ask an embedder that is not local; a local one is always there."""
        if self._embedder.local:
            return Health(None)
        try:
            await self._embed(["health"])
        except ArchiveUnavailable as error:
            return Health(str(error))
        except EmbedderRefused as error:
            return Health(error.reason)
        return Health(None)

    async def close(self) -> None:
        """Close the embedder."""
        await self._embedder.close()

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
