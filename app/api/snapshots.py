"""Snapshots over HTTP: out, in, and kept on the service's own disk."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import IO, Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from app.api.deps import CheckpointPath, Context, Ctx, known_checkpoint
from app.api.documented import problems
from app.api.errors import UnsupportedMediaType
from app.api.once import no_idempotency_key
from app.api.requests import StrictRoute
from app.api.schemas.snapshots import KeptOut, RestoredOut, ResumedOut
from app.lineage.errors import LedgerUnavailable, SnapshotFailed
from app.memory.claims import operator_only, operator_only_for_new
from app.memory.snapshot.automatic import keep_snapshot
from app.memory.snapshot.restoring import OnConflict, restore
from app.memory.snapshot.resuming import resume
from app.memory.snapshot.writing import FILE_NAME, spool_snapshot

T = TypeVar("T")

router = APIRouter(tags=["snapshots"], route_class=StrictRoute)

GZIP_TYPES = ("application/gzip", "application/x-gzip", "application/octet-stream")
STEP_BYTES = 256 * 1024
GZIP_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/gzip": {"schema": {"type": "string", "format": "binary"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
OPTIONAL_GZIP_BODY = {"requestBody": {**GZIP_BODY["requestBody"], "required": False}}


@router.get(
    "/checkpoints/{checkpoint}/backup",
    operation_id="backup_checkpoint",
    summary="Take a snapshot",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}},
            "description": "The snapshot: gzip around one JSON object a line.",
        },
        **problems(
            "scope-violation",
            "forbidden-to-token",
            "unknown-checkpoint",
            "unknown-path",
            "snapshot-failed",
        ),
    },
)
async def backup(checkpoint: CheckpointPath, ctx: Ctx) -> StreamingResponse:
    """Send all of a checkpoint as of now: tree, entries, trace, core memory."""
    known = known_checkpoint(checkpoint)
    await operator_only(ctx.services, known, claim=ctx.claim)
    file = await spool_snapshot(ctx.services, known)
    size = file.seek(0, 2)
    file.seek(0)
    return StreamingResponse(
        _sent(file),
        media_type="application/gzip",
        headers={
            "Content-Length": str(size),
            "Content-Disposition": f'attachment; filename="{FILE_NAME}"',
        },
    )


@router.post(
    "/checkpoints/{checkpoint}/restore",
    operation_id="restore_checkpoint",
    summary="Restore a snapshot",
    dependencies=[Depends(no_idempotency_key)],
    openapi_extra=GZIP_BODY,
    responses=problems(
        "forbidden-to-token",
        "scope-violation",
        "unknown-path",
        "node-conflict",
        "restore-conflict",
        "too-large",
        "unsupported-media-type",
        "snapshot-refused",
        "snapshot-failed",
    ),
)
async def restore_snapshot(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    request: Request,
    on_conflict: Annotated[
        OnConflict,
        Query(
            description="What is there: stays (`skip`), stays beside what differs (`merge`), is "
            "replaced (`overwrite`), or refuses the restore (`fail`)."
        ),
    ] = OnConflict.SKIP,
) -> RestoredOut:
    """Store what the snapshot in the body holds, all of it or nothing; poll `pending` after."""
    known = known_checkpoint(checkpoint)
    await operator_only_for_new(ctx.services, known, claim=ctx.claim)
    async with _received(request, ctx) as file:
        work = restore(ctx.services, known, file, on_conflict=on_conflict)
        return RestoredOut.of(await _while_wanted(request, work))


@router.post(
    "/checkpoints/{checkpoint}/resume",
    operation_id="resume_checkpoint",
    summary="Resume a checkpoint",
    dependencies=[Depends(no_idempotency_key)],
    openapi_extra=OPTIONAL_GZIP_BODY,
    responses=problems(
        "forbidden-to-token",
        "scope-violation",
        "unknown-path",
        "node-conflict",
        "too-large",
        "unsupported-media-type",
        "snapshot-refused",
        "snapshot-failed",
        "archive-unavailable",
    ),
)
async def resume_snapshot(checkpoint: CheckpointPath, ctx: Ctx, request: Request) -> ResumedOut:
    """Restore where nothing is there, index anew what Letta has lost, else do nothing.

    Without a body, the service's own snapshot of the checkpoint is taken, if it keeps one.
    """
    known = known_checkpoint(checkpoint)
    await operator_only_for_new(ctx.services, known, claim=ctx.claim)
    if not _has_body(request):
        return ResumedOut.of(await _while_wanted(request, resume(ctx.services, known, None)))
    async with _received(request, ctx) as file:
        return ResumedOut.of(await _while_wanted(request, resume(ctx.services, known, file)))


@router.post(
    "/checkpoints/{checkpoint}/snapshot",
    operation_id="keep_snapshot",
    summary="Write the snapshot file now",
    dependencies=[Depends(no_idempotency_key)],
    responses=problems(
        "forbidden-to-token",
        "scope-violation",
        "unknown-checkpoint",
        "unknown-path",
        "snapshot-failed",
    ),
)
async def snapshot(checkpoint: CheckpointPath, ctx: Ctx) -> KeptOut:
    """Write `<checkpoint>/memory_backup.jsonl.gz` below LINEAGE_SNAPSHOT_DIR."""
    known = known_checkpoint(checkpoint)
    await operator_only(ctx.services, known, claim=ctx.claim)
    path = await keep_snapshot(ctx.services, known)
    return KeptOut(path=str(path))


def _has_body(request: Request) -> bool:
    length = request.headers.get("content-length")
    return "transfer-encoding" in request.headers or (length is not None and length != "0")


@asynccontextmanager
async def _received(request: Request, ctx: Context) -> AsyncIterator[IO[bytes]]:
    """Give the body as a file: a snapshot may be larger than the memory."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in GZIP_TYPES:
        raise UnsupportedMediaType(media_type, taken=GZIP_TYPES[0])
    folder = ctx.services.limits.scratch_dir
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            async for chunk in request.stream():
                await asyncio.to_thread(file.write, chunk)
            yield file
    except OSError as error:
        raise SnapshotFailed(error.strerror) from error


async def _while_wanted(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what comes of the work, which is cancelled where nobody can be told any more.

    ClientDisconnect where the client hung up, LedgerUnavailable where the service stops.
    """
    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_hung_up(request))
    try:
        with suppress(asyncio.CancelledError):  # by the server that stops, which waits for no work
            await asyncio.wait([doing, leaving], return_when=asyncio.FIRST_COMPLETED)
        doing.cancel()  # no matter where it is done
        while not doing.done():
            with suppress(asyncio.CancelledError):  # the work reads the file that is closed next
                await asyncio.wait([doing])
        if not doing.cancelled():
            return doing.result()
        raise ClientDisconnect if leaving.done() else LedgerUnavailable("the service stops.")
    finally:
        leaving.cancel()


async def _hung_up(request: Request) -> None:
    """Return once the client is gone; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _sent(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := await asyncio.to_thread(file.read, STEP_BYTES):
            yield chunk
