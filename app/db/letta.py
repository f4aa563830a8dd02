"""Rows about Letta's side: which agents and archives are ours, and what Letta still has to remove.

Letta's names are not unique, and an answer may be lost on its way: so these rows decide who makes
an agent, and what was made is recorded at once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    case,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    update,
)

from app.db.tables import checkpoints, core_blocks, entries, letta_agents, letta_removals
from app.db.upsert import upsert
from app.lineage.checkpoint import IndexKey
from app.lineage.entry import Collection
from app.lineage.lineage import Scope


@dataclass(frozen=True, slots=True)
class Pair:
    """What is known of one index there: Letta's ids, None until it was made."""

    index: IndexKey
    agent_id: str | None
    archive_id: str | None
    embedding: dict[str, Any] | None
    ready: bool
    core_version: int
    retired: bool


@dataclass(frozen=True, slots=True)
class Removal:
    """A passage to remove; `passage_id` is None where it has to be looked for."""

    index: IndexKey
    entry_id: str
    passage_id: str | None
    created_us: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A passage that Letta has taken, of the entry of this instant."""

    entry_id: str
    passage_id: str
    created_us: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much Letta's side lags behind the ledger."""

    retired: int
    removals: int
    core_memories: int


def find(connection: Connection, index: IndexKey) -> Pair | None:
    """Return what is known of a index."""
    row = connection.execute(select(letta_agents).where(_is(index))).mappings().one_or_none()
    return None if row is None else _pair(row)


def current(connection: Connection, index: IndexKey) -> bool:
    """Tell whether the checkpoint still has this index; its row is held until the commit."""
    query = select(checkpoints.c.id).where(
        checkpoints.c.id == index.checkpoint,
        checkpoints.c.incarnation == index.incarnation,
        checkpoints.c.index_epoch == index.index_epoch,
    )
    return connection.execute(query.with_for_update(key_share=True)).scalar() is not None


def begin_making(
    connection: Connection, index: IndexKey, *, replica: str, now_us: int, until_us: int
) -> bool:
    """Claim the making of an agent and its archive; tell whether nobody else is at it."""
    values = {
        "checkpoint_id": index.checkpoint,
        "incarnation": index.incarnation,
        "index_epoch": index.index_epoch,
        "collection": index.collection.value,
        "ready": False,
        "core_version": 0,
    }
    connection.execute(upsert(connection, letta_agents).values(values).on_conflict_do_nothing())
    free = or_(
        letta_agents.c.made_until_us.is_(None),
        letta_agents.c.made_until_us <= now_us,
        letta_agents.c.made_by == replica,
    )
    claim = (
        update(letta_agents)
        .where(_is(index), free)
        .values(made_by=replica, made_until_us=until_us)
        .returning(letta_agents.c.checkpoint_id)
    )
    return connection.execute(claim).first() is not None


def record(connection: Connection, index: IndexKey, **made: object) -> None:
    """Write down what was made: `agent_id`, `archive_id`, `embedding`, `core_version`, `ready`."""
    if "embedding" in made:
        made["embedding"] = json.dumps(made["embedding"], sort_keys=True)
    connection.execute(update(letta_agents).where(_is(index)).values(**made))


def end_making(connection: Connection, index: IndexKey, *, replica: str) -> None:
    """Let others try."""
    connection.execute(
        update(letta_agents)
        .where(_is(index), letta_agents.c.made_by == replica)
        .values(made_until_us=None)
    )


def mirrored(connection: Connection, index: IndexKey, *, replica: str, version: int) -> None:
    """Write down which version of core memory the blocks hold.

    Where another replica took over meanwhile, nobody knows which of the two wrote last: the blocks
    are then as good as never written.
    """
    mine = letta_agents.c.made_by == replica
    held = connection.execute(select(mine).where(_is(index))).scalar()
    record(connection, index, core_version=version if held else 0, made_until_us=None)


def retire(connection: Connection, checkpoint: str, *, now_us: int) -> None:
    """Let all that Letta has of a checkpoint be removed."""
    connection.execute(
        update(letta_agents)
        .where(letta_agents.c.checkpoint_id == checkpoint, letta_agents.c.retired_us.is_(None))
        .values(retired_us=now_us)
    )
    # They go with their archive.
    connection.execute(delete(letta_removals).where(letta_removals.c.checkpoint_id == checkpoint))


def retired(
    connection: Connection, *, now_us: int, limit: int, checkpoint: str | None = None
) -> list[Pair]:
    """Return pairs to remove that nobody is still making, of one checkpoint or of any."""
    query = select(letta_agents).where(
        letta_agents.c.retired_us.is_not(None),
        or_(letta_agents.c.made_until_us.is_(None), letta_agents.c.made_until_us <= now_us),
    )
    if checkpoint is not None:
        query = query.where(letta_agents.c.checkpoint_id == checkpoint)
    rows = connection.execute(query.order_by(letta_agents.c.retired_us).limit(limit))
    return [_pair(row) for row in rows.mappings()]


def is_gone(connection: Connection, checkpoint: str, incarnation: str) -> bool:
    """Tell whether nothing of a purged checkpoint is left to remove."""
    query = select(func.count()).where(
        letta_agents.c.checkpoint_id == checkpoint, letta_agents.c.incarnation == incarnation
    )
    return connection.execute(query).scalar_one() == 0


def forget(connection: Connection, index: IndexKey) -> None:
    """Delete the row of a pair that Letta has let go of, or has lost."""
    connection.execute(delete(letta_agents).where(_is(index)))


def lagging(connection: Connection, *, now_us: int, limit: int) -> list[Pair]:
    """Return the pairs whose blocks are behind core memory, and which nobody is at."""
    query = (
        select(letta_agents)
        .join(checkpoints, _lags())
        .where(or_(letta_agents.c.made_until_us.is_(None), letta_agents.c.made_until_us <= now_us))
        .limit(limit)
    )
    return [_pair(row) for row in connection.execute(query).mappings()]


def unmirrored(connection: Connection, *, limit: int) -> list[IndexKey]:
    """Return the indexes of core memories for which Letta has no agent yet."""
    query = (
        select(checkpoints.c.id, checkpoints.c.incarnation, checkpoints.c.index_epoch)
        .outerjoin(letta_agents, _of_nodes())
        .where(checkpoints.c.core_version > 0, letta_agents.c.ready.is_not(True))
        .limit(limit)
    )
    return [
        IndexKey(row.id, row.incarnation, row.index_epoch, Collection.NODE_SCOPE)
        for row in connection.execute(query)
    ]


def embeddings(connection: Connection, *, limit: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the frozen embedding configurations in use, each with a checkpoint that has it."""
    query = (
        select(func.min(letta_agents.c.checkpoint_id), letta_agents.c.embedding)
        .where(letta_agents.c.retired_us.is_(None), letta_agents.c.embedding.is_not(None))
        .group_by(letta_agents.c.embedding)
        .limit(limit)
    )
    return [(checkpoint, json.loads(stored)) for checkpoint, stored in connection.execute(query)]


def queue_removals(connection: Connection, scope: Scope, *, index: IndexKey, now_us: int) -> None:
    """Note the passages of the scope's entries, which the caller is about to delete.

    One that a replica may be sending is looked for once the claim is over.
    """
    names = [name or "" for name in scope.nodes or ()]
    _queue(connection, entries.c.node.in_(names), index=index, now_us=now_us)


def queue_removals_of(
    connection: Connection, ids: Sequence[str], *, index: IndexKey, now_us: int
) -> None:
    """Note the passages of these entries, which the caller is about to supersede."""
    _queue(connection, entries.c.id.in_(ids), index=index, now_us=now_us)


def queue_stored(
    connection: Connection, index: IndexKey, stored: Sequence[Stored], *, now_us: int
) -> None:
    """Note passages that came to be while their entries were deleted or superseded."""
    if not stored:
        return
    rows = [
        {
            "checkpoint_id": index.checkpoint,
            "incarnation": index.incarnation,
            "index_epoch": index.index_epoch,
            "collection": index.collection.value,
            "entry_id": item.entry_id,
            "passage_id": item.passage_id,
            "created_us": item.created_us,
            "due_us": now_us,
        }
        for item in stored
    ]
    statement = upsert(connection, letta_removals).values(rows)
    # One that waits for a claim to be over need not wait any longer.
    due = {"due_us": statement.excluded["due_us"]}
    key = list(letta_removals.primary_key.columns)
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=due))


def _queue(
    connection: Connection, chosen_ones: ColumnElement[bool], *, index: IndexKey, now_us: int
) -> None:
    current = and_(entries.c.index_epoch == index.index_epoch, entries.c.refused.is_(None))
    maybe_there = or_(
        and_(current, entries.c.passage_id.is_not(None)), entries.c.claimed_by.is_not(None)
    )
    chosen = select(
        entries.c.checkpoint_id,
        literal(index.incarnation),
        literal(index.index_epoch),
        entries.c.collection,
        entries.c.id,
        case((current, entries.c.passage_id), else_=None),
        entries.c.created_us,
        func.coalesce(entries.c.claimed_until_us, now_us),
    ).where(
        entries.c.checkpoint_id == index.checkpoint,
        entries.c.collection == index.collection.value,
        chosen_ones,
        maybe_there,
        # Nothing is there that no archive was made for.
        exists().where(_is(index), letta_agents.c.archive_id.is_not(None)),
    )
    columns = list(letta_removals.c.keys())
    # One that was restored and goes again was not sent meanwhile: its row tells all there is.
    statement = upsert(connection, letta_removals).from_select(columns, chosen)
    connection.execute(statement.on_conflict_do_nothing())


def due_removals(connection: Connection, *, now_us: int, limit: int) -> list[Removal]:
    """Return passages to remove now, of one index, oldest first."""
    query = (
        select(letta_removals)
        .where(letta_removals.c.due_us <= now_us)
        .order_by(letta_removals.c.due_us)
        .limit(limit)
    )
    rows = connection.execute(query).mappings().all()
    found = [_removal(row) for row in rows]
    return [removal for removal in found if removal.index == found[0].index]


def end_removals(connection: Connection, removals: Sequence[Removal]) -> None:
    """Delete the rows of passages that Letta no longer has."""
    connection.execute(delete(letta_removals).where(_are(removals)))


def defer_removals(connection: Connection, removals: Sequence[Removal], *, due_us: int) -> None:
    """Try again at an instant."""
    connection.execute(update(letta_removals).where(_are(removals)).values(due_us=due_us))


def backlog(connection: Connection) -> Backlog:
    """Count what Letta still has to be told."""
    retired = select(func.count()).where(letta_agents.c.retired_us.is_not(None))
    removals = select(func.count()).select_from(letta_removals)
    behind = (
        select(func.count())
        .select_from(checkpoints)
        .outerjoin(letta_agents, _of_nodes())
        .where(checkpoints.c.core_version > func.coalesce(letta_agents.c.core_version, 0))
    )
    counts = [connection.execute(query).scalar_one() for query in (retired, removals, behind)]
    return Backlog(*counts)


def core_blocks_of(connection: Connection, index: IndexKey) -> tuple[dict[str, str], int] | None:
    """Return core memory's blocks and version; None where the checkpoint is another by now."""
    version = connection.execute(
        select(checkpoints.c.core_version).where(
            checkpoints.c.id == index.checkpoint, checkpoints.c.incarnation == index.incarnation
        )
    ).scalar()
    if version is None:
        return None
    query = select(core_blocks.c.label, core_blocks.c.value).where(
        core_blocks.c.checkpoint_id == index.checkpoint
    )
    return {row.label: row.value for row in connection.execute(query)}, version


def _of_nodes() -> ColumnElement[bool]:
    """Join a checkpoint with the agent that mirrors its core memory."""
    return and_(
        letta_agents.c.checkpoint_id == checkpoints.c.id,
        letta_agents.c.incarnation == checkpoints.c.incarnation,
        letta_agents.c.index_epoch == checkpoints.c.index_epoch,
        letta_agents.c.collection == Collection.NODE_SCOPE.value,
    )


def _lags() -> ColumnElement[bool]:
    behind = letta_agents.c.core_version < checkpoints.c.core_version
    return and_(_of_nodes(), letta_agents.c.ready, behind)


def _is(index: IndexKey) -> ColumnElement[bool]:
    return and_(
        letta_agents.c.checkpoint_id == index.checkpoint,
        letta_agents.c.incarnation == index.incarnation,
        letta_agents.c.index_epoch == index.index_epoch,
        letta_agents.c.collection == index.collection.value,
    )


def _are(removals: Sequence[Removal]) -> ColumnElement[bool]:
    keys = [(item.index.checkpoint, item.index.incarnation, item.entry_id) for item in removals]
    columns = letta_removals.c
    return tuple_(columns.checkpoint_id, columns.incarnation, columns.entry_id).in_(keys)


def _index(row: RowMapping) -> IndexKey:
    return IndexKey(
        row["checkpoint_id"], row["incarnation"], row["index_epoch"], Collection(row["collection"])
    )


def _pair(row: RowMapping) -> Pair:
    return Pair(
        index=_index(row),
        agent_id=row["agent_id"],
        archive_id=row["archive_id"],
        embedding=None if row["embedding"] is None else json.loads(row["embedding"]),
        ready=row["ready"],
        core_version=row["core_version"],
        retired=row["retired_us"] is not None,
    )


def _removal(row: RowMapping) -> Removal:
    return Removal(_index(row), row["entry_id"], row["passage_id"], row["created_us"])
