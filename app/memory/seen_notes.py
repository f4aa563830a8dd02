"""What is read before a note is written: the notes that count, and core memory."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.db import notes as rows
from app.db.transaction import ReadTransaction
from app.layers.note import Topic
from app.lineage.core_memory import CoreMemory
from app.memory.core_memory import read_core
from app.memory.notes import topic_of


@dataclass(frozen=True, slots=True)
class SeenNotes:
    """The notes that count and core memory at one instant, before the write."""

    checkpoint: str
    version: rows.Version
    listed: Sequence[rows.Listed]
    core: CoreMemory

    @classmethod
    def read(cls, connection: ReadTransaction, checkpoint: str) -> "SeenNotes":
        """Read them, of a checkpoint that exists."""
        # The version first: what comes in between is seen again, and not missed.
        version = rows.version(connection, checkpoint)
        listed = rows.listed(connection, checkpoint)
        return cls(checkpoint, version, listed, read_core(connection, checkpoint))

    def still(self, connection: ReadTransaction) -> Sequence[rows.Listed]:
        """Return the notes, read again where any has changed; the caller holds the lock."""
        if rows.version(connection, self.checkpoint) == self.version:
            return self.listed
        return rows.listed(connection, self.checkpoint)


def names_of(listed: Sequence[rows.Listed], topic: Topic) -> Collection[str]:
    """Return how the notes of a topic are called."""
    return {
        item.metadata["name"]
        for item in listed
        if isinstance(item.metadata.get("name"), str) and topic_of(item.metadata) is topic
    }
