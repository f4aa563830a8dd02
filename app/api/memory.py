"""A node's memory: write, list, inherit, clear, search."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.api import cursors
from app.api.deps import Ctx, CursorQuery, Limit, NodePath
from app.api.documented import claims, problems
from app.api.once import Repeatable, answered, rendered
from app.api.requests import StrictRoute, metadata_filters
from app.api.schemas.entries import (
    MAX_HITS,
    BatchIn,
    BatchOut,
    Cleared,
    EntryIn,
    EntryOut,
    EntryPage,
    SearchIn,
    SearchOut,
)
from app.api.schemas.memory import CoreMemoryOut, WorkingContextOut
from app.lineage.filters import MetadataFilter
from app.lineage.ids import NodeId
from app.memory.clear_entries import clear_entries
from app.memory.read_entries import InheritedPosition, inherited_entries, own_entries
from app.memory.search_entries import Wanted, search_lineage
from app.memory.working_context import working_context
from app.memory.write_entries import write_entries

router = APIRouter(tags=["node memory"], route_class=StrictRoute)

NODE = ("unknown-node", "unknown-path", "stale-token")
WRITE = (
    *NODE,
    "cow-violation",
    "current-node-required",
    "node-sealed",
    "too-large",
    "idempotency-mismatch",
    "unsupported-media-type",
)
READ = (*NODE, "scope-violation")
SEARCH = (*READ, "model-changed", "archive-unavailable", "too-large")
FILTERED = {
    "x-metadata-filters": True,
    "description": "`metadata.<key>=value` in the query string keeps the entries whose value is "
    "that string, or a scalar whose compact JSON it is; dots belong to the key.",
}

Hits = Annotated[int, Query(ge=1, le=MAX_HITS, description="How many at most.")]


@router.post(
    "/nodes/{node}/memory",
    status_code=201,
    operation_id="write_entry",
    summary="Write an entry",
    response_model=EntryOut,
    openapi_extra=claims("exp1.root"),
    responses=problems(*WRITE),
)
async def write(node: NodePath, body: EntryIn, ctx: Ctx, repeatable: Repeatable) -> Response:
    """Store an entry on the node that the request executes; it is durable when this answers."""
    stored = await write_entries(
        ctx.services,
        NodeId.from_path(node),
        [body.draft()],
        claim=ctx.claim,
        once=repeatable(_written),
    )
    return answered(stored, _written)


@router.post(
    "/nodes/{node}/memory/batch",
    status_code=201,
    operation_id="write_batch",
    summary="Write several entries",
    response_model=BatchOut,
    openapi_extra=claims("exp1.root"),
    responses=problems(*WRITE),
)
async def write_batch(node: NodePath, body: BatchIn, ctx: Ctx, repeatable: Repeatable) -> Response:
    """Store 1 to 1,000 entries, all or none, in their order."""
    stored = await write_entries(
        ctx.services,
        NodeId.from_path(node),
        [entry.draft() for entry in body.entries],
        claim=ctx.claim,
        once=repeatable(_batch_written),
    )
    return answered(stored, _batch_written)


@router.get(
    "/nodes/{node}/memory",
    operation_id="list_entries",
    summary="List a node's own entries",
    openapi_extra=claims(),
    responses=problems(*READ, "invalid-cursor"),
)
async def own(
    node: NodePath, ctx: Ctx, limit: Limit = 100, cursor: CursorQuery = None
) -> EntryPage:
    """List what the node itself wrote, oldest first."""
    listing = f"memory {node}"
    after = cursors.decode(cursor, listing=listing, like=[0, 0])
    page = await own_entries(
        ctx.services,
        NodeId.from_path(node),
        limit=limit,
        after=after and tuple(after),
        claim=ctx.claim,
    )
    return EntryPage.of(page.entries, cursors.encode(page.next_position, listing=listing))


@router.get(
    "/nodes/{node}/memory/inherited",
    operation_id="list_inherited",
    summary="List the lineage's entries",
    openapi_extra={**claims(), **FILTERED},
    responses=problems(*READ, "invalid-cursor"),
)
async def inherited(
    node: NodePath, request: Request, ctx: Ctx, limit: Limit = 100, cursor: CursorQuery = None
) -> EntryPage:
    """List what the node's ancestors wrote: root first, then oldest first."""
    filters = metadata_filters(request)
    listing = f"inherited {node} {sorted(filters)}"
    page = await inherited_entries(
        ctx.services,
        NodeId.from_path(node),
        limit=limit,
        after=_position(cursors.decode(cursor, listing=listing, like=[0, [0, 0]])),
        matching=MetadataFilter.from_texts(filters),
        claim=ctx.claim,
    )
    return EntryPage.of(page.entries, _inherited_cursor(page.next_position, listing))


@router.delete(
    "/nodes/{node}/memory",
    operation_id="clear_entries",
    summary="Clear a node's own entries",
    openapi_extra=claims("exp1.root"),
    responses=problems(*NODE, "cow-violation", "current-node-required", "node-sealed"),
)
async def clear(node: NodePath, ctx: Ctx) -> Cleared:
    """Delete what the node itself wrote. For debugging; the rules of a write hold."""
    removed = await clear_entries(ctx.services, NodeId.from_path(node), claim=ctx.claim)
    return Cleared(removed=removed)


@router.post(
    "/nodes/{node}/memory/search",
    operation_id="search_lineage",
    summary="Search a node's lineage",
    openapi_extra=claims(),
    responses=problems(*SEARCH, "unsupported-media-type"),
)
async def search(node: NodePath, body: SearchIn, ctx: Ctx) -> SearchOut:
    """Find the best entries of the ancestors: exactly min(limit, those indexed and matching)."""
    result = await search_lineage(
        ctx.services, NodeId.from_path(node), body.wanted(), claim=ctx.claim
    )
    return SearchOut.of(result)


@router.get(
    "/nodes/{node}/memory/search",
    operation_id="search_lineage_by_url",
    summary="Search a node's lineage by URL",
    openapi_extra={**claims(), **FILTERED},
    responses=problems(*SEARCH),
)
async def search_by_url(
    node: NodePath,
    request: Request,
    ctx: Ctx,
    *,
    query: str | None = None,
    limit: Hits = 5,
    include_self: bool = False,
    ancestor_ids: Annotated[list[str] | None, Query()] = None,
) -> SearchOut:
    """Do the same with a URL; see `FILTERED` for metadata."""
    wanted = Wanted(
        query,
        limit,
        include_self=include_self,
        ancestors=ancestor_ids,
        matching=MetadataFilter.from_texts(metadata_filters(request)),
    )
    return SearchOut.of(
        await search_lineage(ctx.services, NodeId.from_path(node), wanted, claim=ctx.claim)
    )


@router.get(
    "/nodes/{node}/working-context",
    operation_id="get_working_context",
    summary="Load what a worker starts with",
    openapi_extra=claims(),
    responses=problems(*SEARCH),
)
async def start(
    node: NodePath, ctx: Ctx, query: str | None = None, limit: Hits = 5
) -> WorkingContextOut:
    """Load context, core memory, the lineage's conclusions and the top hits in one call."""
    loaded = await working_context(
        ctx.services, NodeId.from_path(node), query=query, limit=limit, claim=ctx.claim
    )
    core = CoreMemoryOut.of(loaded.core, max_words=ctx.services.limits.core_max_words)
    listing = f"inherited {node} {[('type', 'result_summary')]}"
    return WorkingContextOut(
        node=node,
        context=core.context,
        core_memory=core,
        inherited=[EntryOut.of(entry) for entry in loaded.conclusions],
        next_cursor=_inherited_cursor(loaded.next_position, listing),
        search=None if loaded.search is None else SearchOut.of(loaded.search),
    )


def _written(entries: Any) -> tuple[int, str]:
    return rendered(EntryOut.of(entries[0]), status=201)


def _batch_written(entries: Any) -> tuple[int, str]:
    return rendered(BatchOut.of(entries), status=201)


def _position(decoded: Any) -> InheritedPosition | None:
    return None if decoded is None else InheritedPosition(decoded[0], tuple(decoded[1]))


def _inherited_cursor(position: InheritedPosition | None, listing: str) -> str | None:
    value = None if position is None else [position.depth, list(position.within)]
    return cursors.encode(value, listing=listing)
