"""Swagger UI with its assets served by us, and what each problem means."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import fastapi_swagger
from fastapi import APIRouter, FastAPI
from fastapi import Path as InPath
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.staticfiles import StaticFiles
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import BaseRoute

from app.api.documented import Problem, problems
from app.api.problems import all_problems
from app.api.requests import StrictRoute
from app.api.schemas.base import Answer
from app.lineage.errors import UnknownPath

ASSETS = Path(str(files(fastapi_swagger))) / "resources"
ASSETS_URL = "/docs/assets"
DESCRIPTION = """
Memory for tree-searching research agents. A node reads what its **ancestors** wrote, and never a
sibling branch; it is written by its own executor only.

Start with *Create a checkpoint* and *Create a node*, then write an entry and search for it: the
examples fit together. Where the service has keys, press *Authorize* first.
"""
TAGS = [
    {
        "name": "checkpoints",
        "description": "Experiment runs: each owns a tree, a core memory, a trace.",
    },
    {"name": "nodes", "description": "Places in the tree. A node never changes its parent."},
    {
        "name": "node memory",
        "description": "Entries: immutable, and visible below their node only.",
    },
    {"name": "trace", "description": "Flat ReAct steps of a checkpoint."},
    {"name": "core memory", "description": "The blocks that are always in context."},
    {"name": "notes", "description": "The archive: topic notes, searched and never loaded whole."},
    {"name": "recall", "description": "What happened: daily notes, and the start of a session."},
    {
        "name": "movements",
        "description": "Facts between the layers: demote, promote, consolidate, trim, heartbeat.",
    },
    {"name": "operations", "description": "For operators: the access log and the index."},
    {"name": "snapshots", "description": "A whole checkpoint as one file: out, in, kept."},
    {"name": "embeddings", "description": "OpenAI-compatible embeddings from our own embedder."},
    {"name": "health", "description": "Liveness, readiness, metrics."},
    {"name": "problems", "description": "What each problem document means."},
]

router = APIRouter(route_class=StrictRoute)


class ProblemKind(Answer):
    """A kind of problem and what to do about it."""

    type: str
    title: str
    status: int
    remedy: str


@router.get("/", include_in_schema=False)
async def home() -> RedirectResponse:
    """Lead people to the documentation."""
    return RedirectResponse("/docs")


@router.get("/docs", include_in_schema=False)
async def swagger_ui() -> HTMLResponse:
    """Show Swagger UI; it loads nothing from elsewhere."""
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="letta-lineage",
        swagger_js_url=f"{ASSETS_URL}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS_URL}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS_URL}/favicon-32x32.png",
        swagger_ui_parameters={
            "tryItOutEnabled": True,
            "persistAuthorization": True,
            "displayRequestDuration": True,
            "validatorUrl": None,
        },
    )


@router.get(
    "/problems/{problem}",
    tags=["problems"],
    operation_id="get_problem",
    summary="What a problem means",
    responses=problems("unknown-path"),
)
async def problem(
    slug: Annotated[str, InPath(alias="problem", examples=["scope-violation"])],
) -> ProblemKind:
    """Tell what a problem document's `type` means, and what to do about it."""
    kind = all_problems().get(slug)
    if kind is None:
        raise UnknownPath("There is no such problem.")
    return ProblemKind(
        type=f"/problems/{slug}", title=kind.title, status=kind.status, remedy=kind.remedy
    )


def add_docs(app: FastAPI, *, documented: Sequence[BaseRoute]) -> None:
    """Serve Swagger UI and its assets, and describe these routes in OpenAPI, in their order."""
    app.include_router(router)
    app.mount(ASSETS_URL, StaticFiles(directory=ASSETS), name="swagger-assets")

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _openapi(app, [*documented, *router.routes])
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the framework's own way to do it


def _openapi(app: FastAPI, routes: Sequence[BaseRoute]) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary="Ancestor-scoped, copy-on-write memory for trees of research agents",
        description=DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        tags=TAGS,
        routes=routes,
    )
    components = document.setdefault("components", {})
    components["schemas"]["Problem"] = Problem.model_json_schema()
    components["securitySchemes"] = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key, or a node token (`lnt_…`).",
        }
    }
    # Either works: without keys the service is open.
    document["security"] = [{"bearer": []}, {}]
    _fill_in_examples(document)
    return document


def _fill_in_examples(document: dict[str, Any]) -> None:
    """Give each parameter its schema's first example: Swagger UI fills in that one alone."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if examples := parameter["schema"].get("examples"):
                    parameter.setdefault("example", examples[0])
