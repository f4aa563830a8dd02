"""Checkpoints, nodes and trees."""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field

from app.api.schemas.base import Answer, Cursor, Instant, Json, Request
from app.lineage.checkpoint import Checkpoint, Counts, Refusal
from app.lineage.ids import NodeId
from app.lineage.mermaid import Branch
from app.memory.nodes import NodeView

Name = Annotated[str, Field(max_length=500)]
Metadata = Annotated[
    dict[str, Any],
    Field(default_factory=dict, description="Any JSON object, at most 16 KiB and 16 deep."),
]


class CheckpointIn(Request):
    """A checkpoint to make, or to find again."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": "exp1", "name": "Learning-rate study"}]}
    )

    id: Annotated[
        str | None, Field(description="1 to 63 of a-z, 0-9, '_', '-'; else made from `path`.")
    ] = None
    path: Annotated[
        str | None,
        Field(
            max_length=4096,
            description="Absolute. Hosts that share mount paths send an `id` of their own.",
        ),
    ] = None
    name: Name | None = None
    metadata: Metadata


class CheckpointOut(Answer):
    """A checkpoint."""

    id: str
    path: str | None
    name: str | None
    metadata: Json
    created_at: Instant
    model: Annotated[str | None, Field(description="The embedding model of its index.")]
    dimensions: int | None

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """Show a checkpoint."""
        return cls(**_checkpoint(checkpoint))


class RefusalOut(Answer):
    """An entry that the archive will not have, and why; it is tried again ever more rarely."""

    entry_id: str
    reason: str


class CheckpointDetail(CheckpointOut):
    """A checkpoint with its counts."""

    nodes: int
    entries: int
    pending: Annotated[int, Field(description="Entries that the archive still has to take.")]
    refused: Annotated[int, Field(description="Entries that the archive will not have.")]
    refusals: Annotated[
        list[RefusalOut], Field(description="The oldest of them, at most 20, with the reasons.")
    ]

    @classmethod
    def with_counts(
        cls, checkpoint: Checkpoint, counts: Counts, refusals: Sequence[Refusal] = ()
    ) -> Self:
        """Show a checkpoint and its counts."""
        return cls(
            **_checkpoint(checkpoint),
            nodes=counts.nodes,
            entries=counts.entries,
            pending=counts.pending,
            refused=counts.refused,
            refusals=[RefusalOut(entry_id=item.entry_id, reason=item.reason) for item in refusals],
        )


class CheckpointPage(Answer):
    """A page of checkpoints."""

    items: list[CheckpointOut]
    next_cursor: Cursor


class NodeIn(Request):
    """A node to make, or to find again."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "root", "eval_summary": "Find a learning rate that converges."}]
        }
    )

    name: Annotated[str, Field(description="Unique in its checkpoint.")]
    parent: Annotated[
        str | None, Field(min_length=1, description="A node's id or name; none makes a root.")
    ] = None
    eval_summary: Annotated[
        str | None, Field(description="The node's direction in one sentence.")
    ] = None
    metadata: Metadata


class NodePatch(Request):
    """What to change; a field left out stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"eval_summary": "Try smaller learning rates."}]}
    )

    eval_summary: str | None = None
    metadata: Metadata


class NodeOut(Answer):
    """A node in its tree."""

    id: str
    checkpoint: str
    name: str
    parent: str | None
    lineage: Annotated[list[str], Field(description="The ids of its ancestors, root first.")]
    depth: int
    eval_summary: str | None
    metadata: Json
    created_at: Instant
    sealed: bool
    sealed_at: Instant | None
    entry_count: int
    digest: Annotated[
        str, Field(description="SHA-256 over its entries' raw SHA-256 digests in order, in hex.")
    ]

    @classmethod
    def of(cls, view: NodeView) -> Self:
        """Show a node."""
        node = view.node
        return cls(
            id=str(node.id),
            checkpoint=node.id.checkpoint,
            name=node.id.name,
            parent=_global(node.id, node.parent),
            lineage=[str(NodeId(node.id.checkpoint, name)) for name in view.lineage],
            depth=node.depth,
            eval_summary=node.eval_summary,
            metadata=dict(node.metadata),
            created_at=node.created_at,
            sealed=node.sealed_at is not None,
            sealed_at=node.sealed_at,
            entry_count=view.entry_count,
            digest=view.digest,
        )


class NodePage(Answer):
    """A page of nodes."""

    items: list[NodeOut]
    next_cursor: Cursor


class BranchOut(Answer):
    """A node in the whole tree."""

    id: str
    name: str
    parent: str | None
    depth: int
    eval_summary: str | None
    sealed: bool
    entry_count: int
    children: list[str]

    @classmethod
    def of(cls, branch: Branch) -> Self:
        """Show a node in its tree."""
        node = branch.node
        return cls(
            id=str(node.id),
            name=node.id.name,
            parent=_global(node.id, node.parent),
            depth=node.depth,
            eval_summary=node.eval_summary,
            sealed=node.sealed_at is not None,
            entry_count=branch.entry_count,
            children=[str(NodeId(node.id.checkpoint, name)) for name in branch.children],
        )


class TreeOut(Answer):
    """A whole tree: parents before children, branch after branch.

    It is flat, since a chain of nodes may be deeper than JSON readers can nest.
    """

    checkpoint: str
    nodes: list[BranchOut]

    @classmethod
    def of(cls, checkpoint: str, branches: Sequence[Branch]) -> Self:
        """Show a tree."""
        return cls(checkpoint=checkpoint, nodes=[BranchOut.of(branch) for branch in branches])


class TokenOut(Answer):
    """A node's new token. It is shown once and kept as a hash."""

    token: str
    node: str


def _checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "id": checkpoint.id,
        "path": checkpoint.path,
        "name": checkpoint.name,
        "metadata": dict(checkpoint.metadata),
        "created_at": checkpoint.created_at,
        "model": checkpoint.model,
        "dimensions": checkpoint.dimensions,
    }


def _global(node: NodeId, name: str | None) -> str | None:
    return None if name is None else str(NodeId(node.checkpoint, name))
