"""Search what happened: the trace and the daily notes, as one list."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from app.lineage.access import Operation
from app.lineage.guard import Claim
from app.lineage.lineage import Scope, daily_notes_of, whole_trace
from app.memory.claims import reader_in
from app.memory.search_entries import (
    Found,
    Wanted,
    check_query,
    record_search,
    search_scope,
)
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class Recalled:
    """The hits of both collections, where the trace was searched, and what could not be found."""

    found: Sequence[Found]
    trace: Scope
    pending: int


async def search_recall(
    services: Services, checkpoint: str, query: str, *, limit: int, claim: Claim | None
) -> Recalled:
    """Find the best trace steps (all without a claim, else what it may read) and daily notes.

    Raises InvalidInput and TooLarge for the query, UnknownCheckpoint, ScopeViolation, StaleToken,
    ModelChanged and ArchiveUnavailable.
    """
    check_query(query)
    reader = await reader_in(services, checkpoint, claim=claim, operation=Operation.RECALL_SEARCH)
    row = await services.ledger.places.checkpoint(checkpoint)
    trace = whole_trace(checkpoint) if reader is None else reader.lineage.trace()
    steps, days = await asyncio.gather(
        *(
            search_scope(services, row, scope, query, Wanted(query, limit))
            for scope in (trace, daily_notes_of(checkpoint))
        )
    )
    found = merged(steps.found, days.found)[:limit]
    node = None if reader is None else reader.node.id
    record_search(
        services, row, Operation.RECALL_SEARCH, found, node=node, claim=claim, query=query
    )
    return Recalled(found, trace, steps.pending + days.pending)


def merged(left: Sequence[Found], right: Sequence[Found]) -> list[Found]:
    """Return two rankings as one: by score where both have scores, else taking turns.

    Equal scores are oldest first. Hits without a score behind others that have one have no
    direction, and come last.
    """
    if _scored(left) and _scored(right):
        together = sorted([*left, *right], key=_by_score)
    else:
        turns = chain.from_iterable(zip_longest(left, right))
        together = [hit for hit in turns if hit is not None]
    return [replace(hit, rank=rank) for rank, hit in enumerate(together, start=1)]


def _scored(found: Sequence[Found]) -> bool:
    return not found or found[0].score is not None


def _by_score(hit: Found) -> tuple[float, object]:
    return (-1.0 if hit.score is None else hit.score) * -1, hit.entry.order
