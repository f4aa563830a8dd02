"""What operators do and look at: the access log, the index."""

from fastapi import APIRouter

from app.api import cursors
from app.api.deps import CheckpointPath, Ctx, CursorQuery, Limit, known_checkpoint
from app.api.documented import problems
from app.api.requests import StrictRoute
from app.api.schemas.memory import AccessOut, AccessPage, ReconciledOut
from app.api.schemas.tree import CheckpointDetail
from app.memory import reconcile as reconciling
from app.memory import reindex as indexing
from app.memory.access_log import access_records

router = APIRouter(tags=["operations"], route_class=StrictRoute)


@router.get(
    "/checkpoints/{checkpoint}/access-log",
    operation_id="list_accesses",
    summary="List who read and wrote what",
    responses=problems(
        "scope-violation",
        "forbidden-to-token",
        "unknown-checkpoint",
        "unknown-path",
        "invalid-cursor",
    ),
)
async def accesses(
    checkpoint: CheckpointPath, ctx: Ctx, limit: Limit = 100, cursor: CursorQuery = None
) -> AccessPage:
    """List every write, read and search, refused ones too, newest first."""
    listing = f"access-log {known_checkpoint(checkpoint)}"
    before = cursors.decode(cursor, listing=listing, like=[0, ""])
    page = await access_records(
        ctx.services, checkpoint, limit=limit, before=before and tuple(before), claim=ctx.claim
    )
    return AccessPage(
        items=[AccessOut.of(record) for record in page.records],
        next_cursor=cursors.encode(page.next_position, listing=listing),
    )


@router.post(
    "/checkpoints/{checkpoint}/reindex",
    status_code=202,
    operation_id="reindex_checkpoint",
    summary="Index a checkpoint anew",
    responses=problems(
        "scope-violation", "forbidden-to-token", "unknown-checkpoint", "unknown-path"
    ),
)
async def reindex(checkpoint: CheckpointPath, ctx: Ctx) -> CheckpointDetail:
    """Embed every entry with the configured model, in the background; poll `pending`."""
    row, counts = await indexing.reindex(
        ctx.services, known_checkpoint(checkpoint), claim=ctx.claim
    )
    return CheckpointDetail.with_counts(row, counts)


@router.post(
    "/checkpoints/{checkpoint}/reconcile",
    operation_id="reconcile_checkpoint",
    summary="Mend the index",
    responses=problems(
        "scope-violation",
        "forbidden-to-token",
        "unknown-checkpoint",
        "unknown-path",
        "model-changed",
        "archive-unavailable",
    ),
)
async def reconcile(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    dry_run: bool = False,  # noqa: FBT001, FBT002  (a query parameter)
) -> ReconciledOut:
    """Compare ledger and archive, and mend the archive; `dry_run` only tells.

    Takes about two seconds a thousand passages of Letta's, which hands out nothing without its
    vector.
    """
    found = await reconciling.reconcile(
        ctx.services, known_checkpoint(checkpoint), dry_run=dry_run, claim=ctx.claim
    )
    return ReconciledOut(
        checked=found.checked,
        missing=found.missing,
        differing=found.differing,
        orphans=found.orphans,
        doubles=found.doubles,
        dry_run=dry_run,
    )
