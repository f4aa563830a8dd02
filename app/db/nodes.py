"""Rows of nodes."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, insert, select, update

from app.db.instants import now_us
from app.db.rows import to_node
from app.db.tables import checkpoints, nodes
from app.lineage.errors import NodeConflict, UnknownNode
from app.lineage.guard import Node
from app.lineage.ids import NodeId
from app.lineage.lineage import Lineage

IS_NODE = (nodes.c.checkpoint_id == bindparam("checkpoint")) & (nodes.c.name == bindparam("name"))
SELECT_NODE = select(nodes).where(IS_NODE)
_UP = select(nodes.c.parent, nodes.c.depth).where(IS_NODE).cte("up", recursive=True)
# One look-up by key a level, whatever the planner thinks: joined with the nodes instead, PostgreSQL
# read all of the checkpoint's nodes again at every level.
_ABOVE = select(nodes.c.parent).where(
    nodes.c.checkpoint_id == bindparam("checkpoint"), nodes.c.name == _UP.c.parent
)
_UP = _UP.union_all(
    select(_ABOVE.correlate(_UP).scalar_subquery(), _UP.c.depth - 1).where(
        _UP.c.parent.is_not(None)
    )
)
SELECT_ANCESTORS = select(_UP.c.parent).where(_UP.c.parent.is_not(None)).order_by(_UP.c.depth)


def find(connection: Connection, node: NodeId) -> Node | None:
    """Return a node, None where there is none."""
    row = connection.execute(SELECT_NODE, _key(node)).mappings().one_or_none()
    return None if row is None else to_node(row)


def get(connection: Connection, node: NodeId) -> Node:
    """Return a node; UnknownNode where there is none."""
    if (found := find(connection, node)) is None:
        raise UnknownNode(str(node))
    return found


def lineage(connection: Connection, node: NodeId) -> Lineage:
    """Return the lineage of a node that exists, walked up from parent to parent."""
    return Lineage(node, tuple(connection.execute(SELECT_ANCESTORS, _key(node)).scalars()))


def create(
    connection: Connection,
    node: NodeId,
    *,
    parent: Node | None,
    eval_summary: str | None,
    metadata: str,
) -> tuple[Node, bool]:
    """Return the node and whether it was made now; with another parent it is NodeConflict.

    The caller holds the checkpoint's lock, so that a look before the insert is enough.
    """
    parent_name = None if parent is None else parent.id.name
    if (stored := find(connection, node)) is not None:
        if stored.parent != parent_name:
            raise NodeConflict(str(node), _global(node, stored.parent))
        return stored, False
    values = {
        **_columns(node),
        "parent": parent_name,
        "depth": 0 if parent is None else parent.depth + 1,
        "seq": _next_seq(connection, node.checkpoint),
        "eval_summary": eval_summary,
        "metadata": metadata,
        "created_us": now_us(),
        "sealed_us": None,
        "token_epoch": 0,
    }
    connection.execute(insert(nodes).values(values))
    _count_change(connection, node.checkpoint)
    return get(connection, node), True


def change(connection: Connection, node: NodeId, **values: str | int | None) -> Node:
    """Set columns of a node that exists and return it."""
    statement = update(nodes).where(
        nodes.c.checkpoint_id == node.checkpoint, nodes.c.name == node.name
    )
    connection.execute(statement.values(values))
    _count_change(connection, node.checkpoint)
    return get(connection, node)


def page(
    connection: Connection, checkpoint: str, *, limit: int | None, after: int
) -> Sequence[tuple[int, Node]]:
    """Return nodes with their place in the tree's history, oldest first, from behind a place."""
    query = (
        select(nodes)
        .where(nodes.c.checkpoint_id == checkpoint, nodes.c.seq > after)
        .order_by(nodes.c.seq)
        .limit(limit)
    )
    return [(row["seq"], to_node(row)) for row in connection.execute(query).mappings()]


def _count_change(connection: Connection, checkpoint: str) -> None:
    connection.execute(
        update(checkpoints)
        .where(checkpoints.c.id == checkpoint)
        .values(node_changes=checkpoints.c.node_changes + 1)
    )


def _next_seq(connection: Connection, checkpoint: str) -> int:
    last = select(func.max(nodes.c.seq)).where(nodes.c.checkpoint_id == checkpoint)
    return (connection.execute(last).scalar() or 0) + 1


def _key(node: NodeId) -> dict[str, str]:
    return {"checkpoint": node.checkpoint, "name": node.name}


def _columns(node: NodeId) -> dict[str, str]:
    return {"checkpoint_id": node.checkpoint, "name": node.name}


def _global(node: NodeId, name: str | None) -> str | None:
    return None if name is None else str(NodeId(node.checkpoint, name))
