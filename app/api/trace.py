"""The flat ReAct trace of a checkpoint."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.api import cursors
from app.api.deps import CheckpointPath, Ctx, CursorQuery, Limit, known_checkpoint
from app.api.documented import claims, problems
from app.api.once import Repeatable, answered, rendered
from app.api.requests import StrictRoute
from app.api.schemas.entries import EntryIn, EntryOut, EntryPage, SearchOut, TraceSearchIn
from app.memory.search_entries import search_trace
from app.memory.trace import trace_steps
from app.memory.write_entries import write_trace_step

router = APIRouter(tags=["trace"], route_class=StrictRoute)

TRACE = ("unknown-checkpoint", "unknown-path", "scope-violation", "stale-token")


@router.post(
    "/checkpoints/{checkpoint}/trace",
    status_code=201,
    operation_id="write_trace_step",
    summary="Write a trace step",
    response_model=EntryOut,
    openapi_extra=claims(),
    responses=problems(
        *TRACE, "node-sealed", "too-large", "idempotency-mismatch", "unsupported-media-type"
    ),
)
async def write(
    checkpoint: CheckpointPath, body: EntryIn, ctx: Ctx, repeatable: Repeatable
) -> Response:
    """Store a step; its node is the claim's, or none."""
    stored = await write_trace_step(
        ctx.services,
        known_checkpoint(checkpoint),
        body.draft(),
        claim=ctx.claim,
        once=repeatable(_written),
    )
    return answered(stored, _written)


@router.get(
    "/checkpoints/{checkpoint}/trace",
    operation_id="list_trace",
    summary="List the trace",
    openapi_extra=claims(),
    responses=problems(*TRACE, "invalid-cursor"),
)
async def steps(
    checkpoint: CheckpointPath, ctx: Ctx, limit: Limit = 100, cursor: CursorQuery = None
) -> EntryPage:
    """List steps, oldest first; with a claim, those of its lineage and of no node."""
    listing = f"trace {known_checkpoint(checkpoint)} {ctx.claim and ctx.claim.node}"
    after = cursors.decode(cursor, listing=listing, like=[0, 0])
    page = await trace_steps(
        ctx.services, checkpoint, limit=limit, after=after and tuple(after), claim=ctx.claim
    )
    return EntryPage.of(page.entries, cursors.encode(page.next_position, listing=listing))


@router.post(
    "/checkpoints/{checkpoint}/trace/search",
    operation_id="search_trace",
    summary="Search the trace",
    openapi_extra=claims(),
    responses=problems(
        *TRACE, "model-changed", "archive-unavailable", "too-large", "unsupported-media-type"
    ),
)
async def search(checkpoint: CheckpointPath, body: TraceSearchIn, ctx: Ctx) -> SearchOut:
    """Find the best steps; with a claim, among those of its lineage and of no node."""
    result = await search_trace(
        ctx.services, known_checkpoint(checkpoint), body.wanted(), claim=ctx.claim
    )
    return SearchOut.of(result)


def _written(stored: Any) -> tuple[int, str]:
    entry = stored[0] if isinstance(stored, tuple) else stored
    return rendered(EntryOut.of(entry), status=201)
