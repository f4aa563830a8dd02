"""Nodes and trees."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import PlainTextResponse, Response

from app.api import cursors
from app.api.deps import CheckpointPath, Ctx, CursorQuery, Limit, NodePath, known_checkpoint
from app.api.documented import claims, problems
from app.api.once import JSON, Repeatable, answered, no_idempotency_key, rendered
from app.api.requests import StrictRoute
from app.api.schemas.tree import NodeIn, NodeOut, NodePage, NodePatch, TokenOut, TreeOut
from app.lineage.ids import NodeId
from app.lineage.mermaid import flowchart
from app.memory.checkpoints import Created
from app.memory.nodes import (
    Change,
    create_node,
    give_token,
    list_nodes,
    patch_node,
    seal_node,
    show_node,
)
from app.memory.tree import whole_tree

router = APIRouter(tags=["nodes"], route_class=StrictRoute)


@router.post(
    "/checkpoints/{checkpoint}/nodes",
    status_code=201,
    operation_id="create_node",
    summary="Create a node",
    response_model=NodeOut,
    responses={
        200: {"model": NodeOut, "description": "It was there; the stored row, unchanged."},
        **problems(
            "unknown-checkpoint",
            "unknown-path",
            "unknown-node",
            "node-conflict",
            "scope-violation",
            "forbidden-to-token",
            "idempotency-mismatch",
            "too-large",
            "unsupported-media-type",
        ),
    },
)
async def create(
    checkpoint: CheckpointPath, body: NodeIn, ctx: Ctx, repeatable: Repeatable
) -> Response:
    """Make a node below its parent, or find it again; a node never changes its parent."""
    created = await create_node(
        ctx.services,
        known_checkpoint(checkpoint),
        name=body.name,
        parent=body.parent,
        eval_summary=body.eval_summary,
        metadata=body.metadata,
        claim=ctx.claim,
        once=repeatable(_created),
    )
    return answered(created, _created)


@router.get(
    "/checkpoints/{checkpoint}/nodes",
    operation_id="list_nodes",
    summary="List nodes",
    responses=problems(
        "scope-violation",
        "forbidden-to-token",
        "unknown-checkpoint",
        "unknown-path",
        "invalid-cursor",
    ),
)
async def list_all(
    checkpoint: CheckpointPath, ctx: Ctx, limit: Limit = 100, cursor: CursorQuery = None
) -> NodePage:
    """List a checkpoint's nodes, oldest first."""
    listing = f"nodes {known_checkpoint(checkpoint)}"
    page = await list_nodes(
        ctx.services,
        checkpoint,
        limit=limit,
        after=cursors.decode(cursor, listing=listing, like=0) or 0,
        claim=ctx.claim,
    )
    return NodePage(
        items=[NodeOut.of(view) for view in page.nodes],
        next_cursor=cursors.encode(page.next_position, listing=listing),
    )


@router.get(
    "/checkpoints/{checkpoint}/tree",
    operation_id="get_tree",
    summary="Show the whole tree",
    response_model=TreeOut,
    responses={
        200: {
            "content": {"text/plain": {"schema": {"type": "string"}}},
            "description": "The tree; with `format=mermaid`, a Mermaid flowchart as plain text.",
        },
        **problems("scope-violation", "forbidden-to-token", "unknown-checkpoint", "unknown-path"),
    },
)
async def tree(
    checkpoint: CheckpointPath,
    ctx: Ctx,
    form: Annotated[Literal["json", "mermaid"], Query(alias="format")] = "json",
) -> Response:
    """Show every node: parents before children, branch after branch."""
    branches = await whole_tree(ctx.services, known_checkpoint(checkpoint), claim=ctx.claim)
    if form == "mermaid":
        return PlainTextResponse(flowchart(branches))
    return Response(TreeOut.of(checkpoint, branches).model_dump_json(), media_type=JSON)


@router.get(
    "/nodes/{node}",
    operation_id="get_node",
    summary="Show a node",
    openapi_extra=claims(),
    responses=problems("unknown-node", "unknown-path", "scope-violation", "stale-token"),
)
async def show(node: NodePath, ctx: Ctx) -> NodeOut:
    """Show a node with its lineage, how many entries it has, and their digest."""
    return NodeOut.of(await show_node(ctx.services, NodeId.from_path(node), claim=ctx.claim))


@router.patch(
    "/nodes/{node}",
    operation_id="patch_node",
    summary="Change a node's direction or metadata",
    openapi_extra=claims("exp1.root"),
    responses=problems(
        "unknown-node",
        "unknown-path",
        "cow-violation",
        "current-node-required",
        "stale-token",
        "node-sealed",
        "too-large",
        "unsupported-media-type",
    ),
)
async def patch(node: NodePath, body: NodePatch, ctx: Ctx) -> NodeOut:
    """Set `eval_summary`, the one-sentence direction, or `metadata`, which is replaced whole."""
    change = Change({name: getattr(body, name) for name in body.model_fields_set})
    view = await patch_node(ctx.services, NodeId.from_path(node), change, claim=ctx.claim)
    return NodeOut.of(view)


@router.post(
    "/nodes/{node}/token",
    status_code=201,
    operation_id="create_token",
    summary="Give out a node token",
    dependencies=[Depends(no_idempotency_key)],
    responses=problems("unknown-node", "unknown-path", "forbidden-to-token", "cow-violation"),
)
async def token(node: NodePath, ctx: Ctx) -> TokenOut:
    """Give out a token for the worker that executes the node; it overtakes all before it."""
    node_id = NodeId.from_path(node)
    given = await give_token(ctx.services, node_id, claim=ctx.claim)
    return TokenOut(token=given, node=str(node_id))


@router.post(
    "/nodes/{node}/seal",
    operation_id="seal_node",
    summary="Seal a node",
    openapi_extra=claims("exp1.root"),
    responses=problems(
        "unknown-node", "unknown-path", "cow-violation", "current-node-required", "stale-token"
    ),
)
async def seal(node: NodePath, ctx: Ctx) -> NodeOut:
    """Let the node accept no more writes; sealing it again changes nothing."""
    view = await seal_node(
        ctx.services,
        NodeId.from_path(node),
        claim=ctx.claim,
        operator=ctx.caller.holds_api_key,
    )
    return NodeOut.of(view)


def _created(created: Created) -> tuple[int, str]:
    return rendered(NodeOut.of(created.row), status=201 if created.made else 200)
