"""Rows of notes. A correction is a note of its own, which supersedes the former one.

What was superseded is kept, and read by its id; no search, listing or index has it any more.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, bindparam, func, select, tuple_, update

from app.db import checkpoints as checkpoint_rows
from app.db import letta
from app.db.append import Append, Appended, PreparedEntry, append_group
from app.db.events import EntryStored
from app.db.instants import now_us
from app.db.rows import to_checkpoint, to_entry
from app.db.tables import checkpoints, entries
from app.db.transaction import ReadTransaction, Transaction
from app.db.vectors import Vectors
from app.lineage.checkpoint import IndexKey
from app.lineage.entry import Collection, Entry, Metadata
from app.lineage.errors import LineageError, UnknownCheckpoint

# The key of a note's metadata that names those it stands for.
SUPERSEDES = "supersedes"
CHUNK = 500
COUNTS = entries.c.superseded_by.is_(None)

SUPERSEDE = (
    update(entries)
    .where(
        entries.c.checkpoint_id == bindparam("checkpoint"),
        entries.c.id == bindparam("old"),
    )
    .values(
        superseded_by=bindparam("by"),
        change=bindparam("to_change"),
        index_epoch=0,
        vector=None,
        passage_id=None,
        refused=None,
        retry_us=None,
        tries=0,
        claimed_by=None,
        claimed_until_us=None,
    )
)


def add(
    tx: Transaction,
    checkpoint: str,
    prepared: Sequence[PreparedEntry],
    *,
    vectors: Vectors | None = None,
    model: str = "",
) -> list[Entry]:
    """Store notes in order and return them; the caller holds the checkpoint's lock.

    They are pending unless `vectors`, a row a note, made with `model`, are given. The access log
    has them with their commit.
    """
    append = Append(
        checkpoint=checkpoint,
        collection=Collection.REFERENCE,
        node=None,
        claim=None,
        entries=tuple(prepared),
        vectors=vectors,
        model=model,
    )
    (stored,) = append_group(tx, [append])
    if isinstance(stored, LineageError):
        raise stored
    assert isinstance(stored, Appended), "no answer is kept of what has no key"
    return list(stored.entries)


def supersede(tx: Transaction, checkpoint: str, old_ids: Sequence[str], *, by: str) -> list[Entry]:
    """Let a note take the place of others, and return those; the caller holds the lock.

    What is no note of the checkpoint, or was superseded before, stays as it is.
    """
    row = checkpoint_rows.lock(tx.connection, checkpoint)
    of_notes = to_checkpoint(row).index(Collection.REFERENCE)
    there = _counting(tx.connection, checkpoint, [old for old in old_ids if old != by])
    if not there:
        return []
    checkpoint_rows.advance(tx.connection, checkpoint, changes=1)
    _mark(tx.connection, of_notes, dict.fromkeys(there, by), change=row["changes"] + 1)
    gone = by_ids(tx.connection, checkpoint, list(there))
    tx.events += [EntryStored(entry, None) for entry in gone]
    return gone


# Another one wherever a note came or went: incarnation, generation, the newest change.
Version: TypeAlias = tuple[str, int, int]


def version(connection: ReadTransaction, checkpoint: str) -> Version:
    """Return what tells whether the notes are still those that were read, at no cost.

    UnknownCheckpoint where the checkpoint was purged meanwhile.
    """
    newest = select(func.max(entries.c.change)).where(*_notes_of(checkpoint)).scalar_subquery()
    query = select(checkpoints.c.incarnation, checkpoints.c.generation, newest.label("newest"))
    row = connection.execute(query.where(checkpoints.c.id == checkpoint)).one_or_none()
    if row is None:
        raise UnknownCheckpoint(checkpoint)
    return row.incarnation, row.generation, row.newest or 0


@dataclass(frozen=True, slots=True)
class Listed:
    """A note that counts, without its text."""

    id: str
    sha256: bytes
    metadata: Metadata


def listed(connection: ReadTransaction, checkpoint: str) -> list[Listed]:
    """Return what tells the notes that count from each other, in the ledger's order."""
    query = select(entries.c.id, entries.c.sha256, entries.c.metadata).where(
        *_notes_of(checkpoint), COUNTS
    )
    rows = connection.execute(query.order_by(entries.c.seq))
    return [Listed(row.id, row.sha256, json.loads(row.metadata)) for row in rows]


def current(connection: ReadTransaction, checkpoint: str) -> list[Entry]:
    """Return the notes that count, in the ledger's order."""
    query = select(entries, _epoch(checkpoint)).where(*_notes_of(checkpoint), COUNTS)
    rows = connection.execute(query.order_by(entries.c.seq)).mappings()
    return [to_entry(row, index_epoch=row["epoch"]) for row in rows]


def by_ids(connection: ReadTransaction, checkpoint: str, ids: Sequence[str]) -> list[Entry]:
    """Return those of these notes that are there, superseded ones too, in the ledger's order."""
    query = select(entries, _epoch(checkpoint)).where(*_notes_of(checkpoint), entries.c.id.in_(ids))
    rows = connection.execute(query.order_by(entries.c.seq)).mappings()
    return [to_entry(row, index_epoch=row["epoch"]) for row in rows]


def find(connection: ReadTransaction, checkpoint: str, note: str) -> Entry | None:
    """Return a note, one that was superseded too."""
    return next(iter(by_ids(connection, checkpoint, [note])), None)


def counting(connection: ReadTransaction, checkpoint: str, note: str) -> Entry | None:
    """Return the note that counts in the place of one (itself, where it was not superseded)."""
    found = find(connection, checkpoint, note)
    if found is None or found.superseded_by is None:
        return found
    return find(connection, checkpoint, successors(connection, checkpoint)[note])


def successors(connection: ReadTransaction, checkpoint: str) -> dict[str, str]:
    """Return for each superseded note the one that counts in its place."""
    query = select(entries.c.id, entries.c.superseded_by).where(
        *_notes_of(checkpoint), entries.c.superseded_by.is_not(None)
    )
    above = {row.id: row.superseded_by for row in connection.execute(query)}
    return {old: _last(above, old) for old in above}


def superseded_of(metadata: Metadata) -> list[str]:
    """Return the ids that a note's metadata names as superseded by it."""
    told = metadata.get(SUPERSEDES)
    return [name for name in told if isinstance(name, str)] if isinstance(told, list) else []


def supersede_as_told(connection: Connection, index: IndexKey, *, change: int) -> None:
    """Let every note supersede those that its metadata names, for notes of a snapshot.

    A note stands for older ones alone, so that no two stand for each other; of several that name
    one, the oldest does. The caller holds the lock, and tells the caches.
    """
    after = (-(2**63), 0)
    while naming := _naming(connection, index.checkpoint, after):
        after = (naming[-1]["created_us"], naming[-1]["seq"])
        pairs = [(old, by) for by in naming for old in superseded_of(json.loads(by["metadata"]))]
        for first in range(0, len(pairs), CHUNK):
            some = pairs[first : first + CHUNK]
            named = _counting_older(connection, index.checkpoint, some)
            _mark(connection, index, named, change=change)


def _notes_of(checkpoint: str) -> tuple[Any, ...]:
    return (
        entries.c.checkpoint_id == checkpoint,
        entries.c.collection == Collection.REFERENCE.value,
        entries.c.node == "",
    )


def _epoch(checkpoint: str) -> Any:
    epoch = select(checkpoints.c.index_epoch).where(checkpoints.c.id == checkpoint)
    return epoch.scalar_subquery().label("epoch")


def _counting(
    connection: Connection, checkpoint: str, ids: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Return the places of those of these notes that count."""
    query = select(entries.c.id, entries.c.created_us, entries.c.seq).where(
        *_notes_of(checkpoint), COUNTS, entries.c.id.in_(ids)
    )
    return {row.id: (row.created_us, row.seq) for row in connection.execute(query)}


def _last(above: Mapping[str, str], note: str) -> str:
    while (by := above.get(note)) is not None:
        note = by
    return note


def _naming(connection: Connection, checkpoint: str, after: tuple[int, int]) -> Sequence[Any]:
    """Return some notes that name others, oldest first, from behind a place."""
    place = tuple_(entries.c.created_us, entries.c.seq)
    query = (
        select(entries.c.id, entries.c.metadata, entries.c.created_us, entries.c.seq)
        .where(*_notes_of(checkpoint), place > after, entries.c.metadata.contains(SUPERSEDES))
        .order_by(entries.c.created_us, entries.c.seq)
        .limit(CHUNK)
    )
    return connection.execute(query).mappings().all()


def _counting_older(
    connection: Connection, checkpoint: str, pairs: Sequence[tuple[str, Any]]
) -> dict[str, str]:
    """Return, of notes and who names them, those that count and are older, each with the first."""
    places = _counting(connection, checkpoint, [old for old, _ in pairs])
    named: dict[str, str] = {}
    for old, by in pairs:
        if old in places and places[old] < (by["created_us"], by["seq"]):
            named.setdefault(old, by["id"])
    return named


def _mark(
    connection: Connection, index: IndexKey, superseded: Mapping[str, str], *, change: int
) -> None:
    if not superseded:
        return
    letta.queue_removals_of(connection, list(superseded), index=index, now_us=now_us())
    rows = [
        {"checkpoint": index.checkpoint, "old": old, "by": by, "to_change": change}
        for old, by in superseded.items()
    ]
    connection.execute(SUPERSEDE, rows)
