"""Search: the best of a scope, however much else the archive holds."""

from collections.abc import Collection as Names
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import structlog

from app.archive.port import Candidates, Hit, Question
from app.db import entries as entry_rows
from app.db.blocks import Block
from app.db.instants import to_us
from app.lineage.access import Access, Operation, Touched
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Entry
from app.lineage.errors import InvalidInput, ModelChanged
from app.lineage.filters import MetadataFilter
from app.lineage.guard import Claim
from app.lineage.ids import NodeId
from app.lineage.lineage import Scope, whole_trace
from app.lineage.texts import MAX_QUERY_BYTES, check_text
from app.memory.claims import REFUSALS, readable_node, reader_in, record_refusal
from app.memory.services import Services

NO_FILTER = MetadataFilter()

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search asks: a query (None: the node's direction), how many, and which entries."""

    query: str | None
    limit: int
    include_self: bool = False
    ancestors: Names[str] | None = None
    matching: MetadataFilter = NO_FILTER


@dataclass(frozen=True, slots=True)
class Found:
    """An entry with its rank (from 1) and its score (None where it is not known)."""

    entry: Entry
    rank: int
    score: float | None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, the scope they come from, and how many of its entries could not be found yet."""

    found: Sequence[Found]
    scope: Scope
    pending: int


async def search_lineage(
    services: Services, node: NodeId, wanted: Wanted, *, claim: Claim | None
) -> SearchResult:
    """Search a node's ancestors (and itself where asked).

    Raises InvalidInput without any query, UnknownNode, ScopeViolation, StaleToken, ModelChanged
    and ArchiveUnavailable. Every search is in the access log.
    """
    if wanted.query is not None:
        check_query(wanted.query)
    place = await readable_node(
        services, node, claim=claim, operation=Operation.SEARCH, query=wanted.query
    )
    query = wanted.query or place.node.eval_summary
    if query is None:
        raise InvalidInput(
            "Without a query, the node's eval_summary is searched, and it has none.",
            place=("body", "query"),
        )
    try:
        scope = place.lineage.scope(include_self=wanted.include_self, only=wanted.ancestors)
    except REFUSALS as error:
        await record_refusal(
            services, error, Operation.SEARCH, node, claim=claim, query=wanted.query
        )
        raise
    result = await search_scope(services, place.checkpoint, scope, query, wanted)
    record_search(
        services,
        place.checkpoint,
        Operation.SEARCH,
        result.found,
        node=node,
        claim=claim,
        query=query,
    )
    return result


async def search_trace(
    services: Services, checkpoint: str, wanted: Wanted, *, claim: Claim | None
) -> SearchResult:
    """Search the trace: all of it without a claim, else what the claim may read.

    Raises as search_lineage does.
    """
    assert wanted.query is not None, "a trace has no direction to search by"
    check_query(wanted.query)
    reader = await reader_in(services, checkpoint, claim=claim, operation=Operation.TRACE_SEARCH)
    row = await services.ledger.places.checkpoint(checkpoint)
    scope = whole_trace(checkpoint) if reader is None else reader.lineage.trace()
    result = await search_scope(services, row, scope, wanted.query, wanted)
    node = None if reader is None else reader.node.id
    record_search(
        services,
        row,
        Operation.TRACE_SEARCH,
        result.found,
        node=node,
        claim=claim,
        query=wanted.query,
    )
    return result


async def search_scope(
    services: Services, checkpoint: Checkpoint, scope: Scope, query: str, wanted: Wanted
) -> SearchResult:
    """Ask the archive, and let through only what the ledger says is in scope."""
    archive = services.archive
    check_model(services, checkpoint)
    blocks = await services.ledger.blocks.load(scope)

    pending = [0]

    async def candidates() -> Sequence[Candidates]:
        # Of the same instant: what is indexed while an archive is waited for counts as missing.
        pending[0] = sum(len(block.pending) for block in blocks)
        return [_candidates(block, wanted.matching) for block in blocks]

    async def count_between(first: datetime, last: datetime) -> int:
        return await services.ledger.read(
            lambda connection: entry_rows.count_between(
                connection,
                checkpoint.id,
                scope.collection,
                first_us=to_us(first),
                last_us=to_us(last),
            )
        )

    index = checkpoint.index(scope.collection)
    hits = await archive.search(Question(index, query, wanted.limit, candidates, count_between))
    entries = await _trusted(services, checkpoint, scope, blocks, hits)
    found: list[Found] = []
    for hit in hits:
        # Taken out, so that an entry which the archive holds twice is shown once.
        entry = entries.pop(hit.entry_id, None)
        if entry is None or not wanted.matching.matches(entry.metadata):
            continue
        found.append(Found(entry, len(found) + 1, hit.score))
        if len(found) == wanted.limit:
            break
    return SearchResult(found, scope, pending[0])


def check_model(services: Services, checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint that is indexed for another archive or model: ModelChanged."""
    indexed = (checkpoint.model, checkpoint.dimensions)
    configured = (services.archive.model, services.archive.dimensions)
    if indexed not in ((None, None), configured):
        raise ModelChanged(checkpoint.id, indexed=indexed, configured=configured)


async def _trusted(
    services: Services,
    checkpoint: Checkpoint,
    scope: Scope,
    blocks: Sequence[Block],
    hits: Sequence[Hit],
) -> dict[str, Entry]:
    """Return the hits' ledger rows that the scope admits: the row decides, not the archive."""
    rows: dict[str, Entry] = {}
    for hit in hits:
        for block in blocks:
            if (entry := block.find(hit.entry_id)) is not None:
                rows[hit.entry_id] = entry
                break
    if missing := [hit.entry_id for hit in hits if hit.entry_id not in rows]:
        stored = await services.ledger.read(
            lambda connection: entry_rows.by_id(
                connection, checkpoint.id, missing, index_epoch=checkpoint.index_epoch
            )
        )
        rows |= {entry.id: entry for entry in stored}
    trusted = {entry_id: entry for entry_id, entry in rows.items() if scope.admits(entry)}
    if outside := len(hits) - len(trusted):
        log.warning("hits_outside_scope", checkpoint=checkpoint.id, hits=outside)
    return trusted


def _candidates(block: Block, matching: MetadataFilter) -> Candidates:
    # Taken together before any await: rows are only added, so the two fit each other.
    entries, vectors = block.entries, block.vectors
    if not matching:
        return Candidates(entries, vectors)
    rows = [row for row, entry in enumerate(entries) if matching.matches(entry.metadata)]
    return Candidates([entries[row] for row in rows], vectors[np.array(rows, dtype=np.intp)])


def check_query(query: str) -> None:
    """Refuse a blank query (InvalidInput) and one that is too long (TooLarge)."""
    check_text(query, max_bytes=MAX_QUERY_BYTES, what="query", place=("body", "query"))


def record_search(
    services: Services,
    checkpoint: Checkpoint,
    operation: Operation,
    found: Sequence[Found],
    *,
    node: NodeId | None,
    claim: Claim | None,
    query: str | None,
) -> None:
    """Tell the access log what was looked for, and what was found."""
    services.accesses.record(
        Access(
            checkpoint=checkpoint.id,
            operation=operation,
            reader=claim.node if claim else None,
            target=node,
            query=query,
            entries=tuple(Touched(hit.entry.id, hit.entry.node_id) for hit in found),
        ),
        incarnation=checkpoint.incarnation,
    )
