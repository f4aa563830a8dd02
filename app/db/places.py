"""The cache of what the guards look at: a node's row, its lineage and its checkpoint's row.

A parent never changes, so a lineage is kept for as long as its checkpoint lives. Where this process
is the only writer (SQLite), the rows are kept too, until a commit of ours changes them; elsewhere
they are read at each call.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from sqlalchemy import Connection

from app.db import checkpoints as checkpoint_rows
from app.db import nodes as node_rows
from app.db import tokens as token_rows
from app.db.blocks import Reader
from app.db.events import CheckpointChanged, NodeChanged
from app.db.tokens import HeldToken
from app.lineage.checkpoint import Checkpoint
from app.lineage.errors import UnknownNode
from app.lineage.guard import Node
from app.lineage.ids import NodeId
from app.lineage.lineage import Lineage

# A place takes about 1 KB and 60 bytes an ancestor.
MAX_PLACES = 20_000

T = TypeVar("T", bound="Place | Checkpoint | HeldToken | None")


@dataclass(frozen=True, slots=True)
class Place:
    """A node as the guards see it, at one instant."""

    checkpoint: Checkpoint
    node: Node
    lineage: Lineage


Key: TypeAlias = NodeId | str | bytes


class Places:
    """Places, checkpoints and tokens by id."""

    def __init__(self, read: Reader, *, sole_writer: bool) -> None:
        self._read = read
        self._sole_writer = sole_writer
        self._kept: OrderedDict[Key, Place | Checkpoint | HeldToken] = OrderedDict()
        # Counts what was voided, so that a row read before is not kept after.
        self._voids = 0

    async def node(self, node: NodeId) -> Place:
        """Return a node's place; UnknownNode, or UnknownCheckpoint, where there is none."""
        return await self._get(node, lambda connection: _place(connection, node))

    async def checkpoint(self, checkpoint: str) -> Checkpoint:
        """Return a checkpoint; UnknownCheckpoint where there is none."""
        return await self._get(
            checkpoint, lambda connection: checkpoint_rows.get(connection, checkpoint)
        )

    async def token(self, token_hash: bytes) -> HeldToken | None:
        """Return what a token stands for, None where it is not known."""
        return await self._get(
            token_hash, lambda connection: token_rows.find(connection, token_hash)
        )

    def apply(self, event: NodeChanged | CheckpointChanged) -> None:
        """Forget what a commit changed."""
        self._voids += 1
        if isinstance(event, NodeChanged):
            self._kept.pop(event.node, None)
            return
        stale = [key for key, kept in self._kept.items() if _belongs(kept, event.checkpoint)]
        for key in stale:
            del self._kept[key]

    async def _get(self, key: Key, query: Callable[[Connection], T]) -> T:
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept  # type: ignore[return-value]  # a key is only ever kept with its own kind
        voids = self._voids
        found = await self._read(query)
        if self._sole_writer and found is not None and voids == self._voids:
            self._kept[key] = found
            if len(self._kept) > MAX_PLACES:
                self._kept.popitem(last=False)
        return found


def _place(connection: Connection, node: NodeId) -> Place:
    checkpoint = checkpoint_rows.find(connection, node.checkpoint)
    if checkpoint is None:  # a replica may make it anew before the node is looked for
        raise UnknownNode(str(node))
    row = node_rows.get(connection, node)
    return Place(checkpoint, row, node_rows.lineage(connection, node))


def _belongs(kept: Place | Checkpoint | HeldToken, checkpoint: str) -> bool:
    match kept:
        case Place():
            return kept.node.id.checkpoint == checkpoint
        case Checkpoint():
            return kept.id == checkpoint
        case HeldToken():
            return kept.node.checkpoint == checkpoint
