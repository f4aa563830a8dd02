"""Writes down what an archive made of a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.archive.port import Archive, Outcome
from app.backoff import Backoff
from app.db import checkpoints as checkpoint_rows
from app.db import entries as entry_rows
from app.db import indexing, letta
from app.db.events import CheckpointChanged, EntryStored
from app.db.indexing import Claimed, Settled
from app.db.instants import now_us, to_us
from app.db.transaction import Transaction
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Entry

OF_A_REFUSED_ENTRY = Backoff(first_s=30.0, longest_s=6 * 3600.0)


def settle(
    tx: Transaction,
    checkpoint: Checkpoint,
    claimed: Sequence[Claimed],
    outcomes: Sequence[Outcome],
    *,
    archive: Archive,
) -> list[Entry] | None:
    """Record the outcomes; None where the index is void since.

    Entries that no longer count are left out: what an archive elsewhere took of them goes again.
    """
    row = checkpoint_rows.lock(tx.connection, checkpoint.id)
    if (row["incarnation"], row["index_epoch"]) != (checkpoint.incarnation, checkpoint.index_epoch):
        return None
    ids = [item.entry.id for item in claimed]
    there = entry_rows.still_there(tx.connection, checkpoint.id, ids)
    outcome_of = {outcome.entry_id: outcome for outcome in outcomes}
    _let_go(tx, checkpoint, [item for item in claimed if item.entry.id not in there], outcome_of)
    kept = [item for item in claimed if item.entry.id in there and item.entry.id in outcome_of]
    if not kept:
        return []
    settled = [_settled(outcome_of[item.entry.id], item.tries) for item in kept]
    checkpoint_rows.advance(
        tx.connection,
        checkpoint.id,
        changes=len(settled),
        model=archive.model,
        dimensions=archive.dimensions,
    )
    indexing.settle(
        tx.connection,
        checkpoint.id,
        settled,
        index_epoch=checkpoint.index_epoch,
        first_change=row["changes"] + 1,
    )
    if row["model"] is None:
        tx.events.append(CheckpointChanged(checkpoint.id))
    done = [
        replace(
            item.entry,
            indexed=what.refused is None,
            refused=what.refused,
            passage_id=what.passage_id,
        )
        for item, what in zip(kept, settled, strict=True)
    ]
    tx.events += [
        EntryStored(entry, what.vector) for entry, what in zip(done, settled, strict=True)
    ]
    return done


def _let_go(
    tx: Transaction,
    checkpoint: Checkpoint,
    claimed: Sequence[Claimed],
    outcome_of: Mapping[str, Outcome],
) -> None:
    """Queue the removal of passages of entries that were deleted or superseded meanwhile."""
    stored = [
        letta.Stored(item.entry.id, outcome.passage_id, to_us(item.entry.created_at))
        for item in claimed
        if (outcome := outcome_of.get(item.entry.id)) and outcome.passage_id
    ]
    if stored:
        index = checkpoint.index(claimed[0].entry.collection)
        letta.queue_stored(tx.connection, index, stored, now_us=now_us())


def _settled(outcome: Outcome, tries: int) -> Settled:
    if outcome.refused is None:
        return Settled(outcome.entry_id, outcome.vector, outcome.passage_id, None, None, 0)
    retry_us = now_us() + OF_A_REFUSED_ENTRY.pause_us(tries + 1)
    return Settled(outcome.entry_id, None, None, outcome.refused, retry_us, tries + 1)
