"""The archive of notes: written, corrected, searched; the same for every node."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from app.api import cursors
from app.api.deps import CheckpointPath, Ctx, CursorQuery, Limit, NotePath, known_checkpoint
from app.api.documented import claims, problems
from app.api.once import Repeatable, answered, rendered
from app.api.requests import StrictRoute
from app.api.schemas.notes import (
    NoteCorrection,
    NoteIn,
    NoteOut,
    NotePage,
    NoteSearchIn,
    NoteSearchOut,
)
from app.memory.add_note import add_note
from app.memory.correct_note import correct_note
from app.memory.notes import (
    NoteFilter,
    list_notes,
    note_etag,
    search_notes,
    show_note,
)

router = APIRouter(tags=["notes"], route_class=StrictRoute)

READ = ("unknown-checkpoint", "unknown-path", "scope-violation", "stale-token")
WRITE = (
    "unknown-checkpoint",
    "unknown-path",
    "scope-violation",
    "forbidden-to-token",
    "duplicate-fact",
    "too-large",
    "unsupported-media-type",
)

# Its absence is a problem of its own (428), so it is not required here.
IfMatch = Annotated[
    str | None,
    Header(
        description="The ETag of the note that counts, as it was read, or `*`. Required.",
        examples=["*"],
    ),
]


@router.post(
    "/checkpoints/{checkpoint}/archival",
    status_code=201,
    operation_id="write_note",
    summary="Write a note",
    response_model=NoteOut,
    responses={
        200: {"model": NoteOut, "description": "It was there; the stored note, unchanged."},
        **problems(*WRITE, "idempotency-mismatch"),
    },
)
async def write(
    checkpoint: CheckpointPath, body: NoteIn, ctx: Ctx, repeatable: Repeatable
) -> Response:
    """Store a note; where another one of the topic has its name, it gets a number behind it."""
    stored = await add_note(
        ctx.services,
        known_checkpoint(checkpoint),
        body.draft(),
        claim=ctx.claim,
        once=repeatable(_written),
    )
    response = answered(stored, _written)
    # Of a repeated request the body alone is kept.
    response.headers["ETag"] = note_etag(json.loads(bytes(response.body))["id"])
    return response


@router.get(
    "/checkpoints/{checkpoint}/archival",
    operation_id="list_notes",
    summary="List notes",
    openapi_extra=claims(),
    responses=problems(*READ, "invalid-cursor"),
)
async def list_all(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    *,
    topic: Annotated[str | None, Query(description="Only notes of this topic.")] = None,
    name: Annotated[str | None, Query(description="Only notes of this name.")] = None,
    limit: Limit = 100,
    cursor: CursorQuery = None,
) -> NotePage:
    """List the notes that count, oldest first: those that were superseded are left out."""
    matching = NoteFilter.of_query(topic, name)
    listing = f"archival {known_checkpoint(checkpoint)} {[topic, name]}"
    after = cursors.decode(cursor, listing=listing, like=[0, 0])
    page = await list_notes(
        ctx.services,
        checkpoint,
        matching=matching,
        limit=limit,
        after=after and tuple(after),
        claim=ctx.claim,
    )
    return NotePage.of(page.notes, cursors.encode(page.next_position, listing=listing))


@router.get(
    "/checkpoints/{checkpoint}/archival/{note}",
    operation_id="get_note",
    summary="Show a note",
    openapi_extra=claims(),
    responses=problems(*READ, "unknown-note"),
)
async def get(checkpoint: CheckpointPath, note: NotePath, ctx: Ctx, response: Response) -> NoteOut:
    """Show a note, a superseded one too; its ETag is of itself alone."""
    stored = await show_note(ctx.services, known_checkpoint(checkpoint), note, claim=ctx.claim)
    response.headers["ETag"] = stored.etag
    return NoteOut.of(stored)


@router.put(
    "/checkpoints/{checkpoint}/archival/{note}",
    operation_id="correct_note",
    summary="Correct a note",
    responses=problems(
        *WRITE,
        "unknown-note",
        "version-mismatch",
        "precondition-required",
        "credential-in-core",
    ),
)
async def correct(
    checkpoint: CheckpointPath,
    note: NotePath,
    body: NoteCorrection,
    ctx: Ctx,
    response: Response,
    *,
    if_match: IfMatch = None,
) -> NoteOut:
    """Store a note in the place of this one, which is kept, readable by its id, and not found.

    Where another note has taken this one's place, If-Match is to be that one's ETag: 412 tells it.
    Core memory's references follow to another topic or name.
    """
    stored = await correct_note(
        ctx.services,
        known_checkpoint(checkpoint),
        note,
        body.draft(),
        if_match=if_match,
        claim=ctx.claim,
    )
    response.headers["ETag"] = stored.etag
    return NoteOut.of(stored)


@router.post(
    "/checkpoints/{checkpoint}/archival/search",
    operation_id="search_notes",
    summary="Search the notes",
    openapi_extra=claims(),
    responses=problems(
        *READ, "model-changed", "archive-unavailable", "too-large", "unsupported-media-type"
    ),
)
async def search(checkpoint: CheckpointPath, body: NoteSearchIn, ctx: Ctx) -> NoteSearchOut:
    """Find the best of the notes that count."""
    found = await search_notes(
        ctx.services,
        known_checkpoint(checkpoint),
        body.query,
        limit=body.limit,
        matching=NoteFilter.of_query(body.topic, None),
        claim=ctx.claim,
    )
    return NoteSearchOut.of(found)


def _written(stored: Any) -> tuple[int, str]:
    return rendered(NoteOut.of(stored), status=201 if stored.made else 200)
