"""Rows of checkpoints."""

import secrets
from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    delete,
    func,
    select,
    tuple_,
    update,
)

from app.db import letta
from app.db.instants import now_us
from app.db.rows import to_checkpoint
from app.db.tables import (
    access_log,
    checkpoints,
    core_blocks,
    entries,
    idempotent_answers,
    node_tokens,
    nodes,
)
from app.db.upsert import upsert
from app.lineage.checkpoint import Checkpoint, Counts
from app.lineage.errors import CheckpointConflict, UnknownCheckpoint

# Children first: no row is ever without its parent.
OWNED = (access_log, idempotent_answers, node_tokens, core_blocks, entries, nodes)

SELECT_STATE = select(
    checkpoints.c.incarnation,
    checkpoints.c.generation,
    checkpoints.c.changes,
    checkpoints.c.index_epoch,
).where(checkpoints.c.id == bindparam("checkpoint"))

Position: TypeAlias = tuple[int, str]


def find(connection: Connection, checkpoint: str) -> Checkpoint | None:
    """Return a checkpoint, None where there is none."""
    row = _row(connection, checkpoints.c.id == checkpoint)
    return None if row is None else to_checkpoint(row)


def get(connection: Connection, checkpoint: str) -> Checkpoint:
    """Return a checkpoint; UnknownCheckpoint where there is none."""
    if (found := find(connection, checkpoint)) is None:
        raise UnknownCheckpoint(checkpoint)
    return found


def lock(connection: Connection, checkpoint: str) -> RowMapping:
    """Return a checkpoint's row, held until the transaction ends: its changes come one by one.

    The lock lets rows refer to it meanwhile (FOR NO KEY UPDATE): access records of other replicas
    neither wait for it nor can deadlock with it.
    """
    query = select(checkpoints).where(checkpoints.c.id == checkpoint)
    locked = query.with_for_update(key_share=True)
    if (row := connection.execute(locked).mappings().one_or_none()) is None:
        raise UnknownCheckpoint(checkpoint)
    return row


def create(
    connection: Connection,
    checkpoint: str,
    *,
    derived: bool,
    path: str | None,
    name: str | None,
    metadata: str,
) -> tuple[Checkpoint, bool]:
    """Return the checkpoint of this id or path and whether it was made now.

    An id with another path is CheckpointConflict, and so is a path that belongs to another id,
    unless the id was `derived` by us. Racing creates are settled by the keys, not by a look before.
    """
    values: dict[str, Any] = {
        "id": checkpoint,
        "incarnation": secrets.token_hex(8),
        "path": path,
        "name": name,
        "metadata": metadata,
        "created_us": now_us(),
        "changes": 0,
        "last_entry_us": 0,
        "generation": 0,
        "model": None,
        "dimensions": None,
        "index_epoch": 1,
        "core_version": 0,
    }
    made = _insert_unless_there(connection, values)
    return to_checkpoint(_same(connection, checkpoint, path, derived=derived)), made


def page(connection: Connection, *, limit: int, after: Position | None) -> Sequence[Checkpoint]:
    """Return checkpoints, oldest first, from behind a position (created_us, id)."""
    place = tuple_(checkpoints.c.created_us, checkpoints.c.id)
    query = select(checkpoints).order_by(checkpoints.c.created_us, checkpoints.c.id).limit(limit)
    if after is not None:
        query = query.where(place > after)
    return [to_checkpoint(row) for row in connection.execute(query).mappings()]


def count(connection: Connection, checkpoint: Checkpoint) -> Counts:
    """Count a checkpoint's nodes and entries."""
    epoch = checkpoint.index_epoch
    of_nodes = select(func.count()).select_from(nodes).where(nodes.c.checkpoint_id == checkpoint.id)
    of_entries = select(
        func.count(),
        func.count().filter(entries.c.index_epoch < epoch, entries.c.superseded_by.is_(None)),
        func.count().filter(entries.c.index_epoch == epoch, entries.c.refused.is_not(None)),
    ).where(entries.c.checkpoint_id == checkpoint.id)
    total, pending, refused = connection.execute(of_entries).one()
    return Counts(connection.execute(of_nodes).scalar_one(), total, pending, refused)


def state(connection: Connection, checkpoint: str) -> tuple[str, int, int, int] | None:
    """Return incarnation, generation, changes and index epoch: what caches are checked against."""
    row = connection.execute(SELECT_STATE, {"checkpoint": checkpoint}).one_or_none()
    return None if row is None else tuple(row)


def all_counters(connection: Connection) -> dict[str, tuple[object, ...]]:
    """Return what tells a checkpoint's state from any other that it had, by its id."""
    query = select(
        checkpoints.c.id,
        checkpoints.c.incarnation,
        checkpoints.c.generation,
        checkpoints.c.changes,
        checkpoints.c.core_version,
        checkpoints.c.node_changes,
    )
    return {row.id: tuple(row)[1:] for row in connection.execute(query)}


def void_caches(connection: Connection, checkpoint: str) -> None:
    """Tell the other replicas that what they cache of the checkpoint is void."""
    connection.execute(
        update(checkpoints)
        .where(checkpoints.c.id == checkpoint)
        .values(generation=checkpoints.c.generation + 1)
    )


def advance(connection: Connection, checkpoint: str, *, changes: int, **values: str | int) -> None:
    """Give out so many change numbers, and set columns beside; the caller holds the lock."""
    connection.execute(
        update(checkpoints)
        .where(checkpoints.c.id == checkpoint)
        .values(changes=checkpoints.c.changes + changes, **values)
    )


def purge(connection: Connection, checkpoint: str) -> None:
    """Delete the checkpoint and all that is its own; UnknownCheckpoint where there is none."""
    # The strongest lock: no row may come to refer to the checkpoint while it goes.
    held = select(checkpoints.c.id).where(checkpoints.c.id == checkpoint).with_for_update()
    if connection.execute(held).scalar() is None:
        raise UnknownCheckpoint(checkpoint)
    letta.retire(connection, checkpoint, now_us=now_us())
    for table in OWNED:
        connection.execute(delete(table).where(table.c.checkpoint_id == checkpoint))
    connection.execute(delete(checkpoints).where(checkpoints.c.id == checkpoint))


def _insert_unless_there(connection: Connection, values: dict[str, Any]) -> bool:
    """Insert the row unless its id or path is taken; tell whether that made one."""
    statement = upsert(connection, checkpoints).values(values).on_conflict_do_nothing()
    # Not by rowcount, which psycopg does not tell of an INSERT.
    return connection.execute(statement.returning(checkpoints.c.id)).first() is not None


def _same(
    connection: Connection, checkpoint: str, path: str | None, *, derived: bool
) -> RowMapping:
    """Return the stored row that the request names, or say what stands in its place."""
    row = _row(connection, checkpoints.c.id == checkpoint)
    if row is not None and (path is None or row["path"] == path):
        return row
    holder = None if path is None else _row(connection, checkpoints.c.path == path)
    if holder is not None and derived:
        return holder
    if holder is not None:
        raise CheckpointConflict(f"The path belongs to checkpoint {holder['id']!r}.")
    raise CheckpointConflict(f"Checkpoint {checkpoint!r} exists with another path.")


def _row(connection: Connection, condition: ColumnElement[bool]) -> RowMapping | None:
    return connection.execute(select(checkpoints).where(condition)).mappings().one_or_none()
