"""Rows of entries. Whatever is read of them is read through a Scope."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    delete,
    func,
    select,
    tuple_,
)

from app.db import letta
from app.db.instants import now_us
from app.db.rows import to_entry
from app.db.tables import entries
from app.db.vectors import Vector, from_bytes
from app.lineage.checkpoint import IndexKey
from app.lineage.entry import Collection, Entry
from app.lineage.filters import MetadataFilter
from app.lineage.lineage import Scope

R = TypeVar("R", bound=tuple[Any, ...])

# Rows taken at a time while a filter looks for its page.
CHUNK = 500
# What was superseded is read by its id alone.
COUNTS = entries.c.superseded_by.is_(None)

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
    saying: str = "",
) -> list[Listed]:
    """Return the entries of a scope as one list, oldest first, from behind a position.

    `saying` is a piece of compact JSON that the metadata of every match holds: the database passes
    over the others, and the filter has the last word.
    """
    found: list[Listed] = []
    while len(found) < limit:
        chunk = limit - len(found) if not matching else CHUNK
        rows = _listed(
            connection, scope, index_epoch=index_epoch, limit=chunk, after=after, saying=saying
        )
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
    """Return which of these entries still count: neither deleted nor superseded."""
    query = select(entries.c.id).where(
        entries.c.checkpoint_id == checkpoint, entries.c.id.in_(ids), COUNTS
    )
    return set(connection.execute(query).scalars())


def digests(connection: Connection, scope: Scope) -> list[bytes]:
    """Return the raw SHA-256 of each entry in scope, in listing order."""
    query = select(entries.c.sha256).where(_in(scope))
    return list(connection.execute(_in_order(query)).scalars())


def clear(connection: Connection, scope: Scope, *, index: IndexKey) -> int:
    """Delete the entries in scope, from their archive elsewhere too; return how many they were."""
    letta.queue_removals(connection, scope, index=index, now_us=now_us())
    gone = connection.execute(delete(entries).where(_in(scope)).returning(entries.c.id))
    return len(gone.all())


def count_by_node(connection: Connection, checkpoint: str) -> dict[str, int]:
    """Return how many entries each node has, by name; nodes without any are left out."""
    query = (
        select(entries.c.node, func.count().label("number"))
        .where(entries.c.checkpoint_id == checkpoint, entries.c.collection == "node_scope")
        .group_by(entries.c.node)
    )
    return {row.node: row.number for row in connection.execute(query)}


def count_between(
    connection: Connection, checkpoint: str, collection: Collection, *, first_us: int, last_us: int
) -> int:
    """Count the collection's entries of these instants, both included."""
    query = select(func.count()).where(
        entries.c.checkpoint_id == checkpoint,
        entries.c.collection == collection.value,
        entries.c.created_us.between(first_us, last_us),
        COUNTS,
    )
    return int(connection.execute(query).scalar_one())


def load(
    connection: Connection, scope: Scope, *, index_epoch: int, since_change: int
) -> Iterator[tuple[Entry, Vector | None]]:
    """Yield the entries in scope that changed since, with their vectors, in listing order.

    Those that were superseded since are among them: whoever holds one learns of it so.
    """
    query = select(entries)
    if since_change:
        query = query.where(_placed(scope), entries.c.change > since_change)
    else:
        query = query.where(_in(scope))
    rows = connection.execution_options(yield_per=CHUNK).execute(_in_order(query))
    for row in rows.mappings():
        entry = to_entry(row, index_epoch=index_epoch)
        vector = from_bytes(row["vector"]) if entry.indexed and row["vector"] else None
        yield entry, vector


def _listed(
    connection: Connection,
    scope: Scope,
    *,
    index_epoch: int,
    limit: int,
    after: Position | None,
    saying: str,
) -> list[Listed]:
    query = select(entries).where(_in(scope))
    if saying:
        query = query.where(entries.c.metadata.contains(saying, autoescape=True))
    if after is not None:
        query = query.where(tuple_(entries.c.created_us, entries.c.seq) > after)
    rows = connection.execute(_in_order(query).limit(limit)).mappings()
    return [
        Listed(to_entry(row, index_epoch=index_epoch), (row["created_us"], row["seq"]))
        for row in rows
    ]


def _in(scope: Scope) -> ColumnElement[bool]:
    """Return the condition that no read of entries can be written without."""
    return _placed(scope) & COUNTS


def _placed(scope: Scope) -> ColumnElement[bool]:
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
