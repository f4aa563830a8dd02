"""Who may do what: the claim, and the guards of writes and reads."""

from dataclasses import dataclass
from datetime import datetime

from app.lineage.entry import Metadata
from app.lineage.errors import (
    CowViolation,
    CurrentNodeRequired,
    NodeSealed,
    ScopeViolation,
    StaleToken,
)
from app.lineage.ids import NodeId
from app.lineage.lineage import Lineage


@dataclass(frozen=True, slots=True)
class Claim:
    """The node that a request says it executes, as sent; `epoch` is set by a node token only."""

    node: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A place in the tree. `token_epoch` counts the tokens given out for it."""

    id: NodeId
    parent: str | None
    depth: int
    eval_summary: str | None
    metadata: Metadata
    created_at: datetime
    sealed_at: datetime | None
    token_epoch: int


def check_writer(node: Node, claim: Claim | None) -> None:
    """Refuse a write by anyone but the node's current executor (copy-on-write)."""
    if claim is None:
        raise CurrentNodeRequired(str(node.id))
    if claim.node != str(node.id):
        raise CowViolation(str(node.id), claim.node)
    check_fresh(node, claim)


def check_fresh(node: Node, claim: Claim) -> None:
    """Refuse a token that a newer one has overtaken (fencing)."""
    if claim.epoch is not None and claim.epoch != node.token_epoch:
        raise StaleToken(str(node.id))


def check_open(node: Node) -> None:
    """Refuse a write to a sealed node."""
    if node.sealed_at is not None:
        raise NodeSealed(str(node.id))


def check_reader(reader: Lineage, wanted: NodeId) -> None:
    """Refuse a read of a node outside of the reader's own lineage."""
    if not reader.may_read(wanted):
        raise ScopeViolation(str(reader.node), [str(wanted)])
