"""Rows of entries. Whatever is read of them is read through a Scope."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    delete,
    func,
    select,
    tuple_,
    update,
)

from app.db.rows import to_entry
from app.db.tables import entries
from app.db.vectors import FLOAT32, Vector, from_bytes, to_bytes
from app.lineage.entry import Entry
from app.lineage.filters import MetadataFilter
from app.lineage.lineage import Scope

R = TypeVar("R", bound=tuple[Any, ...])

# Rows taken at a time while a filter looks for its page.
CHUNK = 500

# (created_us, seq): the order of listings.
Position: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry and its position in a listing of its node."""

    entry: Entry
    position: Position


def page(
    connection: Connection,
    scope: Scope,
    *,
    index_epoch: int,
    limit: int,
    after: Position | None,
    matching: MetadataFilter | None = None,
) -> list[Listed]:
    """Return the entries of a scope as one list, oldest first, from behind a position."""
    found: list[Listed] = []
    while len(found) < limit:
        chunk = limit - len(found) if not matching else CHUNK
        rows = _listed(connection, scope, index_epoch=index_epoch, limit=chunk, after=after)
        found += [item for item in rows if not matching or matching.matches(item.entry.metadata)]
        if len(rows) < chunk:
            break
        after = rows[-1].position
    return found[:limit]


def by_id(
    connection: Connection, checkpoint: str, ids: Sequence[str], *, index_epoch: int
) -> list[Entry]:
    """Return those of these entries that are there; the caller asks a Scope which it may show."""
    query = select(entries).where(entries.c.checkpoint_id == checkpoint, entries.c.id.in_(ids))
    rows = connection.execute(query).mappings()
    return [to_entry(row, index_epoch=index_epoch) for row in rows]


def still_there(connection: Connection, checkpoint: str, ids: Sequence[str]) -> set[str]:
    """Return which of these entries the ledger still has."""
    query = select(entries.c.id).where(entries.c.checkpoint_id == checkpoint, entries.c.id.in_(ids))
    return set(connection.execute(query).scalars())


def digests(connection: Connection, scope: Scope) -> list[bytes]:
    """Return the raw SHA-256 of each entry in scope, in listing order."""
    query = select(entries.c.sha256).where(_in(scope))
    return list(connection.execute(_in_order(query)).scalars())


def ids(connection: Connection, scope: Scope) -> list[str]:
    """Return the ids of the entries in scope, in listing order."""
    return list(connection.execute(_in_order(select(entries.c.id).where(_in(scope)))).scalars())


def clear(connection: Connection, scope: Scope) -> None:
    """Delete the entries in scope."""
    connection.execute(delete(entries).where(_in(scope)))


def count_by_node(connection: Connection, checkpoint: str) -> dict[str, int]:
    """Return how many entries each node has, by name; nodes without any are left out."""
    query = (
        select(entries.c.node, func.count().label("number"))
        .where(entries.c.checkpoint_id == checkpoint, entries.c.collection == "node_scope")
        .group_by(entries.c.node)
    )
    return {row.node: row.number for row in connection.execute(query)}


def load(
    connection: Connection, scope: Scope, *, index_epoch: int, since_change: int
) -> Iterator[tuple[Entry, Vector | None]]:
    """Yield the entries in scope that changed since, with their vectors, in listing order."""
    query = select(entries).where(_in(scope))
    if since_change:
        query = query.where(entries.c.change > since_change)
    rows = connection.execution_options(yield_per=CHUNK).execute(_in_order(query))
    for row in rows.mappings():
        entry = to_entry(row, index_epoch=index_epoch)
        vector = from_bytes(row["vector"]) if entry.indexed and row["vector"] else None
        yield entry, vector


SELECT_PENDING = (
    select(entries)
    .where(
        entries.c.checkpoint_id == bindparam("checkpoint"),
        entries.c.index_epoch < bindparam("index_epoch"),
    )
    .order_by(entries.c.seq)
    .limit(bindparam("limit"))
)


def pending(
    connection: Connection, checkpoint: str, *, index_epoch: int, limit: int
) -> list[Entry]:
    """Return entries that the archive still has to take, oldest first."""
    rows = connection.execute(
        SELECT_PENDING, {"checkpoint": checkpoint, "index_epoch": index_epoch, "limit": limit}
    ).mappings()
    return [to_entry(row, index_epoch=index_epoch) for row in rows]


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
        refused=bindparam("to_refused"),
    )
)


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a pending entry: it has its vector, or the reason why it will have none."""

    entry_id: str
    vector: Vector | None
    refused: str | None


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
            "to_refused": item.refused,
        }
        for offset, item in enumerate(settled)
    ]
    connection.execute(SETTLE, rows)


def without_vector(
    connection: Connection, checkpoint: str, *, index_epoch: int, dimensions: int
) -> tuple[int, list[str]]:
    """Return how many entries count as indexed, and the ids of those whose vector is not whole."""
    claimed = (
        (entries.c.checkpoint_id == checkpoint)
        & (entries.c.index_epoch == index_epoch)
        & entries.c.refused.is_(None)
    )
    broken = entries.c.vector.is_(None) | (
        func.length(entries.c.vector) != dimensions * FLOAT32.itemsize
    )
    total = connection.execute(select(func.count()).where(claimed)).scalar_one()
    query = select(entries.c.id).where(claimed, broken).order_by(entries.c.seq)
    return total, list(connection.execute(query).scalars())


def make_pending(connection: Connection, checkpoint: str, ids: Sequence[str]) -> None:
    """Let entries be indexed again."""
    connection.execute(
        update(entries)
        .where(entries.c.checkpoint_id == checkpoint, entries.c.id.in_(ids))
        .values(index_epoch=0, vector=None, refused=None)
    )


def _listed(
    connection: Connection, scope: Scope, *, index_epoch: int, limit: int, after: Position | None
) -> list[Listed]:
    query = select(entries).where(_in(scope))
    if after is not None:
        query = query.where(tuple_(entries.c.created_us, entries.c.seq) > after)
    rows = connection.execute(_in_order(query).limit(limit)).mappings()
    return [
        Listed(to_entry(row, index_epoch=index_epoch), (row["created_us"], row["seq"]))
        for row in rows
    ]


def _in(scope: Scope) -> ColumnElement[bool]:
    """Return the condition that no read of entries can be written without."""
    within = (entries.c.checkpoint_id == scope.checkpoint) & (
        entries.c.collection == scope.collection.value
    )
    if scope.nodes is None:
        return within
    names = [name or "" for name in scope.nodes]
    if len(names) == 1:
        return within & (entries.c.node == names[0])
    return within & entries.c.node.in_(names)


def _in_order(query: Select[R]) -> Select[R]:
    return query.order_by(entries.c.created_us, entries.c.seq)
