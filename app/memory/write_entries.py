"""Write entries: to a node by its executor, or to the trace."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from app.db import idempotency
from app.db.append import Append, PreparedEntry
from app.db.idempotency import Answer, Once
from app.lineage.access import Operation
from app.lineage.entry import Collection, Draft, Entry
from app.lineage.errors import LedgerUnavailable
from app.lineage.guard import Claim
from app.lineage.ids import NodeId
from app.lineage.json_rules import Place, check_object
from app.lineage.texts import check_text
from app.memory.claims import REFUSALS, record_refusal
from app.memory.services import Services
from app.randomness import RANDOM


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
    if isinstance(outcome, Answer):
        return await first_answer(services, once, outcome)
    return await await_index(services, outcome.entries, once)


async def await_index(
    services: Services,
    entries: tuple[Entry, ...],
    once: Once | None,
    *,
    shown: Callable[[tuple[Entry, ...]], Any] = lambda entries: entries,
) -> tuple[Entry, ...]:
    """Return stored entries as they are once the archive had its time.

    `shown` makes of them what `once` renders as its answer.
    """
    if entries[0].indexed:
        return entries
    if once is None:
        return await _indexed(services, entries)
    with services.underway.begun(once.scope):
        return await _indexed_once(services, entries, once, shown)


async def _indexed(services: Services, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Give the archive its time where the write itself could not index the entries."""
    waited = await services.indexer.wait_for(entries, at_most_s=services.limits.index_wait_s)
    return tuple(waited)


async def _indexed_once(
    services: Services,
    entries: tuple[Entry, ...],
    once: Once,
    shown: Callable[[tuple[Entry, ...]], Any],
) -> tuple[Entry, ...]:
    """Do the same and keep the answer as it is then: a repeat gets it byte for byte."""
    waited = await _indexed(services, entries)
    if waited == entries:
        return entries
    row = once.row(entries[0].checkpoint, shown(waited))
    try:
        await services.ledger.write(lambda tx: idempotency.amend(tx.connection, row))
    except LedgerUnavailable:
        # The kept answer is the one to give: `indexed: false` is true of the time of the write.
        return entries
    return waited


async def first_answer(services: Services, once: Once | None, kept: Answer) -> Answer:
    """Return the kept answer, once the request that it answers has its own."""
    if once is None or not await services.underway.ended(once.scope):
        return kept
    stored = await services.ledger.read(
        lambda connection: idempotency.load(connection, [once.scope])
    )
    return once.replay(stored[once.scope]) if once.scope in stored else kept


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
    return f"{time.time_ns() // 1_000_000:012x}{RANDOM.getrandbits(48):012x}"
