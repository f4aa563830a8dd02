"""Node tokens, kept as hashes only."""

from dataclasses import dataclass
from hmac import compare_digest

from sqlalchemy import Connection, bindparam, insert, select

from app.db import nodes as node_rows
from app.db.instants import now_us
from app.db.tables import node_tokens
from app.lineage.guard import Claim, Node
from app.lineage.ids import NodeId

SELECT_TOKEN = select(node_tokens).where(node_tokens.c.token_hash == bindparam("token_hash"))


@dataclass(frozen=True, slots=True)
class HeldToken:
    """What a known token stands for."""

    node: NodeId
    epoch: int

    @property
    def claim(self) -> Claim:
        """The claim that the token fixes."""
        return Claim(str(self.node), self.epoch)


def find(connection: Connection, token_hash: bytes) -> HeldToken | None:
    """Return what a token stands for, overtaken ones included; None where it is not known."""
    row = connection.execute(SELECT_TOKEN, {"token_hash": token_hash}).mappings().one_or_none()
    if row is None or not compare_digest(row["token_hash"], token_hash):
        return None
    return HeldToken(NodeId(row["checkpoint_id"], row["node"]), row["epoch"])


def add(connection: Connection, node: Node, token_hash: bytes) -> None:
    """Store a token of the node, which overtakes all before it."""
    epoch = node.token_epoch + 1
    node_rows.change(connection, node.id, token_epoch=epoch)
    values = {
        "checkpoint_id": node.id.checkpoint,
        "token_hash": token_hash,
        "node": node.id.name,
        "epoch": epoch,
        "created_us": now_us(),
    }
    connection.execute(insert(node_tokens).values(values))
