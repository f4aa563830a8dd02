"""Checkpoints."""

from fastapi import APIRouter
from starlette.responses import Response

from app.api import cursors
from app.api.deps import CheckpointPath, Ctx, CursorQuery, Limit, known_checkpoint
from app.api.documented import problems
from app.api.once import Repeatable, answered, rendered
from app.api.requests import StrictRoute
from app.api.schemas.tree import CheckpointDetail, CheckpointIn, CheckpointOut, CheckpointPage
from app.memory.checkpoints import (
    Created,
    create_checkpoint,
    list_checkpoints,
    purge_checkpoint,
    show_checkpoint,
)

router = APIRouter(tags=["checkpoints"], route_class=StrictRoute)


@router.post(
    "/checkpoints",
    status_code=201,
    operation_id="create_checkpoint",
    summary="Create a checkpoint",
    response_model=CheckpointOut,
    responses={
        200: {"model": CheckpointOut, "description": "It was there; the stored row, unchanged."},
        **problems(
            "checkpoint-conflict",
            "forbidden-to-token",
            "idempotency-mismatch",
            "too-large",
            "unsupported-media-type",
        ),
    },
)
async def create(body: CheckpointIn, ctx: Ctx, repeatable: Repeatable) -> Response:
    """Make a checkpoint, or find it again by its id or path."""
    created = await create_checkpoint(
        ctx.services,
        given_id=body.id,
        path=body.path,
        name=body.name,
        metadata=body.metadata,
        once=repeatable(_created),
    )
    return answered(created, _created)


@router.get(
    "/checkpoints",
    operation_id="list_checkpoints",
    summary="List checkpoints",
    responses=problems("scope-violation", "forbidden-to-token", "invalid-cursor"),
)
async def list_all(ctx: Ctx, limit: Limit = 100, cursor: CursorQuery = None) -> CheckpointPage:
    """List checkpoints, oldest first."""
    after = cursors.decode(cursor, listing="checkpoints", like=[0, ""])
    page = await list_checkpoints(
        ctx.services, limit=limit, after=after and tuple(after), claim=ctx.claim
    )
    return CheckpointPage(
        items=[CheckpointOut.of(checkpoint) for checkpoint in page.checkpoints],
        next_cursor=cursors.encode(page.next_position, listing="checkpoints"),
    )


@router.get(
    "/checkpoints/{checkpoint}",
    operation_id="get_checkpoint",
    summary="Show a checkpoint",
    responses=problems(
        "scope-violation", "forbidden-to-token", "unknown-checkpoint", "unknown-path"
    ),
)
async def show(checkpoint: CheckpointPath, ctx: Ctx) -> CheckpointDetail:
    """Show a checkpoint with its counts; `pending` tells how far indexing is."""
    row, counts, refusals = await show_checkpoint(
        ctx.services, known_checkpoint(checkpoint), claim=ctx.claim
    )
    return CheckpointDetail.with_counts(row, counts, refusals)


@router.delete(
    "/checkpoints/{checkpoint}",
    status_code=204,
    operation_id="purge_checkpoint",
    summary="Purge a checkpoint",
    responses={
        202: {"description": "Gone from here; Letta's part is queued."},
        **problems("scope-violation", "forbidden-to-token", "unknown-checkpoint", "unknown-path"),
    },
)
async def purge(checkpoint: CheckpointPath, ctx: Ctx) -> Response:
    """Delete a checkpoint with its tree, entries, trace, core memory, tokens and access log."""
    gone = await purge_checkpoint(ctx.services, known_checkpoint(checkpoint), claim=ctx.claim)
    return Response(status_code=204 if gone else 202)


def _created(created: Created) -> tuple[int, str]:
    return rendered(CheckpointOut.of(created.row), status=201 if created.made else 200)
