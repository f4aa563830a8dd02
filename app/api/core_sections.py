"""The sections of core memory, each read and edited by itself."""

from typing import Annotated

from fastapi import APIRouter, Header, Path
from starlette.responses import Response

from app.api.deps import CheckpointPath, Ctx, known_checkpoint
from app.api.documented import claims, problems
from app.api.requests import StrictRoute
from app.api.schemas.sections import SectionEdit, SectionIn, SectionOut
from app.layers.core import Section
from app.lineage.errors import UnknownPath
from app.memory.core_sections import (
    SectionText,
    append_line,
    core_section,
    replace_line,
    set_section,
)

router = APIRouter(tags=["core memory"], route_class=StrictRoute)

READ = ("unknown-checkpoint", "unknown-path", "scope-violation", "stale-token")
EDIT = (
    "unknown-checkpoint",
    "unknown-path",
    "scope-violation",
    "forbidden-to-token",
    "precondition-required",
    "version-mismatch",
    "credential-in-core",
    "too-large",
    "unsupported-media-type",
)
SectionPath = Annotated[
    str,
    Path(
        alias="section",
        description=f"One of {', '.join(section.value for section in Section)}.",
        examples=["active-context"],
    ),
]
# Its absence is a problem of its own (428), so it is not required here.
IfMatch = Annotated[
    str | None,
    Header(description="The section's ETag as it was read, or `*`. Required.", examples=["*"]),
]


@router.get(
    "/checkpoints/{checkpoint}/core-memory/sections/{section}",
    operation_id="get_core_section",
    summary="Show a section of core memory",
    openapi_extra=claims(),
    responses=problems(*READ),
)
async def get(
    checkpoint: CheckpointPath, section: SectionPath, ctx: Ctx, response: Response
) -> SectionOut:
    """Show a section with its own version, which other sections' edits leave alone."""
    stored = await core_section(
        ctx.services, known_checkpoint(checkpoint), _known_section(section), claim=ctx.claim
    )
    return _shown(stored, response)


@router.put(
    "/checkpoints/{checkpoint}/core-memory/sections/{section}",
    operation_id="set_core_section",
    summary="Set a section of core memory",
    responses=problems(*EDIT),
)
async def put(
    checkpoint: CheckpointPath,
    section: SectionPath,
    body: SectionIn,
    ctx: Ctx,
    *,
    response: Response,
    if_match: IfMatch = None,
) -> SectionOut:
    """Replace a section's text, by whatever it says. No node may do so: its siblings read it."""
    stored = await set_section(
        ctx.services,
        known_checkpoint(checkpoint),
        _known_section(section),
        body.text,
        if_match=if_match,
        claim=ctx.claim,
    )
    return _shown(stored, response)


@router.patch(
    "/checkpoints/{checkpoint}/core-memory/sections/{section}",
    operation_id="edit_core_section",
    summary="Edit a line of a section of core memory",
    responses=problems(*EDIT, "line-mismatch", "duplicate-fact"),
)
async def patch(
    checkpoint: CheckpointPath,
    section: SectionPath,
    body: SectionEdit,
    ctx: Ctx,
    *,
    response: Response,
    if_match: IfMatch = None,
) -> SectionOut:
    """Append a line, or replace one; what core memory says already is not appended again.

    What a note says already is refused, with the note.
    """
    where = (ctx.services, known_checkpoint(checkpoint), _known_section(section))
    if (line := body.replacement) is not None:
        stored = await replace_line(*where, line, if_match=if_match, claim=ctx.claim)
    else:
        stored = await append_line(*where, body.append, if_match=if_match, claim=ctx.claim)
    return _shown(stored, response)


def _known_section(name: str) -> Section:
    try:
        return Section(name)
    except ValueError:
        raise UnknownPath("Core memory has no such section.") from None


def _shown(stored: SectionText, response: Response) -> SectionOut:
    response.headers["ETag"] = stored.etag
    return SectionOut.of(stored)
