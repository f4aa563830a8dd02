"""Core memory as a whole, and the experiment's context."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from app.api.accepted import MARKDOWN, prefers_markdown
from app.api.deps import CheckpointPath, Context, Ctx, known_checkpoint
from app.api.documented import claims, problems
from app.api.requests import StrictRoute
from app.api.schemas.memory import CoreMemoryIn, CoreMemoryOut
from app.layers.core import render_core
from app.lineage.core_memory import CoreMemory
from app.memory.core_memory import core_memory, section_texts, set_core_memory

router = APIRouter(tags=["core memory"], route_class=StrictRoute)

READ = ("unknown-checkpoint", "unknown-path", "scope-violation", "stale-token")
MARKDOWN_TYPE = f"{MARKDOWN}; charset=utf-8"
FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Core memory, as JSON or, where Accept asks for it, as Markdown.",
        "content": {MARKDOWN: {"schema": {"type": "string"}}},
    }
}


@router.put(
    "/checkpoints/{checkpoint}/core-memory",
    operation_id="set_core_memory",
    summary="Set core memory",
    responses=problems(
        "unknown-checkpoint",
        "unknown-path",
        "scope-violation",
        "forbidden-to-token",
        "version-mismatch",
        "credential-in-core",
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
    """Set blocks: one left out stays, `context` is replaced whole. No node may do so."""
    core = await set_core_memory(
        ctx.services,
        known_checkpoint(checkpoint),
        body.change(),
        if_match=if_match,
        claim=ctx.claim,
    )
    response.headers["ETag"] = core.etag
    return _shown(ctx, core)


@router.get(
    "/checkpoints/{checkpoint}/core-memory",
    operation_id="get_core_memory",
    summary="Show core memory",
    openapi_extra=claims(),
    response_model=CoreMemoryOut,
    responses=FORMS | problems(*READ),
)
async def get(
    checkpoint: CheckpointPath, ctx: Ctx, request: Request, response: Response
) -> CoreMemoryOut | Response:
    """Show the blocks that are always in context, empty until set.

    With `Accept: text/markdown`, the four sections as one document.
    """
    core = await core_memory(ctx.services, known_checkpoint(checkpoint), claim=ctx.claim)
    if prefers_markdown(request.headers.getlist("accept")):
        headers = {"ETag": core.markdown_etag, "Vary": "Accept"}
        text = render_core(section_texts(core))
        return Response(text, headers=headers, media_type=MARKDOWN_TYPE)
    response.headers.update({"ETag": core.etag, "Vary": "Accept"})
    return _shown(ctx, core)


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


def _shown(ctx: Context, core: CoreMemory) -> CoreMemoryOut:
    return CoreMemoryOut.of(core, max_words=ctx.services.limits.core_max_words)
