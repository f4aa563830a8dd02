"""What restores, resumes and kept snapshots answer."""

from typing import Annotated, Literal, Self

from pydantic import Field

from app.api.schemas.base import Answer
from app.memory.snapshot.restoring import Restored
from app.memory.snapshot.resuming import Resumed


class CountsOut(Answer):
    """How many of each were stored."""

    nodes: int
    entries: int
    blocks: Annotated[int, Field(description="Blocks of core memory.")]


class RestoredOut(Answer):
    """What a restore did."""

    checkpoint: str
    restored: CountsOut
    skipped: Annotated[int, Field(description="Nodes, entries and blocks that were there.")]
    conflicts: Annotated[
        int,
        Field(
            description="Entries of an id that is there with other bytes; kept by `merge` alone."
        ),
    ]
    ignored: Annotated[int, Field(description="Lines of kinds that only another tool knows.")]

    @classmethod
    def of(cls, done: Restored) -> Self:
        """Show the counts of a restore."""
        stored = done.stored
        return cls(
            checkpoint=done.checkpoint,
            restored=CountsOut(nodes=stored.nodes, entries=stored.entries, blocks=stored.blocks),
            skipped=stored.skipped,
            conflicts=stored.conflicts,
            ignored=done.ignored,
        )


class ResumedOut(Answer):
    """What a resume did, and the counts where it restored."""

    did: Literal["restored", "reindexed", "nothing"]
    restored: RestoredOut | None

    @classmethod
    def of(cls, done: Resumed) -> Self:
        """Show what was done."""
        counts = None if done.restored is None else RestoredOut.of(done.restored)
        return cls(did=done.did.value, restored=counts)


class KeptOut(Answer):
    """Where the snapshot file is, on the service's machine."""

    path: str
