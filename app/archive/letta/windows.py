"""The three ways to search, exact in each, in the same order.

Letta ranks a whole archive, cuts at `top_k`, and lets nothing be filtered before the cut but the
instants. So a window of its ranking may miss the scope; then it is widened until it cannot, or the
scope is ranked here, with the vectors that Letta returned when it took the entries.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np
import structlog

from app.archive.letta.answers import FoundPassage
from app.archive.letta.failures import Gone
from app.archive.letta.pairs import Pairs
from app.archive.letta.passages import span
from app.archive.letta.wire import Letta
from app.archive.port import Candidates, Hit, Question, Vector
from app.archive.ranking import SLACK, cosine, hit, rank
from app.embedding.port import Embedder, EmbedderRefused, EmbedderUnavailable
from app.lineage.entry import Entry
from app.lineage.errors import ArchiveUnavailable

# Ranking so many rows takes about 1 ms at 256 dimensions; more than that leaves the event loop.
INLINE_ROWS = 4_000
# A window of so many times the limit; what today's users ask for.
WINDOW_PER_HIT = 40
WIDENING = 4
# A window that holds just enough on average falls short every other time, and ranking here is far
# cheaper than a window that was asked for in vain.
SPARE = 2
EVERYTHING = 0
# Letta's database ranks in float32 and leaves what is equal there to chance: over 5,000 passages
# the largest inversion was 3e-8.
NOISE = 1e-6

log = structlog.get_logger(__name__)


class SearchMode(StrEnum):
    """Who ranks: Letta while its window does, Letta alone, or we alone."""

    AUTO = "auto"
    ARCHIVE = "archive"
    SCOPED = "scoped"


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search cost: in which mode, answered by whose ranking ("letta" or "ledger").

    `rounds` are the windows asked for, `widest` the largest one (0: everything, None: none), and
    `letta_s` the seconds that Letta took for them all.
    """

    mode: SearchMode
    ranked_by: str
    rounds: int
    widest: int | None
    letta_s: float


@dataclass(frozen=True, slots=True)
class _Scope:
    """What may be found: the candidates, and how many of them must be."""

    parts: Sequence[Candidates]
    count: int
    needed: int

    @property
    def entries(self) -> list[Entry]:
        return [entry for part in self.parts for entry in part.entries]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all windows of a search ask alike."""

    agent_id: str
    query: str
    first: datetime
    last: datetime


@dataclass(slots=True)
class _Cost:
    rounds: int = 0
    widest: int | None = None
    letta_s: float = 0.0

    def add(self, window: int, seconds: float) -> None:
        self.rounds += 1
        widened = self.widest is None or self.widest < window
        self.widest = window if widened or window == EVERYTHING else self.widest
        self.letta_s += seconds


class Windows:
    """Searches by windows of Letta's ranking, or past it."""

    def __init__(
        self,
        letta: Letta,
        pairs: Pairs,
        embedder: Embedder | None,
        *,
        mode: SearchMode,
        overfetch: int,
        on_search: Callable[[Searched], None],
    ) -> None:
        """`embedder` is the one that Letta uses too, None where that one is not known."""
        self._letta = letta
        self._pairs = pairs
        self._embedder = embedder
        self._mode = mode
        self._overfetch = overfetch
        self._on_search = on_search
        # One wide window at a time: each holds Letta's only event loop for about 1 ms a row.
        self._wide = asyncio.Semaphore(1)

    async def search(self, question: Question) -> Sequence[Hit]:
        """Return min(limit, candidates) hits, best first; ArchiveUnavailable where it cannot."""
        # A node without entries has vectors of no length at all.
        parts = [_as_of_now(part) for part in await question.candidates() if len(part.vectors)]
        count = sum(len(part.entries) for part in parts)
        if not count:
            return []
        scope = _Scope(parts, count, min(question.limit, count))
        cost = _Cost()
        hits = await self._by_letta(question, scope, cost)
        ranked_by = "letta"
        if hits is None:
            ranked_by = "ledger"
            hits = await self._by_ledger(question, scope)
        self._on_search(Searched(self._mode, ranked_by, cost.rounds, cost.widest, cost.letta_s))
        return hits

    async def _by_letta(
        self, question: Question, scope: _Scope, cost: _Cost
    ) -> Sequence[Hit] | None:
        """Return the hits in Letta's order, None where the ledger is to rank instead."""
        if self._mode is SearchMode.SCOPED:
            return None
        first, last = span(scope.entries)
        total = await question.count_between(first, last)
        window = max(self._overfetch, question.limit * WINDOW_PER_HIT)
        query = await self._local_vector(question.query)
        if self._may_rank and (_would_be_scant(scope, window, total) or _has_no_direction(query)):
            return None
        if (ids := await self._pairs.ready(question.index)) is not None:
            asked = _Asked(ids.agent_id, question.query, first, last)
            try:
                return await self._widened(
                    question, scope, asked, window=window, total=total, query=query, cost=cost
                )
            except Gone:
                self._pairs.forget(question.index)
        self._tell("Letta has lost the archive: POST /checkpoints/{}/reindex", question)
        return None

    async def _widened(
        self,
        question: Question,
        scope: _Scope,
        asked: _Asked,
        *,
        window: int,
        total: int,
        query: Vector | None,
        cost: _Cost,
    ) -> Sequence[Hit] | None:
        """Ask for windows until one holds enough; None where the ledger is to rank instead."""
        while True:
            ranked = _ranked(scope, await self._ask(asked, window, cost), query)
            if len(ranked) >= scope.needed and not _lacks_as_near(scope, ranked, query):
                return [hit(item.entry, item.cosine) for item in ranked[: scope.needed]]
            if window == EVERYTHING:
                self._tell(
                    "Letta lacks passages that it had: POST /checkpoints/{}/reconcile", question
                )
                return None
            if self._may_rank:
                return None
            window = window * WIDENING if window * WIDENING < total else EVERYTHING

    async def _by_ledger(self, question: Question, scope: _Scope) -> Sequence[Hit]:
        """Rank the scope here, by the vectors that Letta returned and the embedder it uses."""
        assert self._embedder is not None, "a start without the embedder refuses to rank here"
        try:
            query = (await self._embedder.embed([question.query]))[0]
        except EmbedderUnavailable as error:
            raise ArchiveUnavailable(error.reason, retry_after_s=error.retry_after_s) from error
        except EmbedderRefused as error:
            raise ArchiveUnavailable(error.reason) from error
        if scope.count <= INLINE_ROWS:
            return rank(scope.parts, query, limit=question.limit)
        return await asyncio.to_thread(rank, scope.parts, query, limit=question.limit)

    @property
    def _may_rank(self) -> bool:
        """Tell whether a window that falls short is not widened: ranking here is far cheaper."""
        return self._mode is SearchMode.AUTO and self._embedder is not None

    async def _ask(self, asked: _Asked, window: int, cost: _Cost) -> list[FoundPassage]:
        narrow = EVERYTHING < window <= self._overfetch
        async with nullcontext() if narrow else self._wide:
            started = time.monotonic()
            try:
                return await self._letta.search(
                    asked.agent_id, asked.query, top_k=window, first=asked.first, last=asked.last
                )
            finally:
                cost.add(window, time.monotonic() - started)

    async def _local_vector(self, query: str) -> Vector | None:
        """Return the query's vector where it costs no network: for scores, and to see zeros."""
        if self._embedder is None or not self._embedder.local:
            return None
        vector: Vector = (await self._embedder.embed([query]))[0]
        return vector

    def _tell(self, what: str, question: Question) -> None:
        """Say what is wrong on Letta's side; ArchiveUnavailable where nothing can stand in."""
        reason = what.format(question.index.checkpoint)
        log.warning("letta_falls_short", reason=reason, collection=question.index.collection)
        if not self._may_rank:
            raise ArchiveUnavailable(reason)


def _as_of_now(part: Candidates) -> Candidates:
    """Return the candidates without what becomes one while Letta is waited for: rows are added."""
    return Candidates(part.entries[: len(part.vectors)], part.vectors)


def _would_be_scant(scope: _Scope, window: int, total: int) -> bool:
    """Tell whether the window would hold barely enough of the scope, were it spread evenly."""
    return window < total and window * scope.count < SPARE * scope.needed * total


def _has_no_direction(query: Vector | None) -> bool:
    return query is not None and not query.any()


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A candidate where Letta ranks it, and its exact cosine, where that is known."""

    entry: Entry
    cosine: float | None

    def is_like(self, other: "_Ranked") -> bool:
        """Tell whether Letta cannot tell the two apart; rows without direction are all alike."""
        if self.cosine is None or other.cosine is None:
            return self.cosine is other.cosine
        return abs(self.cosine - other.cosine) <= NOISE


def _ranked(
    scope: _Scope, found: Sequence[FoundPassage], query: Vector | None
) -> Sequence[_Ranked]:
    """Return the candidates among the passages, each once, in Letta's order."""
    places = {
        entry.passage_id: (part, row)
        for part in scope.parts
        for row, entry in enumerate(part.entries)
    }
    ranked: list[_Ranked] = []
    for passage in found:
        # Taken out, should Letta show one twice. The double of a passage that was sent twice has an
        # id that the ledger does not know.
        if (place := places.pop(passage.id, None)) is None:
            continue
        part, row = place
        exact = None if query is None else cosine(part.vectors[row], query)
        ranked.append(_Ranked(part.entries[row], exact))
    return ranked if query is None else _settled(ranked)


def _lacks_as_near(scope: _Scope, ranked: Sequence[_Ranked], query: Vector | None) -> bool:
    """Tell whether the window lacks a candidate that is as near as the last one needed.

    Either it cuts through equal ones, and which are in is Letta's choice where the oldest are to
    be; or Letta has lost a passage.
    """
    if query is None:
        return False
    last = ranked[scope.needed - 1]
    seen = {item.entry.id for item in ranked}
    return any(
        part.entries[row].id not in seen
        for part in scope.parts
        for row in _as_near(part, last.cosine, query)
    )


def _as_near(part: Candidates, exact: float | None, query: Vector) -> list[int]:
    """Return the rows that are about as near as this cosine, or nearer."""
    if exact is None:
        rows: list[int] = np.flatnonzero(~part.vectors.any(axis=1)).tolist()
        return rows
    rows = np.flatnonzero(part.vectors @ query >= exact - SLACK).tolist()
    found = [(row, cosine(part.vectors[row], query)) for row in rows]
    return [row for row, near in found if near is not None and near >= exact - NOISE]


def _settled(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Order what Letta cannot tell apart as `rank` does: by the exact cosine, then by age."""
    settled: list[_Ranked] = []
    run: list[_Ranked] = []
    for item in ranked:
        if run and not item.is_like(run[-1]):
            settled += _in_order(run)
            run = []
        run.append(item)
    return settled + _in_order(run)


def _in_order(run: Sequence[_Ranked]) -> list[_Ranked]:
    return sorted(run, key=lambda item: (-(item.cosine or 0.0), item.entry.order))
