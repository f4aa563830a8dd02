"""Core memory and the experiment's context."""

from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from app.api.deps import CheckpointPath, Ctx, known_checkpoint
from app.api.documented import claims, problems
from app.api.requests import StrictRoute
from app.api.schemas.memory import CoreMemoryIn, CoreMemoryOut
from app.memory.core_memory import core_memory, set_core_memory

router = APIRouter(tags=["core memory"], route_class=StrictRoute)

READ = ("unknown-checkpoint", "unknown-path", "scope-violation", "stale-token")


@router.put(
    "/checkpoints/{checkpoint}/core-memory",
    operation_id="set_core_memory",
    summary="Set core memory",
    responses=problems(
        "unknown-checkpoint",
        "unknown-path",
        "scope-violation",
        "stale-token",
        "forbidden-to-token",
        "version-mismatch",
        "too-large",
        "unsupported-media-type",
    ),
)
async def put(
    checkpoint: CheckpointPath,
    body: CoreMemoryIn,
    ctx: Ctx,
    response: Response,
    if_match: Annotated[
        str | None, Header(description="The ETag seen; another one stored is 412.")
    ] = None,
) -> CoreMemoryOut:
    """Set blocks: one left out stays, `context` is replaced whole."""
    core = await set_core_memory(
        ctx.services,
        known_checkpoint(checkpoint),
        body.change(),
        if_match=if_match,
        claim=ctx.claim,
    )
    response.headers["ETag"] = core.etag
    return CoreMemoryOut.of(core)


@router.get(
    "/checkpoints/{checkpoint}/core-memory",
    operation_id="get_core_memory",
    summary="Show core memory",
    openapi_extra=claims(),
    responses=problems(*READ),
)
async def get(checkpoint: CheckpointPath, ctx: Ctx, response: Response) -> CoreMemoryOut:
    """Show the blocks that are always in context, empty until set."""
    core = await core_memory(ctx.services, known_checkpoint(checkpoint), claim=ctx.claim)
    response.headers["ETag"] = core.etag
    return CoreMemoryOut.of(core)


@router.get(
    "/checkpoints/{checkpoint}/context",
    operation_id="get_context",
    summary="Show the experiment's facts",
    openapi_extra=claims(),
    responses=problems(*READ),
)
async def context(checkpoint: CheckpointPath, ctx: Ctx) -> dict[str, Any]:
    """Show goal, primary metric, hardware and the like: `{}` until seeded."""
    core = await core_memory(ctx.services, known_checkpoint(checkpoint), claim=ctx.claim)
    return dict(core.context)
