"""The claim at work: who may read what, checked before anything is read."""

from app.db.places import Place
from app.lineage.access import Access, Operation
from app.lineage.errors import (
    CowViolation,
    CurrentNodeRequired,
    LineageError,
    NodeSealed,
    ScopeViolation,
    StaleToken,
    UnknownCheckpoint,
    UnknownNode,
)
from app.lineage.guard import Claim, check_fresh, check_reader
from app.lineage.ids import NodeId
from app.memory.services import Services

# What the access log tells of, beside what was done.
REFUSALS = (CowViolation, CurrentNodeRequired, NodeSealed, ScopeViolation, StaleToken)


async def readable_node(
    services: Services,
    node: NodeId,
    *,
    claim: Claim | None,
    operation: Operation,
    query: str | None = None,
) -> Place:
    """Return the node's place if the claim may read it.

    UnknownNode where there is none; ScopeViolation where it lies outside of the claim's lineage;
    StaleToken. A refusal is in the access log.
    """
    place = await services.ledger.places.node(node)
    if claim is None:
        return place
    try:
        await _check_node(services, place, claim)
    except REFUSALS as error:
        await record_refusal(services, error, operation, node, claim=claim, query=query)
        raise
    return place


async def reader_in(
    services: Services, checkpoint: str, *, claim: Claim | None, operation: Operation
) -> Place | None:
    """Return the place of the claim's node, None without a claim (the operator's view).

    UnknownCheckpoint where there is none; ScopeViolation where the claim's node is not in this
    checkpoint; StaleToken. A refusal is in the access log.
    """
    await services.ledger.places.checkpoint(checkpoint)
    if claim is None:
        return None
    try:
        return await _reader(services, claim, checkpoint)
    except REFUSALS as error:
        await record_refusal(services, error, operation, checkpoint, claim=claim)
        raise


async def operator_only(
    services: Services,
    checkpoint: str,
    *,
    claim: Claim | None,
    operation: Operation = Operation.CHECKPOINT_READ,
) -> None:
    """Refuse any claim: what is read here tells of every node, what is written here tells them."""
    await services.ledger.places.checkpoint(checkpoint)
    if claim is not None:
        error = ScopeViolation(claim.node, [checkpoint])
        await record_refusal(services, error, operation, checkpoint, claim=claim)
        raise error


async def operator_only_for_new(
    services: Services, checkpoint: str, *, claim: Claim | None
) -> None:
    """Refuse any claim, of a checkpoint that may not be there yet."""
    if claim is None:
        return
    try:
        await operator_only(services, checkpoint, claim=claim)
    except UnknownCheckpoint:
        raise ScopeViolation(claim.node, [checkpoint]) from None


async def record_refusal(
    services: Services,
    error: LineageError,
    operation: Operation,
    target: NodeId | str,
    *,
    claim: Claim | None,
    query: str | None = None,
) -> None:
    """Put a refused access into the log of the checkpoint that was asked."""
    node = target if isinstance(target, NodeId) else None
    name = node.checkpoint if node else str(target)
    try:
        checkpoint = await services.ledger.places.checkpoint(name)
    except UnknownCheckpoint:
        return
    services.accesses.record(
        Access(
            checkpoint=checkpoint.id,
            operation=operation,
            reader=claim.node if claim else None,
            target=node,
            query=query,
            refusal=error.slug(),
        ),
        incarnation=checkpoint.incarnation,
    )


async def _check_node(services: Services, place: Place, claim: Claim) -> None:
    node = place.node.id
    if claim.node == str(node):
        check_fresh(place.node, claim)
        return
    reader = await _place_of(services, claim, wanted=str(node))
    check_reader(reader.lineage, node)
    check_fresh(reader.node, claim)


async def _reader(services: Services, claim: Claim, checkpoint: str) -> Place:
    reader = await _place_of(services, claim, wanted=checkpoint)
    if reader.node.id.checkpoint != checkpoint:
        raise ScopeViolation(claim.node, [checkpoint])
    check_fresh(reader.node, claim)
    return reader


async def _place_of(services: Services, claim: Claim, *, wanted: str) -> Place:
    """Return the place of the claim's node; one that does not exist has no lineage to read."""
    node = NodeId.parse(claim.node)
    if node is None:
        raise ScopeViolation(claim.node, [wanted])
    try:
        return await services.ledger.places.node(node)
    except (UnknownNode, UnknownCheckpoint):
        raise ScopeViolation(claim.node, [wanted]) from None
