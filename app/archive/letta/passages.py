"""Entries as Letta's passages: taken there in batches, found again after a lost answer.

A passage says in its metadata whose it is, and has no tags: for each passage with any, Letta
commits once more after the insert (16 at a time go in at 49 a second with tags and at 101 without),
so that a crash or a bad tag leaves passages behind an error answer. Its `created_at` is the entry's
instant, so that it can be found by its time, which is the one thing that Letta filters before it
cuts; within a batch the instants strictly increase, and so does the listing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import structlog
from letta_client.types.archives.passage_create_many_params import Passage as NewPassage

from app.archive.letta.answers import StoredPassage
from app.archive.letta.embeddings import Embedding, Unsound
from app.archive.letta.failures import Refused
from app.archive.letta.pairs import Ids
from app.archive.letta.wire import Letta
from app.archive.port import Outcome, Vector
from app.embedding.port import Embedder, EmbedderRefused, EmbedderUnavailable
from app.lineage.entry import Entry
from app.lineage.errors import ArchiveUnavailable

# One insert of so many holds Letta's only event loop for about a second; larger gain nothing (96/s
# with 100, 100/s with 200).
BATCH = 100
STEP = timedelta(microseconds=1)
# How far a passage's instant may be behind its entry's: equal ones are moved apart in a batch.
DRIFT = BATCH * STEP
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2900, 1, 1, tzinfo=UTC)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Taken:
    """What came of a batch so far."""

    outcomes: list[Outcome] = field(default_factory=list)
    unsound: list[tuple[str, str]] = field(default_factory=list)


def entry_of(passage: StoredPassage) -> str | None:
    """Return the id of the entry that a passage was made for."""
    found = (passage.metadata or {}).get("entry")
    return found if isinstance(found, str) else None


def instant_of(created_at: datetime) -> datetime:
    """Return the instant of an entry's passage, unless it is moved apart from an equal one.

    A restore may bring any time; one at an end of the calendar has no neighbours, and breaks
    Letta's listing.
    """
    return min(max(created_at, EARLIEST), LATEST)


def span(entries: Sequence[Entry]) -> tuple[datetime, datetime]:
    """Return the instants between which the passages of these entries are."""
    instants = [instant_of(entry.created_at) for entry in entries]
    return min(instants), max(instants) + DRIFT


class Passages:
    """Takes entries to Letta."""

    def __init__(self, letta: Letta, embedding: Embedding, embedder: Embedder | None) -> None:
        """`embedder` is the one that Letta uses too, None where that one is not known."""
        self._letta = letta
        self._embedding = embedding
        self._embedder = embedder

    async def take(
        self, ids: Ids, entries: Sequence[Entry], *, maybe_there: frozenset[str]
    ) -> list[Outcome]:
        """Return the outcomes of those that were taken or refused; the others come again."""
        taken = _Taken()
        await self._look_for(ids, [entry for entry in entries if entry.id in maybe_there], taken)
        known = {outcome.entry_id for outcome in taken.outcomes}
        await self._insert(ids, [entry for entry in entries if entry.id not in known], taken)
        for entry_id, reason in taken.unsound:
            log.warning("passage_unsound", entry=entry_id, reason=reason)
        return taken.outcomes

    async def find(self, ids: Ids, entries: Mapping[str, datetime]) -> list[tuple[str, str]]:
        """Return (entry id, passage id) of all passages of these entries, by their instants."""
        found: list[tuple[str, str]] = []
        instants = [instant_of(created_at) for created_at in entries.values()]
        first, last = min(instants), max(instants) + DRIFT
        async for passage in self._letta.between(ids.archive_id, first, last):
            entry_id = entry_of(passage)
            if entry_id is not None and entry_id in entries:
                found.append((entry_id, passage.id))
        return found

    async def _look_for(self, ids: Ids, entries: Sequence[Entry], taken: _Taken) -> None:
        """Settle the entries that an earlier attempt, whose answer was lost, did store."""
        if not entries:
            return
        first, last = span(entries)
        stored = [passage async for passage in self._letta.between(ids.archive_id, first, last)]
        await self._match(ids, entries, stored, taken)

    async def _insert(self, ids: Ids, entries: Sequence[Entry], taken: _Taken) -> None:
        """Insert a batch; where Letta refuses it, find out by halves which entries are at fault."""
        if not entries:
            return
        try:
            stored = await self._letta.insert(ids.archive_id, _new(entries))
        except Refused as error:
            if len(entries) == 1:
                taken.outcomes.append(Outcome(entries[0].id, None, error.reason))
                return
            middle = len(entries) // 2
            await self._insert(ids, entries[:middle], taken)
            await self._insert(ids, entries[middle:], taken)
            return
        except ArchiveUnavailable:
            if not taken.outcomes:
                raise
            # What is known is not lost for what is not: the others come again, looked for first.
            return
        await self._match(ids, entries, stored, taken)

    async def _match(
        self,
        ids: Ids,
        entries: Sequence[Entry],
        stored: Sequence[StoredPassage],
        taken: _Taken,
    ) -> None:
        """Give each entry its own passage: by its id and text, never by position."""
        wanted = {entry.id: entry for entry in entries}
        for passage in stored:
            entry = wanted.get(entry_of(passage) or "")
            if entry is None or entry.text != passage.text:
                continue
            try:
                vector = await self.sound_vector(passage)
            except Unsound as error:
                taken.unsound.append((entry.id, error.reason))
                await self._letta.delete_passage(ids.archive_id, passage.id)
                continue
            del wanted[entry.id]
            taken.outcomes.append(Outcome(entry.id, vector, None, passage.id))

    async def sound_vector(self, passage: StoredPassage) -> Vector:
        """Return a passage's vector; Unsound where it is none of its text's."""
        vector = self._embedding.vector(passage.embedding)
        if not vector.any() and not await self._has_no_direction(passage.text):
            raise Unsound("Letta stored a vector of zeros")
        return vector

    async def _has_no_direction(self, text: str) -> bool:
        """Tell whether zeros are what the model makes of the text."""
        if self._embedder is None:
            return False
        try:
            vectors = await self._embedder.embed([text])
        except (EmbedderUnavailable, EmbedderRefused):
            return False
        return not vectors.any()


def _new(entries: Sequence[Entry]) -> list[NewPassage]:
    passages: list[NewPassage] = []
    instant = EARLIEST - STEP
    for entry in entries:
        instant = max(instant_of(entry.created_at), instant + STEP)
        passages.append(
            {
                "text": entry.text,
                "metadata": {
                    "entry": entry.id,
                    "node": entry.node_id,
                    "kind": entry.collection.value,
                    "checkpoint": entry.checkpoint,
                },
                "created_at": instant.isoformat(),
            }
        )
    return passages
