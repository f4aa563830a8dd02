"""Read entries without ranking: a node's own, and those of its lineage."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.db import entries as entry_rows
from app.db.entries import Listed, Position
from app.db.places import Place
from app.db.transaction import ReadTransaction
from app.lineage.access import Access, Operation, Touched
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Entry
from app.lineage.filters import MetadataFilter
from app.lineage.guard import Claim
from app.lineage.ids import NodeId
from app.memory.claims import readable_node
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A page of a node's own entries; `next_position` is None on the last one."""

    entries: Sequence[Entry]
    next_position: Position | None


@dataclass(frozen=True, slots=True)
class InheritedPosition:
    """Where a page of inherited entries ended: at which ancestor (by depth), and where in it."""

    depth: int
    within: Position


@dataclass(frozen=True, slots=True)
class InheritedPage:
    """A page of the lineage's entries, root first; `next_position` is None on the last one."""

    entries: Sequence[Entry]
    next_position: InheritedPosition | None


async def own_entries(
    services: Services,
    node: NodeId,
    *,
    limit: int,
    after: Position | None,
    claim: Claim | None,
) -> OwnPage:
    """Return a node's own entries, oldest first. UnknownNode, ScopeViolation, StaleToken."""
    place = await readable_node(services, node, claim=claim, operation=Operation.READ)
    listed = await services.ledger.read(
        lambda connection: entry_rows.page(
            connection,
            place.lineage.own(),
            index_epoch=place.checkpoint.index_epoch,
            limit=limit + 1,
            after=after,
        )
    )
    page = listed[:limit]
    entries = [item.entry for item in page]
    record_read(services, place, Operation.READ, claim, entries)
    return OwnPage(entries, page[-1].position if len(listed) > limit else None)


async def inherited_entries(
    services: Services,
    node: NodeId,
    *,
    limit: int,
    after: InheritedPosition | None,
    matching: MetadataFilter,
    claim: Claim | None,
) -> InheritedPage:
    """Return the entries of a node's lineage: root first, then oldest first.

    Raises UnknownNode, ScopeViolation, StaleToken.
    """
    place = await readable_node(services, node, claim=claim, operation=Operation.INHERITED)
    page = await services.ledger.read(
        lambda connection: read_inherited(
            connection, place, limit=limit, after=after, matching=matching
        )
    )
    record_read(services, place, Operation.INHERITED, claim, page.entries)
    return page


def read_inherited(
    connection: ReadTransaction,
    place: Place,
    *,
    limit: int,
    after: InheritedPosition | None,
    matching: MetadataFilter,
) -> InheritedPage:
    """Walk down the lineage, ancestor by ancestor, until the page is full."""
    found: list[tuple[int, Listed]] = []
    start = after.depth if after else 0
    scopes = place.lineage.by_ancestor()
    for depth in range(start, len(scopes)):
        listed = entry_rows.page(
            connection,
            scopes[depth],
            index_epoch=place.checkpoint.index_epoch,
            limit=limit + 1 - len(found),
            after=after.within if after and depth == start else None,
            matching=matching,
        )
        found += [(depth, item) for item in listed]
        if len(found) > limit:
            break
    page = found[:limit]
    more = InheritedPosition(page[-1][0], page[-1][1].position) if len(found) > limit else None
    return InheritedPage([item.entry for _, item in page], more)


def record_read(
    services: Services,
    place: Place,
    operation: Operation,
    claim: Claim | None,
    entries: Sequence[Entry],
) -> None:
    """Tell the access log which entries were shown of a node."""
    record_shown(services, place.checkpoint, operation, entries, claim=claim, target=place.node.id)


def record_shown(
    services: Services,
    checkpoint: Checkpoint,
    operation: Operation,
    entries: Sequence[Entry],
    *,
    claim: Claim | None,
    target: NodeId | None = None,
    query: str | None = None,
) -> None:
    """Tell the access log which entries were shown of a checkpoint."""
    services.accesses.record(
        Access(
            checkpoint=checkpoint.id,
            operation=operation,
            reader=claim.node if claim else None,
            target=target,
            query=query,
            entries=tuple(Touched(entry.id, entry.node_id) for entry in entries),
        ),
        incarnation=checkpoint.incarnation,
    )
