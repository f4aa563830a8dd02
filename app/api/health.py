"""Liveness, readiness and metrics."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import Field
from starlette.responses import Response

from app.api.documented import problems
from app.api.requests import StrictRoute
from app.api.schemas.base import Answer

router = APIRouter(tags=["health"], route_class=StrictRoute)


class Alive(Answer):
    """The process answers."""

    status: Literal["ok"]


class LagOut(Answer):
    """What Letta has not been told yet, each a count; all 0 on the embedded archive."""

    purges: Annotated[int, Field(description="Agents of purged checkpoints and former indexes.")]
    removals: Annotated[int, Field(description="Passages of cleared entries.")]
    core_memories: Annotated[int, Field(description="Core memories newer than their blocks.")]


class Ready(Answer):
    """Whether writes can be taken: `unavailable` is no; `degraded` is yes, without the archive."""

    status: Literal["ok", "degraded", "unavailable"]
    ledger: Annotated[str | None, Field(description="Why writes cannot be taken.")]
    archive: Annotated[str | None, Field(description="Why searches may fail.")]
    facts: Annotated[
        dict[str, str], Field(description="Of the archive: its model, and Letta's version.")
    ]
    lag: Annotated[LagOut, Field(description="What Letta has not been told yet.")]


@router.get("/healthz", operation_id="get_health", summary="Is the process alive?")
async def healthz() -> Alive:
    """Answer, whatever the database and the archive do."""
    return Alive(status="ok")


@router.get(
    "/readyz",
    operation_id="get_readiness",
    summary="Can writes be taken?",
    responses={503: {"model": Ready, "description": "Writes cannot be taken; `ledger` says why."}},
)
async def readyz(request: Request, response: Response) -> Ready:
    """Try what a write needs; an archive that is away degrades the service and no more."""
    state = await request.app.state.readiness.state()
    if not state.ready:
        response.status_code = 503
    status: Literal["ok", "degraded", "unavailable"] = (
        "unavailable" if not state.ready else "degraded" if state.archive else "ok"
    )
    return Ready(
        status=status,
        ledger=state.ledger,
        archive=state.archive,
        facts=dict(state.facts),
        lag=LagOut(
            purges=state.lag.purges,
            removals=state.lag.removals,
            core_memories=state.lag.core_memories,
        ),
    )


@router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {CONTENT_TYPE_LATEST: {}}, "description": "Prometheus' text format."},
        **problems("forbidden-to-token"),
    },
)
async def metrics(request: Request) -> Response:
    """Show counters and timings."""
    registry = request.app.state.metrics.registry
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
