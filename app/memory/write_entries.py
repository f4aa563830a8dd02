"""Write entries: to a node by its executor, or to the trace."""

import random
import time
from collections.abc import Sequence

from app.db.append import Append, Appended, PreparedEntry
from app.db.idempotency import Answer, Once
from app.lineage.access import Operation
from app.lineage.entry import Collection, Draft, Entry
from app.lineage.guard import Claim
from app.lineage.ids import NodeId
from app.lineage.json_rules import Place, check_object
from app.lineage.texts import check_text
from app.memory.claims import REFUSALS, record_refusal
from app.memory.services import Services


async def write_entries(
    services: Services,
    node: NodeId,
    drafts: Sequence[Draft],
    *,
    claim: Claim | None,
    once: Once | None = None,
) -> tuple[Entry, ...] | Answer:
    """Store entries on a node, all or none, in order; return them, or the first answer again.

    Raises InvalidInput and TooLarge for a text or metadata, UnknownNode, and what check_writer and
    check_open raise. On return the entries are durable.
    """
    return await _store(
        services,
        node.checkpoint,
        Collection.NODE_SCOPE,
        drafts,
        node=node,
        claim=claim,
        once=once,
    )


async def write_trace_step(
    services: Services,
    checkpoint: str,
    draft: Draft,
    *,
    claim: Claim | None,
    once: Once | None = None,
) -> Entry | Answer:
    """Store a step of the trace; its node is the claim's, or none.

    Raises as write_entries does; a claim of another checkpoint is ScopeViolation.
    """
    stored = await _store(
        services, checkpoint, Collection.REACT_STEP, [draft], node=None, claim=claim, once=once
    )
    return stored if isinstance(stored, Answer) else stored[0]


async def _store(
    services: Services,
    checkpoint: str,
    collection: Collection,
    drafts: Sequence[Draft],
    *,
    node: NodeId | None,
    claim: Claim | None,
    once: Once | None,
) -> tuple[Entry, ...] | Answer:
    append = Append(
        checkpoint=checkpoint,
        collection=collection,
        node=node,
        claim=claim,
        entries=tuple(_prepared(drafts, services)),
        vectors=await services.archive.vectors_at_write([draft.text for draft in drafts]),
        model=services.archive.model,
        once=once,
    )
    try:
        outcome = await services.ledger.append(append)
    except REFUSALS as error:
        operation = Operation.WRITE if node else Operation.TRACE_WRITE
        await record_refusal(services, error, operation, node or checkpoint, claim=claim)
        raise
    if isinstance(outcome, Appended):
        return await _indexed(services, outcome.entries)
    return outcome


async def _indexed(services: Services, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Give the archive its time where the write itself could not index the entries."""
    if entries[0].indexed:
        return entries
    waited = await services.indexer.wait_for(entries, at_most_s=services.limits.index_wait_s)
    return tuple(waited)


def _prepared(drafts: Sequence[Draft], services: Services) -> Sequence[PreparedEntry]:
    prepared = []
    for position, draft in enumerate(drafts):
        place: Place = ("body",) if len(drafts) == 1 else ("body", "entries", position)
        check_text(draft.text, max_bytes=services.limits.max_text_bytes, place=(*place, "text"))
        metadata = check_object(draft.metadata, place=(*place, "metadata"))
        prepared.append(PreparedEntry.of(new_entry_id(), draft, metadata))
    return prepared


def new_entry_id() -> str:
    """Return a new id, 24 hex digits: milliseconds first, so that keys grow at one end."""
    return f"{time.time_ns() // 1_000_000:012x}{random.getrandbits(48):012x}"
