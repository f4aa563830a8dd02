"""What happened: daily notes, the search of them and the trace, and the start of a session."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api import cursors
from app.api.deps import CheckpointPath, Ctx, CursorQuery, Limit, known_checkpoint
from app.api.documented import claims, problems
from app.api.once import Repeatable, answered, rendered
from app.api.requests import StrictRoute
from app.api.schemas.entries import MAX_HITS
from app.api.schemas.notes import (
    DailyNoteIn,
    DailyNoteOut,
    DailyNotePage,
    RecallOut,
    RecallSearchIn,
    SessionOut,
)
from app.memory.daily_notes import add_daily_note, daily_note_of, daily_notes
from app.memory.recall import search_recall
from app.memory.services import Services
from app.memory.session import start_session

router = APIRouter(tags=["recall"], route_class=StrictRoute)

READ = ("unknown-checkpoint", "unknown-path", "scope-violation", "stale-token")
SEARCH = (*READ, "model-changed", "archive-unavailable", "too-large")

Hits = Annotated[int, Query(ge=1, le=MAX_HITS, description="How many at most.")]


@router.post(
    "/checkpoints/{checkpoint}/notes",
    status_code=201,
    operation_id="write_daily_note",
    summary="Write a daily note",
    response_model=DailyNoteOut,
    responses=problems(
        "unknown-checkpoint",
        "unknown-path",
        "scope-violation",
        "forbidden-to-token",
        "too-large",
        "idempotency-mismatch",
        "unsupported-media-type",
    ),
)
async def write(
    checkpoint: CheckpointPath, body: DailyNoteIn, ctx: Ctx, repeatable: Repeatable
) -> Response:
    """Store a note of now, or of the day or the time given."""
    render = partial(_written, ctx.services)
    stored = await add_daily_note(
        ctx.services,
        known_checkpoint(checkpoint),
        body.draft(),
        claim=ctx.claim,
        once=repeatable(render),
    )
    return answered(stored, render)


@router.get(
    "/checkpoints/{checkpoint}/notes",
    operation_id="list_daily_notes",
    summary="List daily notes",
    openapi_extra=claims(),
    responses=problems(*READ, "invalid-cursor"),
)
async def list_all(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    *,
    date: Annotated[str | None, Query(description="Only notes of this day, YYYY-MM-DD.")] = None,
    limit: Limit = 100,
    cursor: CursorQuery = None,
) -> DailyNotePage:
    """List daily notes in the order in which they were written."""
    listing = f"notes {known_checkpoint(checkpoint)} {date}"
    after = cursors.decode(cursor, listing=listing, like=[0, 0])
    page = await daily_notes(
        ctx.services,
        checkpoint,
        date=date,
        limit=limit,
        after=after and tuple(after),
        claim=ctx.claim,
    )
    return DailyNotePage.of(page.notes, cursors.encode(page.next_position, listing=listing))


@router.post(
    "/checkpoints/{checkpoint}/recall/search",
    operation_id="search_recall",
    summary="Search what happened",
    openapi_extra=claims(),
    responses=problems(*SEARCH, "unsupported-media-type"),
)
async def search(checkpoint: CheckpointPath, body: RecallSearchIn, ctx: Ctx) -> RecallOut:
    """Find the best of the trace and the daily notes; with a claim, the steps that it may read."""
    recalled = await search_recall(
        ctx.services,
        known_checkpoint(checkpoint),
        body.query,
        limit=body.limit,
        claim=ctx.claim,
    )
    return RecallOut.of(recalled)


@router.get(
    "/checkpoints/{checkpoint}/session",
    operation_id="start_session",
    summary="Load what a session starts with",
    openapi_extra=claims(),
    responses=problems(*SEARCH),
)
async def session(
    checkpoint: CheckpointPath, ctx: Ctx, *, query: str | None = None, limit: Hits = 5
) -> SessionOut:
    """Load core memory, today's notes and, given a query, the notes that help most, in one call."""
    loaded = await start_session(
        ctx.services, known_checkpoint(checkpoint), query=query, limit=limit, claim=ctx.claim
    )
    return SessionOut.of(loaded, max_words=ctx.services.limits.core_max_words)


def _written(services: Services, stored: Any) -> tuple[int, str]:
    entry = stored[0] if isinstance(stored, tuple) else stored
    return rendered(DailyNoteOut.of(daily_note_of(services, entry)), status=201)
