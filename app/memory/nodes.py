"""Create, show, patch and seal nodes, and give out their tokens."""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.db import access_log, idempotency
from app.db import checkpoints as checkpoint_rows
from app.db import entries as entry_rows
from app.db import nodes as node_rows
from app.db import tokens as token_rows
from app.db.events import NodeChanged
from app.db.idempotency import Answer, Once
from app.db.instants import now_us
from app.db.transaction import ReadTransaction, Transaction
from app.lineage.access import Access, Operation
from app.lineage.entry import Metadata, node_digest
from app.lineage.errors import InvalidInput, ScopeViolation, UnknownNode
from app.lineage.guard import Claim, Node, check_open, check_reader, check_writer
from app.lineage.ids import NodeId, is_node_name, local_name
from app.lineage.json_rules import check_object, compact
from app.lineage.texts import MAX_QUERY_BYTES, check_text
from app.memory.checkpoints import Created
from app.memory.claims import REFUSALS, operator_only, readable_node, record_refusal
from app.memory.services import Services

TOKEN_PREFIX = "lnt_"  # noqa: S105  (what tells a token from a key)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node with its lineage (names, root first) and what it holds."""

    node: Node
    lineage: tuple[str, ...]
    entry_count: int
    digest: str


@dataclass(frozen=True, slots=True)
class NodePage:
    """A page of a checkpoint's nodes with their lineages; `next_position` is None on the last."""

    nodes: Sequence[NodeView]
    next_position: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """What a PATCH sets; a name that is not in it stays."""

    values: dict[str, Any]


async def create_node(
    services: Services,
    checkpoint: str,
    *,
    name: str,
    parent: str | None,
    eval_summary: str | None,
    metadata: Metadata,
    claim: Claim | None,
    once: Once | None,
) -> Created | Answer:
    """Return the node of this name, made if it was not there.

    A claim makes nodes in its own checkpoint, and is shown a row that was there only if it may
    read it, or asked for the very same: else ScopeViolation. InvalidInput for a malformed name or a
    parent elsewhere, UnknownCheckpoint, UnknownNode for the parent, NodeConflict where it has
    another parent.
    """
    if not is_node_name(name, checkpoint=checkpoint):
        raise InvalidInput(
            "A node's name has 1 to 200 characters of A-Z, a-z, 0-9, '.', '_', '~' and '-', begins "
            "with a letter or digit, and not with its checkpoint's id and a dot.",
            place=("body", "name"),
        )
    _check_eval_summary(eval_summary)
    metadata_json = check_object(metadata, place=("body", "metadata"))
    node = NodeId(checkpoint, name)

    def work(tx: Transaction) -> Created | Answer:
        checkpoint_rows.lock(tx.connection, checkpoint)
        if once and (kept := idempotency.load(tx.connection, [once.scope])):
            return once.replay(kept[once.scope])
        if claim is not None:
            _check_checkpoint(checkpoint, claim)
        above = None if parent is None else _parent(tx.connection, checkpoint, parent)
        row, made = node_rows.create(
            tx.connection, node, parent=above, eval_summary=eval_summary, metadata=metadata_json
        )
        same = (row.eval_summary, compact(row.metadata)) == (eval_summary, metadata_json)
        if not made and not same and claim is not None:
            _check_visible(tx.connection, node, claim)
        created = Created(_view(tx.connection, row), made)
        if once:
            idempotency.keep(tx.connection, [once.row(checkpoint, created)])
        return created

    try:
        return await services.ledger.write(work)
    except REFUSALS as error:
        await record_refusal(services, error, Operation.READ_NODE, node, claim=claim)
        raise


async def show_node(services: Services, node: NodeId, *, claim: Claim | None) -> NodeView:
    """Return a node. UnknownNode, ScopeViolation, StaleToken."""
    await readable_node(services, node, claim=claim, operation=Operation.READ_NODE)
    return await services.ledger.read(
        lambda connection: _view(connection, node_rows.get(connection, node))
    )


async def list_nodes(
    services: Services, checkpoint: str, *, limit: int, after: int, claim: Claim | None
) -> NodePage:
    """Return a checkpoint's nodes, oldest first: the operator's view. UnknownCheckpoint."""
    await operator_only(services, checkpoint, claim=claim)

    def query(connection: ReadTransaction) -> NodePage:
        found = node_rows.page(connection, checkpoint, limit=limit + 1, after=after)
        page = found[:limit]
        more = page[-1][0] if len(found) > limit else None
        return NodePage([_view(connection, node) for _, node in page], more)

    return await services.ledger.read(query)


async def patch_node(
    services: Services, node: NodeId, change: Change, *, claim: Claim | None
) -> NodeView:
    """Set a node's direction or metadata. What check_writer and check_open raise, InvalidInput."""
    values = dict(change.values)
    if "metadata" in values:
        values["metadata"] = check_object(values["metadata"], place=("body", "metadata"))
    _check_eval_summary(values.get("eval_summary"))

    def work(tx: Transaction, row: Node) -> NodeView:
        check_writer(row, claim)
        check_open(row)
        if values:
            row = node_rows.change(tx.connection, node, **values)
        return _view(tx.connection, row)

    return await _write(services, node, work, Operation.PATCH, claim)


async def seal_node(
    services: Services, node: NodeId, *, claim: Claim | None, operator: bool
) -> NodeView:
    """Let the node accept no more writes; a sealed one stays as it is.

    `operator` seals without a claim. Else what check_writer raises.
    """

    def work(tx: Transaction, row: Node) -> NodeView:
        if claim is not None or not operator:
            check_writer(row, claim)
        if row.sealed_at is None:
            row = node_rows.change(tx.connection, node, sealed_us=now_us())
        return _view(tx.connection, row)

    return await _write(services, node, work, Operation.SEAL, claim)


async def give_token(services: Services, node: NodeId, *, claim: Claim | None) -> str:
    """Return a new token for the node's executor; it overtakes all before it.

    UnknownNode; CowViolation for the claim of another node.
    """
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)

    def work(tx: Transaction, row: Node) -> NodeView:
        if claim is not None:
            check_writer(row, claim)
        token_rows.add(tx.connection, row, token_hash(token))
        return _view(tx.connection, row)

    await _write(services, node, work, Operation.TOKEN, claim)
    return token


def token_hash(token: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).digest()


async def _write(
    services: Services,
    node: NodeId,
    work: Callable[[Transaction, Node], NodeView],
    operation: Operation,
    claim: Claim | None,
) -> NodeView:
    """Run a job on a locked node, with its record in the access log."""

    def locked(tx: Transaction) -> NodeView:
        checkpoint_rows.lock(tx.connection, node.checkpoint)
        view = work(tx, node_rows.get(tx.connection, node))
        tx.events.append(NodeChanged(node))
        reader = claim.node if claim else None
        access_log.record_with_write(tx, [Access(node.checkpoint, operation, reader, node)])
        return view

    try:
        return await services.ledger.write(locked)
    except REFUSALS as error:
        await record_refusal(services, error, operation, node, claim=claim)
        raise


def _check_checkpoint(checkpoint: str, claim: Claim) -> None:
    reader = NodeId.parse(claim.node)
    if reader is None or reader.checkpoint != checkpoint:
        raise ScopeViolation(claim.node, [checkpoint])


def _check_visible(connection: ReadTransaction, node: NodeId, claim: Claim) -> None:
    reader = NodeId.parse(claim.node)
    if reader is None or node_rows.find(connection, reader) is None:
        raise ScopeViolation(claim.node, [str(node)])
    check_reader(node_rows.lineage(connection, reader), node)


def _parent(connection: ReadTransaction, checkpoint: str, text: str) -> Node:
    """Read a parent as an id of this checkpoint, then as a name in it."""
    name = local_name(text, checkpoint=checkpoint)
    if (found := node_rows.find(connection, NodeId(checkpoint, name))) is not None:
        return found
    elsewhere = NodeId.parse(text)
    if (
        elsewhere
        and elsewhere.checkpoint != checkpoint
        and node_rows.find(connection, elsewhere) is not None
    ):
        raise InvalidInput("The parent is a node of another checkpoint.", place=("body", "parent"))
    raise UnknownNode(text)


def _view(connection: ReadTransaction, node: Node) -> NodeView:
    lineage = node_rows.lineage(connection, node.id)
    digests = entry_rows.digests(connection, lineage.own())
    return NodeView(node, lineage.ancestors, len(digests), node_digest(digests))


def _check_eval_summary(text: str | None) -> None:
    if text is not None:
        check_text(
            text, max_bytes=MAX_QUERY_BYTES, what="eval_summary", place=("body", "eval_summary")
        )
