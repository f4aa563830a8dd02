"""The queue of entries that the archive still has to take: rows of `entries`, claimed by replicas.

A claim is taken in a short transaction and committed before the archive is called, so that none
stays open while a network is waited for. It says two things: nobody else takes the entry until it
expires, and, for as long as the outcome is unknown, that the archive may have the entry already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)

from app.db import letta
from app.db.instants import now_us
from app.db.rows import to_checkpoint, to_entry
from app.db.tables import checkpoints, entries, letta_removals
from app.db.vectors import FLOAT32, Vector, to_bytes
from app.lineage.checkpoint import Checkpoint, IndexKey, Refusal
from app.lineage.entry import Entry

Epoch: TypeAlias = int | Column[int]

# Who brought what was indexed before: nobody that could be asked.
FORMER = "former"
# SQLite takes 32,766 parameters a statement, PostgreSQL 65,535.
IDS_A_STATEMENT = 10_000


@dataclass(frozen=True, slots=True)
class Claimed:
    """An entry to take to the archive; `maybe_there` where somebody may have done so before."""

    entry: Entry
    maybe_there: bool
    tries: int
    by: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a claimed entry: it has its vector, or the reason why it has none.

    A refused one is tried again at `retry_us`.
    """

    entry_id: str
    vector: Vector | None
    passage_id: str | None
    refused: str | None
    retry_us: int | None
    tries: int


def claim(
    connection: Connection,
    checkpoint: str,
    *,
    index_epoch: int,
    limit: int,
    by: str,
    at_us: int,
    until_us: int,
) -> list[Claimed]:
    """Claim pending entries, oldest first, all of one collection; else one refused entry.

    A refused entry comes alone: it would spoil the batch that it is in. `by` names this claim and
    no other, so that an entry that was claimed anew since is not given back with it.
    """
    rows = _take(connection, checkpoint, _pending(index_epoch, at_us), limit)
    if not rows:
        rows = _take(connection, checkpoint, _refused(index_epoch, at_us), 1)
    claimed = [
        Claimed(
            to_entry(row, index_epoch=index_epoch), row["claimed_by"] is not None, row["tries"], by
        )
        for row in rows
        if row["collection"] == rows[0]["collection"]
    ]
    if claimed:
        _update(
            connection,
            checkpoint,
            [item.entry.id for item in claimed],
            claimed_by=by,
            claimed_until_us=until_us,
        )
    return claimed


def _take(
    connection: Connection, checkpoint: str, wanted: ColumnElement[bool], limit: int
) -> Sequence[RowMapping]:
    query = (
        select(entries)
        .where(entries.c.checkpoint_id == checkpoint, wanted)
        .order_by(entries.c.seq)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return connection.execute(query).mappings().all()


def settled(connection: Connection, checkpoint: str, ids: Sequence[str]) -> list[Entry]:
    """Return those of these entries whose outcome is known, whichever replica brought it."""
    epoch = select(checkpoints.c.index_epoch).where(checkpoints.c.id == checkpoint)
    query = select(entries, epoch.scalar_subquery().label("epoch")).where(
        entries.c.checkpoint_id == checkpoint,
        entries.c.id.in_(ids),
        entries.c.index_epoch == epoch.scalar_subquery(),
    )
    rows = connection.execute(query).mappings()
    return [to_entry(row, index_epoch=row["epoch"]) for row in rows]


SETTLE = (
    update(entries)
    .where(
        entries.c.checkpoint_id == bindparam("checkpoint"),
        entries.c.id == bindparam("entry"),
    )
    .values(
        index_epoch=bindparam("to_epoch"),
        change=bindparam("to_change"),
        vector=bindparam("to_vector"),
        passage_id=bindparam("to_passage"),
        refused=bindparam("to_refused"),
        retry_us=bindparam("to_retry"),
        tries=bindparam("to_tries"),
        claimed_by=None,
        claimed_until_us=None,
    )
)


def settle(
    connection: Connection,
    checkpoint: str,
    settled: Sequence[Settled],
    *,
    index_epoch: int,
    first_change: int,
) -> None:
    """Record the outcomes under change numbers that the caller took while it held the lock."""
    rows = [
        {
            "checkpoint": checkpoint,
            "entry": item.entry_id,
            "to_epoch": index_epoch,
            "to_change": first_change + offset,
            "to_vector": None if item.vector is None else to_bytes(item.vector),
            "to_passage": item.passage_id,
            "to_refused": item.refused,
            "to_retry": item.retry_us,
            "to_tries": item.tries,
        }
        for offset, item in enumerate(settled)
    ]
    connection.execute(SETTLE, rows)


def release(
    connection: Connection, checkpoint: str, ids: Sequence[str], *, by: str, maybe_there: bool
) -> None:
    """Give claimed entries back, to be taken at once by whoever comes."""
    held = entries.c.claimed_by == by
    name = {} if maybe_there else {"claimed_by": None}
    _update(connection, checkpoint, ids, held, claimed_until_us=None, **name)


def defer(
    connection: Connection, checkpoint: str, ids: Sequence[str], *, by: str, retry_us: int
) -> None:
    """Give claimed entries back, not to be taken before an instant; the archive may have them."""
    held = entries.c.claimed_by == by
    tries = entries.c.tries + 1
    _update(
        connection, checkpoint, ids, held, claimed_until_us=None, retry_us=retry_us, tries=tries
    )


def release_all(connection: Connection) -> None:
    """End every claim: for the only process on the database, at its start."""
    connection.execute(
        update(entries).where(entries.c.claimed_until_us.is_not(None)).values(claimed_until_us=None)
    )


def make_pending(connection: Connection, checkpoint: str, ids: Sequence[str]) -> None:
    """Let entries be indexed again, which the archive may have all the same."""
    _update(
        connection,
        checkpoint,
        ids,
        index_epoch=0,
        vector=None,
        passage_id=None,
        refused=None,
        claimed_by=FORMER,
        claimed_until_us=None,
        retry_us=None,
        tries=0,
    )


def without_vector(
    connection: Connection, checkpoint: str, *, index_epoch: int, dimensions: int
) -> tuple[int, list[str]]:
    """Return how many entries count as indexed, and the ids of those whose vector is not whole."""
    claimed = _indexed(checkpoint, index_epoch)
    broken = entries.c.vector.is_(None) | (
        func.length(entries.c.vector) != dimensions * FLOAT32.itemsize
    )
    total = connection.execute(select(func.count()).where(claimed)).scalar_one()
    query = select(entries.c.id).where(claimed, broken).order_by(entries.c.seq)
    return total, list(connection.execute(query).scalars())


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the ledger says of an entry that counts as indexed."""

    sha256: bytes
    passage_id: str | None


def indexed(connection: Connection, index: IndexKey) -> dict[str, Indexed]:
    """Return the entries that count as indexed, by id."""
    query = select(entries.c.id, entries.c.sha256, entries.c.passage_id).where(
        _indexed(index.checkpoint, index.index_epoch),
        entries.c.collection == index.collection.value,
    )
    return {row.id: Indexed(row.sha256, row.passage_id) for row in connection.execute(query)}


def refusals(
    connection: Connection, checkpoint: str, *, index_epoch: int, limit: int
) -> list[Refusal]:
    """Return refused entries, oldest first."""
    query = (
        select(entries.c.id, entries.c.refused)
        .where(
            entries.c.checkpoint_id == checkpoint,
            entries.c.refused.is_not(None),
            entries.c.index_epoch == index_epoch,
        )
        .order_by(entries.c.seq)
        .limit(limit)
    )
    return [Refusal(row.id, row.refused) for row in connection.execute(query)]


def checkpoints_with_work(
    connection: Connection, *, model: str, dimensions: int, at_us: int
) -> list[Checkpoint]:
    """Return the checkpoints with entries to take now that may be indexed with this model."""
    mine = entries.c.checkpoint_id == checkpoints.c.id
    epoch = checkpoints.c.index_epoch
    query = select(checkpoints).where(
        or_(
            exists().where(mine, _pending(epoch, at_us)),
            exists().where(mine, _refused(epoch, at_us)),
        ),
        or_(
            checkpoints.c.model.is_(None),
            and_(checkpoints.c.model == model, checkpoints.c.dimensions == dimensions),
        ),
    )
    return [to_checkpoint(row) for row in connection.execute(query).mappings()]


def begin_reindex(connection: Connection, checkpoint: str, *, model: str, dimensions: int) -> None:
    """Make every entry of the checkpoint pending, to be indexed with this model, from now on."""
    connection.execute(
        update(checkpoints)
        .where(checkpoints.c.id == checkpoint)
        .values(
            index_epoch=checkpoints.c.index_epoch + 1,
            generation=checkpoints.c.generation + 1,
            model=model,
            dimensions=dimensions,
        )
    )
    letta.retire(connection, checkpoint, now_us=now_us())
    connection.execute(
        update(entries)
        .where(entries.c.checkpoint_id == checkpoint, entries.c.retry_us.is_not(None))
        .values(retry_us=None, tries=0)
    )


def _pending(index_epoch: Epoch, at_us: int) -> ColumnElement[bool]:
    due = or_(entries.c.retry_us.is_(None), entries.c.retry_us <= at_us)
    counts = entries.c.superseded_by.is_(None)
    return and_(
        entries.c.index_epoch < index_epoch, counts, due, _free(at_us), ~_is_removed(index_epoch)
    )


def _is_removed(index_epoch: Epoch) -> ColumnElement[bool]:
    """Tell whether a passage is still to be removed of what had the id before a restore.

    What was sent now could be taken for it, and removed.
    """
    return exists().where(
        letta_removals.c.checkpoint_id == entries.c.checkpoint_id,
        letta_removals.c.entry_id == entries.c.id,
        letta_removals.c.index_epoch == index_epoch,
    )


def _refused(index_epoch: Epoch, at_us: int) -> ColumnElement[bool]:
    return and_(
        entries.c.refused.is_not(None),
        entries.c.retry_us <= at_us,
        entries.c.index_epoch == index_epoch,
        _free(at_us),
    )


def _free(at_us: int) -> ColumnElement[bool]:
    return or_(entries.c.claimed_until_us.is_(None), entries.c.claimed_until_us <= at_us)


def _indexed(checkpoint: str, index_epoch: int) -> ColumnElement[bool]:
    return and_(
        entries.c.checkpoint_id == checkpoint,
        entries.c.index_epoch == index_epoch,
        entries.c.refused.is_(None),
    )


def _update(
    connection: Connection,
    checkpoint: str,
    ids: Sequence[str],
    *conditions: ColumnElement[bool],
    **values: object,
) -> None:
    for first in range(0, len(ids), IDS_A_STATEMENT):
        some = ids[first : first + IDS_A_STATEMENT]
        connection.execute(
            update(entries)
            .where(entries.c.checkpoint_id == checkpoint, entries.c.id.in_(some), *conditions)
            .values(**values)
        )
