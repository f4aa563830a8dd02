"""The HTTP application around the use cases."""

from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from app.api import (
    checkpoints,
    core_memory,
    core_sections,
    docs,
    embeddings,
    health,
    memory,
    movements,
    nodes,
    notes,
    operations,
    recall,
    snapshots,
    trace,
)
from app.api.callers import Doorkeeper
from app.api.gate import Gate
from app.api.metrics import Metrics
from app.api.problems import METHOD_NOT_ALLOWED, error_response, problem_response
from app.api.telemetry import Telemetry
from app.lineage.errors import InvalidInput, LineageError, UnknownPath
from app.logs import RequestLog

# The order in which people read of them.
ROUTERS = (
    checkpoints,
    nodes,
    memory,
    trace,
    core_memory,
    core_sections,
    notes,
    recall,
    movements,
    operations,
    snapshots,
    embeddings,
    health,
)
# Routes are tried one after the other, 3 µs each: those that workers call all the time come first.
BUSY_FIRST = (
    memory,
    trace,
    nodes,
    checkpoints,
    core_memory,
    core_sections,
    notes,
    recall,
    movements,
    operations,
    snapshots,
    embeddings,
    health,
)

UNKNOWN_PATH_STATUS = 404


def add_http(
    app: FastAPI,
    *,
    doorkeeper: Doorkeeper,
    metrics: Metrics,
    requests: RequestLog,
    max_body_bytes: int,
    max_snapshot_bytes: int,
) -> None:
    """Give the application its routes, its gate, its telemetry and its problem documents."""
    # A redirect to the path without its slash would be no problem document, and trusts `Host`.
    app.router.redirect_slashes = False
    # Taken over as they are: `include_router` would wrap each in a second match (20 µs a request).
    for module in BUSY_FIRST:
        app.router.routes.extend(module.router.routes)
    docs.add_docs(app, documented=[route for module in ROUTERS for route in module.router.routes])
    app.add_exception_handler(LineageError, _on_lineage_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    # The last one added is the outermost.
    app.add_middleware(
        Gate,
        doorkeeper=doorkeeper,
        max_body_bytes=max_body_bytes,
        max_snapshot_bytes=max_snapshot_bytes,
    )
    app.add_middleware(Telemetry, metrics=metrics, requests=requests)


async def _on_lineage_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, LineageError)
    if isinstance(error, InvalidInput) and request.method == "GET" and error.place[:1] == ["body"]:
        # The rules know of one way to ask; by URL, the same words stand in the query string.
        error.place[0] = "query"
    return error_response(error, request_id=request.state.request_id)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    """Say where and why, without the value: it may be long, or not fit to be sent."""
    assert isinstance(error, RequestValidationError)
    found = [(list(item["loc"]), item["msg"]) for item in error.errors()]
    return error_response(_InvalidFields(found), request_id=request.state.request_id)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """Answer what the framework refuses by itself: an unknown path, a wrong method."""
    assert isinstance(error, HTTPException)
    request_id = request.state.request_id
    if error.status_code == METHOD_NOT_ALLOWED.status:
        return problem_response(
            "method-not-allowed",
            METHOD_NOT_ALLOWED,
            detail=f"{request.method} is not allowed here.",
            request_id=request_id,
            headers={"Allow": ", ".join(_allowed_methods(request))},
        )
    if error.status_code == UNKNOWN_PATH_STATUS:
        return error_response(UnknownPath("Nothing is at this path."), request_id=request_id)
    raise error


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of every route at this path; the framework tells those of the first.

    Where a name in the path could be an id as well (`search`), it is the name.
    """
    here = [
        route
        for route in request.app.router.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    fewest = min((route.path.count("{") for route in here), default=0)
    allowed = [route.methods or set() for route in here if route.path.count("{") == fewest]
    return sorted(set().union(*allowed))


class _InvalidFields(InvalidInput):
    """Several fields break rules."""

    def __init__(self, found: Sequence[tuple[list[str | int], str]]) -> None:
        first_place, first = found[0]
        super().__init__(f"{'.'.join(map(str, first_place))}: {first}", place=first_place)
        self._found = found

    @classmethod
    def slug(cls) -> str:
        """Answer as the same kind of problem."""
        return InvalidInput.slug()

    @property
    def extra(self) -> dict[str, object]:
        return {"errors": [{"loc": place, "msg": message} for place, message in self._found]}
