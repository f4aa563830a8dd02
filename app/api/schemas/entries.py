"""Entries, and searches for them."""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field

from app.api.schemas.base import Answer, Cursor, Instant, Json, Request
from app.lineage.entry import Draft, Entry
from app.lineage.filters import MetadataFilter
from app.memory.search_entries import Found, SearchResult, Wanted

MAX_BATCH = 1_000
MAX_HITS = 100


class EntryIn(Request):
    """A memory text with metadata."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": "Halving the learning rate cured the divergence; loss 0.31.",
                    "metadata": {"type": "result_summary", "step": 3},
                }
            ]
        }
    )

    text: Annotated[str, Field(description="At most 32 KiB of UTF-8, not blank.")]
    metadata: Annotated[
        dict[str, Any],
        Field(default_factory=dict, description="Any JSON object, at most 16 KiB and 16 deep."),
    ]

    def draft(self) -> Draft:
        """Return it as the rules know it."""
        return Draft(self.text, self.metadata)


class BatchIn(Request):
    """Entries that are stored all, in order, or not at all."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "entries": [
                        {"text": "Warm-up of 500 steps is enough.", "metadata": {"type": "log"}},
                        {"text": "Batch 64 fits into memory.", "metadata": {"type": "log"}},
                    ]
                }
            ]
        }
    )

    entries: Annotated[list[EntryIn], Field(min_length=1, max_length=MAX_BATCH)]


class EntryOut(Answer):
    """An accepted entry; its text never changes."""

    id: str
    node: Annotated[str | None, Field(description="The node's id; null for a step of no node.")]
    text: str
    metadata: Json
    created_at: Instant
    sha256: Annotated[str, Field(description="Of the text's UTF-8 bytes, in hex.")]
    indexed: Annotated[bool, Field(description="Whether searches find it.")]

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """Show an entry."""
        return cls(
            id=entry.id,
            node=entry.node_id,
            text=entry.text,
            metadata=dict(entry.metadata),
            created_at=entry.created_at,
            sha256=entry.sha256.hex(),
            indexed=entry.indexed,
        )


class BatchOut(Answer):
    """The entries of a batch, in its order."""

    items: list[EntryOut]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """Show a stored batch."""
        return cls(items=[EntryOut.of(entry) for entry in entries])


class EntryPage(Answer):
    """A page of entries."""

    items: list[EntryOut]
    next_cursor: Cursor

    @classmethod
    def of(cls, entries: Sequence[Entry], next_cursor: str | None) -> Self:
        """Show a page."""
        return cls(items=[EntryOut.of(entry) for entry in entries], next_cursor=next_cursor)


class Cleared(Answer):
    """How many entries were removed."""

    removed: int


class TraceSearchIn(Request):
    """A search of the trace."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "why did the loss diverge", "limit": 5}]}
    )

    query: Annotated[str, Field(description="At most 16 KiB, not blank.")]
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 5
    filter: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description="Top-level metadata keys with scalar values; all must match.",
        ),
    ]

    def wanted(self) -> Wanted:
        """Return it as the use case knows it; InvalidInput for a filter that is no scalar."""
        return Wanted(self.query, self.limit, matching=MetadataFilter.from_values(self.filter))


class SearchIn(Request):
    """A search of a node's lineage."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "which learning rate works", "limit": 5, "include_self": True}]
        }
    )

    query: Annotated[
        str | None,
        Field(description="At most 16 KiB; without it, the node's eval_summary is the query."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 5
    include_self: Annotated[bool, Field(description="Search the node's own entries too.")] = False
    ancestor_ids: Annotated[
        list[str] | None, Field(description="Only these of the lineage, by id or name.")
    ] = None
    filter: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description="Top-level metadata keys with scalar values; all must match.",
        ),
    ]

    def wanted(self) -> Wanted:
        """Return it as the use case knows it; InvalidInput for a filter that is no scalar."""
        return Wanted(
            self.query,
            self.limit,
            include_self=self.include_self,
            ancestors=self.ancestor_ids,
            matching=MetadataFilter.from_values(self.filter),
        )


class HitOut(Answer):
    """An entry that a search found."""

    entry_id: str
    node: Annotated[str | None, Field(description="The node's id; null for a step of no node.")]
    text: str
    metadata: Json
    created_at: Instant
    rank: Annotated[int, Field(description="1 is the best.")]
    score: Annotated[
        float | None, Field(description="Cosine similarity, floored at 0; null where not known.")
    ]

    @classmethod
    def of(cls, found: Found) -> Self:
        """Show a hit."""
        entry = found.entry
        return cls(
            entry_id=entry.id,
            node=entry.node_id,
            text=entry.text,
            metadata=dict(entry.metadata),
            created_at=entry.created_at,
            rank=found.rank,
            score=found.score,
        )


class SearchOut(Answer):
    """What a search found, and where it looked."""

    results: list[HitOut]
    scope: Annotated[list[str], Field(description="The ids of the nodes searched, root first.")]
    pending: Annotated[
        int, Field(description="Entries in scope that are accepted but not searchable yet.")
    ]

    @classmethod
    def of(cls, result: SearchResult) -> Self:
        """Show a result."""
        return cls(
            results=[HitOut.of(found) for found in result.found],
            scope=result.scope.node_ids,
            pending=result.pending,
        )
