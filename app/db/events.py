"""What a commit changed, told to the caches of this process."""

from dataclasses import dataclass
from typing import TypeAlias

from app.db.vectors import Vector
from app.lineage.entry import Collection, Entry
from app.lineage.ids import NodeId


@dataclass(frozen=True, slots=True)
class EntryStored:
    """An entry was added, or its place in the archive changed; `vector` is there once indexed."""

    entry: Entry
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node's row changed: sealed, patched, given a token."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class NodeCleared:
    """All of a node's own entries are gone."""

    node: NodeId
    collection: Collection


@dataclass(frozen=True, slots=True)
class CheckpointChanged:
    """Cached entries and rows of the checkpoint are void: a purge, a reindex, a new model."""

    checkpoint: str


@dataclass(frozen=True, slots=True)
class AccessesLost:
    """So many access records could not be written beside their writes."""

    count: int


Event: TypeAlias = EntryStored | NodeChanged | NodeCleared | CheckpointChanged | AccessesLost
