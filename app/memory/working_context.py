"""What a worker loads when it starts on a node, in one call."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.db.transaction import ReadTransaction
from app.lineage.access import Operation
from app.lineage.core_memory import CoreMemory
from app.lineage.entry import Entry
from app.lineage.filters import MetadataFilter
from app.lineage.guard import Claim
from app.lineage.ids import NodeId
from app.memory.claims import readable_node
from app.memory.core_memory import read_core
from app.memory.read_entries import InheritedPage, InheritedPosition, read_inherited, record_read
from app.memory.search_entries import SearchResult, Wanted, search_lineage
from app.memory.services import Services

# The conclusions of a lineage; a deeper one goes on with `next_position`.
MAX_CONCLUSIONS = 1_000
CONCLUSIONS = MetadataFilter.from_values({"type": "result_summary"})


@dataclass(frozen=True, slots=True)
class WorkingContext:
    """Core memory, the conclusions of the lineage (root first), and the entries that help most.

    `search` is None where neither a query was given nor the node has a direction.
    """

    core: CoreMemory
    conclusions: Sequence[Entry]
    next_position: InheritedPosition | None
    search: SearchResult | None


async def working_context(
    services: Services, node: NodeId, *, query: str | None, limit: int, claim: Claim | None
) -> WorkingContext:
    """Return what a worker loads at node start. Raises what search_lineage raises."""
    place = await readable_node(
        services, node, claim=claim, operation=Operation.WORKING_CONTEXT, query=query
    )
    search = None
    if query is not None or place.node.eval_summary is not None:
        search = await search_lineage(services, node, Wanted(query, limit), claim=claim)

    def read(connection: ReadTransaction) -> tuple[CoreMemory, InheritedPage]:
        inherited = read_inherited(
            connection, place, limit=MAX_CONCLUSIONS, after=None, matching=CONCLUSIONS
        )
        return read_core(connection, node.checkpoint), inherited

    core, inherited = await services.ledger.read(read)
    record_read(services, place, Operation.WORKING_CONTEXT, claim, inherited.entries)
    return WorkingContext(core, inherited.entries, inherited.next_position, search)
