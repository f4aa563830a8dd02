"""The Letta archive: the port, put together from its parts."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from app.archive.letta.answers import StoredPassage
from app.archive.letta.embeddings import Embedding, Unsound
from app.archive.letta.failures import Gone
from app.archive.letta.pairs import Pairs
from app.archive.letta.passages import BATCH, Passages, entry_of
from app.archive.letta.upkeep import Upkeep
from app.archive.letta.windows import Searched, SearchMode, Windows
from app.archive.letta.wire import Letta
from app.archive.port import (
    Batch,
    Health,
    Hit,
    Lag,
    Outcome,
    Passage,
    Question,
    Vectors,
)
from app.db import letta as rows
from app.db.instants import MICROSECOND
from app.db.ledger import Ledger
from app.embedding.port import Embedder
from app.lineage.checkpoint import IndexKey
from app.lineage.errors import ArchiveUnavailable, UnknownCheckpoint

# A page of a listing carries 21 KB a passage, vectors that nothing leaves out.
PAGE = 100
# Beyond the time of one call: the few that make a pair take 0.3 s together.
MARGIN_S = 5.0


@dataclass(frozen=True, slots=True)
class LettaOptions:
    """What is configured of the Letta archive."""

    base_url: str
    api_key: str | None
    instance: str
    timeout_s: float
    mode: SearchMode
    overfetch: int


class LettaArchive:
    """Entries as passages of Letta's archives; what is in them is found in Letta's own order."""

    def __init__(
        self,
        ledger: Ledger,
        options: LettaOptions,
        embedding: Embedding,
        embedder: Embedder | None,
        *,
        model: str,
        replica: str,
        on_search: Callable[[Searched], None],
    ) -> None:
        """`embedder` is the one that Letta uses too, None where that one is not known.

        `replica` names this process among those on one database.
        """
        self.model = model
        self.dimensions = embedding.dimensions
        self.batch_size = BATCH
        self.elsewhere = True
        self._ledger = ledger
        self._embedding = embedding
        self._timeout_s = options.timeout_s
        self._letta = Letta(options.base_url, api_key=options.api_key, timeout_s=options.timeout_s)
        patience = timedelta(seconds=options.timeout_s + MARGIN_S)
        self._pairs = Pairs(
            ledger,
            self._letta,
            embedding,
            instance=options.instance,
            replica=replica,
            patience=patience,
        )
        self._passages = Passages(self._letta, embedding, embedder)
        self._windows = Windows(
            self._letta,
            self._pairs,
            embedder,
            mode=options.mode,
            overfetch=options.overfetch,
            on_search=on_search,
        )
        self._upkeep = Upkeep(
            ledger,
            self._letta,
            self._pairs,
            self._passages,
            replica=replica,
            patience_us=patience // MICROSECOND,
        )

    async def vectors_at_write(self, texts: Sequence[str]) -> Vectors | None:
        """Return None: a network is involved."""
        return None

    async def index(self, batch: Batch) -> Sequence[Outcome]:
        """Take entries to Letta; see the port."""
        try:
            ids = await self._pairs.get(batch.index)
        except UnknownCheckpoint:  # purged or indexed anew meanwhile: nothing is to be taken
            return []
        try:
            return await self._passages.take(ids, batch.entries, maybe_there=batch.maybe_there)
        except Gone as error:
            self._pairs.forget(batch.index)
            raise ArchiveUnavailable(
                "Letta has lost the archive: "
                f"POST /checkpoints/{batch.index.checkpoint}/reindex makes it anew"
            ) from error

    async def search(self, question: Question) -> Sequence[Hit]:
        """Search in the configured mode; see the port."""
        return await self._windows.search(question)

    async def passages(self, index: IndexKey) -> AsyncIterator[Sequence[Passage]]:
        """Walk through the archive, oldest first; nothing where Letta has lost it."""
        if (ids := await self._pairs.ready(index)) is None:
            return
        after: str | None = None
        while True:
            try:
                page = await self._letta.page(ids.agent_id, after=after, limit=PAGE)
            except Gone:
                return
            yield [await self._passage(item) for item in page]
            if len(page) < PAGE:
                return
            after = page[-1].id

    async def remove(self, index: IndexKey, passage_ids: Sequence[str]) -> None:
        """Delete passages."""
        if (ids := await self._pairs.ready(index)) is None:
            return
        for passage_id in passage_ids:
            await self._letta.delete_passage(ids.archive_id, passage_id)

    async def prepare(self, index: IndexKey) -> None:
        """Make anew what Letta has lost of the pair."""
        try:
            await self._pairs.mend(index)
        except UnknownCheckpoint:
            return

    async def purge(self, checkpoint: str, incarnation: str) -> bool:
        """Remove what Letta has of a purged checkpoint; see the port."""
        await self._upkeep.purge(checkpoint)
        return await self._ledger.read(
            lambda connection: rows.is_gone(connection, checkpoint, incarnation)
        )

    async def upkeep(self) -> bool:
        """Tell Letta some of what is left to tell; see the port."""
        return await self._upkeep.step()

    async def lag(self) -> Lag:
        """Count what is left to tell; see the port."""
        return await self._upkeep.lag()

    async def health(self) -> Health:
        """Read through Letta to its database; its own health is 200 without one."""
        facts = {"embedding": self.model}
        try:
            facts["letta"] = await self._letta.version()
            await self._letta.count_agents()
            await self._check_embeddings()
        except Gone:
            return Health("what answers at LETTA_BASE_URL is no Letta", facts)
        except ArchiveUnavailable as error:
            return Health(error.reason, facts)
        return Health(None, facts)

    async def close(self) -> None:
        """Close the connections."""
        await self._letta.close()

    async def _check_embeddings(self) -> None:
        """Compare what agents in use froze with what is configured: ArchiveUnavailable."""
        frozen = await self._ledger.read(lambda connection: rows.embeddings(connection, limit=10))
        for checkpoint, embedding in frozen:
            mismatch = self._embedding.mismatch(embedding, checkpoint=checkpoint)
            if mismatch is not None:
                raise ArchiveUnavailable(mismatch)

    async def _passage(self, stored: StoredPassage) -> Passage:
        try:
            await self._passages.sound_vector(stored)
        except Unsound:
            sound = False
        else:
            sound = True
        digest = hashlib.sha256(stored.text.encode()).digest()
        return Passage(stored.id, entry_of(stored), digest, sound)
