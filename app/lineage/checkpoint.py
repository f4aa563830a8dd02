"""A checkpoint: one experiment run."""

from dataclasses import dataclass
from datetime import datetime

from app.lineage.entry import Collection, Metadata


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One experiment run, which owns a tree, a core memory and a trace.

    `incarnation` tells a purged and re-created one from its former self; `model` and `dimensions`
    are those of its vectors, None until the first is stored; `index_epoch` counts its reindexes.
    """

    id: str
    incarnation: str
    path: str | None
    name: str | None
    metadata: Metadata
    created_at: datetime
    model: str | None
    dimensions: int | None
    index_epoch: int

    def index(self, collection: Collection) -> "IndexKey":
        """Name the present index of one of its collections."""
        return IndexKey(self.id, self.incarnation, self.index_epoch, collection)


@dataclass(frozen=True, slots=True)
class IndexKey:
    """One index: of a collection, of a checkpoint's incarnation, of one of its reindexes."""

    checkpoint: str
    incarnation: str
    index_epoch: int
    collection: Collection


@dataclass(frozen=True, slots=True)
class Refusal:
    """An entry that the archive will not have, and why."""

    entry_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How many nodes and entries a checkpoint has, and how its entries stand in the archive."""

    nodes: int
    entries: int
    pending: int
    refused: int
