"""Clear a node's own entries: for debugging, under the same rules as a write."""

from app.db import access_log
from app.db import checkpoints as checkpoint_rows
from app.db import entries as entry_rows
from app.db import nodes as node_rows
from app.db.events import NodeCleared
from app.db.transaction import Transaction
from app.lineage.access import Access, Operation
from app.lineage.checkpoint import IndexKey
from app.lineage.entry import Collection
from app.lineage.guard import Claim, check_open, check_writer
from app.lineage.ids import NodeId
from app.lineage.lineage import Lineage
from app.memory.claims import REFUSALS, record_refusal
from app.memory.services import Services


async def clear_entries(services: Services, node: NodeId, *, claim: Claim | None) -> int:
    """Delete a node's own entries and return how many. What check_writer and check_open raise."""

    def work(tx: Transaction) -> int:
        checkpoint = checkpoint_rows.lock(tx.connection, node.checkpoint)
        row = node_rows.get(tx.connection, node)
        check_writer(row, claim)
        check_open(row)
        own = Lineage(node, ()).own()
        index = IndexKey(
            node.checkpoint, checkpoint["incarnation"], checkpoint["index_epoch"], own.collection
        )
        removed = entry_rows.clear(tx.connection, own, index=index)
        checkpoint_rows.void_caches(tx.connection, node.checkpoint)
        tx.events.append(NodeCleared(node, Collection.NODE_SCOPE))
        reader = claim.node if claim else None
        access_log.record_with_write(tx, [Access(node.checkpoint, Operation.CLEAR, reader, node)])
        return removed

    try:
        removed = await services.ledger.write(work)
    except REFUSALS as error:
        await record_refusal(services, error, Operation.CLEAR, node, claim=claim)
        raise
    services.upkeep.wake()
    return removed
