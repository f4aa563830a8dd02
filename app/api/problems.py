"""Which problem document answers which error; the one table of statuses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse

from app.api.errors import UnknownQueryParameter, UnsupportedMediaType
from app.layers import errors as layers
from app.lineage import errors

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of problem: its status, its name in words, and what to do about it."""

    status: int
    title: str
    remedy: str


PROBLEMS: Mapping[type[errors.LineageError], Problem] = {
    errors.Unauthenticated: Problem(
        401,
        "The credential is missing or not known",
        "Send `Authorization: Bearer <API key or node token>`.",
    ),
    errors.ForbiddenToToken: Problem(
        403,
        "A node token does not reach this",
        "Use an API key: a token writes its own node and the trace, and reads what its node may.",
    ),
    errors.AmbiguousClaim: Problem(
        403,
        "The request claims more than one node",
        "Send X-Current-Node once; with a node token, leave it out or send the token's own node.",
    ),
    errors.CowViolation: Problem(
        403,
        "A node is written by its own executor only",
        "Write to the node that X-Current-Node (or the token) names.",
    ),
    errors.ScopeViolation: Problem(
        403,
        "Outside of what the claim may read",
        "Ask for the claimed node, its ancestors, or the checkpoint's own memory; without a claim, "
        "an API key reads everything.",
    ),
    errors.UnknownCheckpoint: Problem(
        404, "No such checkpoint", "Create it with POST /checkpoints."
    ),
    errors.UnknownNode: Problem(
        404, "No such node", "Create it with POST /checkpoints/{checkpoint}/nodes."
    ),
    errors.UnknownPath: Problem(
        404, "Nothing is here", "Check the path; a node's id is <checkpoint>.<name>."
    ),
    layers.UnknownNote: Problem(
        404, "No such note", "GET /checkpoints/{checkpoint}/archival lists the notes by id."
    ),
    errors.CheckpointConflict: Problem(
        409, "The id or path belongs to another checkpoint", "Use the stored pair, or another id."
    ),
    errors.NodeConflict: Problem(
        409, "The node has another parent", "A parent never changes: use another name."
    ),
    layers.UnknownItem: Problem(
        404, "No such item", "Name an item of the section as it stands there, whole."
    ),
    layers.LineMismatch: Problem(
        409, "Not one line of the section is this one", "Read the section, and name a line of it."
    ),
    layers.DuplicateFact: Problem(
        409,
        "The fact is kept already",
        "One place for each fact: `where` says which one has it; move it instead of copying it.",
    ),
    errors.StaleToken: Problem(
        409,
        "A newer token has overtaken this one",
        "Another worker executes the node now: stop, or get a new token.",
    ),
    errors.NodeSealed: Problem(
        409, "The node is sealed", "Write to a child of it: a sealed node only reads."
    ),
    errors.ModelChanged: Problem(
        409,
        "The checkpoint is indexed with another model",
        "Run `letta-lineage reindex <checkpoint>` (POST /checkpoints/{checkpoint}/reindex), or "
        "configure the former model again.",
    ),
    errors.VersionMismatch: Problem(
        412,
        "The stored version is another one",
        "Read it again, a note by the id in `etag`, and repeat with its ETag.",
    ),
    errors.TooLarge: Problem(413, "Too large", "Send less; `limit` says how many bytes at most."),
    errors.SnapshotRefused: Problem(
        422,
        "The snapshot is refused",
        "`line` says where; nothing was changed. Take another copy of the file.",
    ),
    errors.RestoreConflict: Problem(
        409,
        "The checkpoint is not empty",
        "Restore with `on_conflict` skip, merge or overwrite, or into another checkpoint.",
    ),
    errors.SnapshotFailed: Problem(
        503, "The snapshot cannot be written", "See to the disk of the service, and try again."
    ),
    UnsupportedMediaType: Problem(
        415,
        "Another media type than is taken",
        "Send `Content-Type: application/json`, or `application/gzip` with a snapshot.",
    ),
    errors.InvalidInput: Problem(
        422, "The input breaks a rule", "`errors` says where (`loc`) and why (`msg`)."
    ),
    UnknownQueryParameter: Problem(
        422, "No such query parameter", "`errors` names it; see /docs for those that there are."
    ),
    errors.InvalidCursor: Problem(
        422, "The cursor is not of this list", "Start again without a cursor."
    ),
    errors.IdempotencyMismatch: Problem(
        422,
        "The idempotency key was used with another body",
        "Use a new key for a new request; repeat the same bytes for a retry.",
    ),
    layers.CredentialInCore: Problem(
        422,
        "A credential has no place in core memory",
        "Leave it out: `where` says in which text it is. A note of the topic `reference` can say "
        "where it is kept.",
    ),
    errors.CurrentNodeRequired: Problem(
        428, "A node write needs a claim", "Send X-Current-Node with the id of the node."
    ),
    errors.PreconditionRequired: Problem(
        428,
        "An edit needs the version that it is made on",
        "Read it, and send its ETag as If-Match; `*` edits whatever is stored.",
    ),
    errors.ArchiveUnavailable: Problem(
        503,
        "The archive does not answer",
        "Repeat after `Retry-After` seconds; writes and plain reads go on meanwhile.",
    ),
    errors.LedgerUnavailable: Problem(
        503,
        "The ledger does not answer",
        "Repeat after `Retry-After` seconds; nothing of this request was stored for certain.",
    ),
}

# Answers that no error of the rules stands behind.
METHOD_NOT_ALLOWED = Problem(
    405, "This method is not allowed here", "`Allow` names those that are."
)
INTERNAL_ERROR = Problem(
    500,
    "The service failed",
    "It is a bug: report it with `request_id`, under which the log has it.",
)
OTHERS: Mapping[str, Problem] = {
    "method-not-allowed": METHOD_NOT_ALLOWED,
    "internal-error": INTERNAL_ERROR,
}


def all_problems() -> dict[str, Problem]:
    """Return every kind of problem by its slug."""
    return {error.slug(): problem for error, problem in PROBLEMS.items()} | dict(OTHERS)


def problem_of(error: errors.LineageError) -> Problem:
    """Return the kind of problem of an error, by its nearest class in the table."""
    for kind in type(error).__mro__:
        if kind in PROBLEMS:
            return PROBLEMS[kind]
    raise AssertionError(f"{type(error).__name__} has no problem")


def error_response(error: errors.LineageError, *, request_id: str) -> JSONResponse:
    """Return the problem document of an error, with the headers that belong to it."""
    headers = {}
    if isinstance(error, errors.Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.ArchiveUnavailable | errors.LedgerUnavailable):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    if isinstance(error, errors.VersionMismatch | errors.PreconditionRequired):
        headers["ETag"] = error.current
    return problem_response(
        type(error).slug(),
        problem_of(error),
        detail=error.detail,
        request_id=request_id,
        headers=headers,
        extra=error.extra,
    )


def problem_response(
    slug: str,
    problem: Problem,
    *,
    detail: str,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> JSONResponse:
    """Return a problem document (RFC 9457)."""
    document = {
        "type": f"/problems/{slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": detail,
        **(extra or {}),
        "request_id": request_id,
    }
    return JSONResponse(
        document, status_code=problem.status, headers=dict(headers or {}), media_type=MEDIA_TYPE
    )
