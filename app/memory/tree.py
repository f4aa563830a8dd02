"""The whole tree of a checkpoint."""

from collections.abc import Sequence

from app.db import entries as entry_rows
from app.db import nodes as node_rows
from app.db.transaction import ReadTransaction
from app.lineage.guard import Claim, Node
from app.lineage.mermaid import Branch
from app.memory.claims import operator_only
from app.memory.services import Services


async def whole_tree(
    services: Services, checkpoint: str, *, claim: Claim | None
) -> Sequence[Branch]:
    """Return every node, parents before children and branch after branch: the operator's view.

    UnknownCheckpoint; ScopeViolation for any claim.
    """
    await operator_only(services, checkpoint, claim=claim)

    def query(connection: ReadTransaction) -> Sequence[Branch]:
        found = [node for _, node in node_rows.page(connection, checkpoint, limit=None, after=0)]
        return _depth_first(found, entry_rows.count_by_node(connection, checkpoint))

    return await services.ledger.read(query)


def _depth_first(nodes: Sequence[Node], counts: dict[str, int]) -> list[Branch]:
    """Order without recursion: a chain may be thousands of nodes deep."""
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    branches: list[Branch] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        node = waiting.pop()
        below = children.get(node.id.name, [])
        names = tuple(child.id.name for child in below)
        branches.append(Branch(node, counts.get(node.id.name, 0), names))
        waiting += below[::-1]
    return branches
