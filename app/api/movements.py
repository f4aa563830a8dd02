"""Movements between the layers: core memory, the archive of notes, daily notes."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.api.deps import CheckpointPath, Context, Ctx, known_checkpoint
from app.api.documented import problems
from app.api.once import no_idempotency_key
from app.api.requests import StrictRoute
from app.api.schemas.movements import (
    ConsolidateIn,
    DemoteIn,
    HeartbeatIn,
    MovementOut,
    PromoteIn,
    TrimIn,
)
from app.layers.core import Section
from app.memory import movements
from app.memory.moving import Movement

router = APIRouter(
    tags=["movements"], route_class=StrictRoute, dependencies=[Depends(no_idempotency_key)]
)

MOVE = (
    "unknown-checkpoint",
    "unknown-path",
    "scope-violation",
    "forbidden-to-token",
    "too-large",
    "unsupported-media-type",
)
# What is meant by a request without a body.
OFTEN_FOUND, LAST_DAYS = PromoteIn(), ConsolidateIn()
CONFIGURED_LIMIT, USUAL_HEARTBEAT = TrimIn(), HeartbeatIn()
DryRun = Annotated[bool, Query(description="Only tell what would change.")]


@router.post(
    "/checkpoints/{checkpoint}/demote",
    operation_id="demote_item",
    summary="Move an item of core memory to the archive",
    responses=problems(*MOVE, "unknown-item"),
)
async def demote(
    checkpoint: CheckpointPath, body: DemoteIn, ctx: Ctx, *, dry_run: DryRun = False
) -> MovementOut:
    """Let a note say what the item said, and leave `See archival: topic/name` in its place."""
    known = known_checkpoint(checkpoint)
    done = await movements.demote(
        ctx.services, known, body.demotion(), dry_run=dry_run, claim=ctx.claim
    )
    return _shown(ctx, done)


@router.post(
    "/checkpoints/{checkpoint}/promote",
    operation_id="promote_note",
    summary="Copy a note's key facts to core memory",
    responses=problems(*MOVE, "unknown-note", "credential-in-core"),
)
async def promote(
    checkpoint: CheckpointPath, ctx: Ctx, *, body: PromoteIn = OFTEN_FOUND, dry_run: DryRun = False
) -> MovementOut:
    """Copy the summary of a note, or of every note that was found three times in seven days."""
    done = await movements.promote(
        ctx.services,
        known_checkpoint(checkpoint),
        body.note,
        Section(body.section),
        dry_run=dry_run,
        claim=ctx.claim,
    )
    return _shown(ctx, done)


@router.post(
    "/checkpoints/{checkpoint}/consolidate",
    operation_id="consolidate_days",
    summary="Copy what daily notes say into notes",
    responses=problems(*MOVE),
)
async def consolidate(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    *,
    body: ConsolidateIn = LAST_DAYS,
    dry_run: DryRun = False,
) -> MovementOut:
    """Copy decisions, lessons and new facts, by written rules; a second call adds nothing."""
    known = known_checkpoint(checkpoint)
    done = await movements.consolidate(
        ctx.services, known, days=body.days, dry_run=dry_run, claim=ctx.claim
    )
    return _shown(ctx, done)


@router.post(
    "/checkpoints/{checkpoint}/trim",
    operation_id="trim_core_memory",
    summary="Bring core memory within its limit",
    responses=problems(*MOVE),
)
async def trim(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    *,
    body: TrimIn = CONFIGURED_LIMIT,
    dry_run: DryRun = False,
) -> MovementOut:
    """Demote whole items, in a fixed order and never of Identity, until the limit is kept."""
    known = known_checkpoint(checkpoint)
    done = await movements.trim(
        ctx.services, known, max_words=body.max_words, dry_run=dry_run, claim=ctx.claim
    )
    return _shown(ctx, done, max_words=body.max_words)


@router.post(
    "/checkpoints/{checkpoint}/heartbeat",
    operation_id="heartbeat",
    summary="Keep the layers in order",
    responses=problems(*MOVE),
)
async def heartbeat(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    *,
    body: HeartbeatIn = USUAL_HEARTBEAT,
    dry_run: DryRun = False,
) -> MovementOut:
    """Consolidate, promote what was found often, trim, merge duplicates; one report of it all."""
    done = await movements.heartbeat(
        ctx.services,
        known_checkpoint(checkpoint),
        days=body.days,
        max_words=body.max_words,
        dry_run=dry_run,
        claim=ctx.claim,
    )
    return _shown(ctx, done, max_words=body.max_words)


def _shown(ctx: Context, done: Movement, *, max_words: int | None = None) -> MovementOut:
    return MovementOut.of(done, max_words=max_words or ctx.services.limits.core_max_words)
