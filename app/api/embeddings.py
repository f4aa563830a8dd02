"""Embeddings in OpenAI's shape, so that a Letta can use the embedder of this service."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Sequence

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray
from starlette.responses import Response

from app.api.deps import Ctx
from app.api.documented import problems
from app.api.requests import StrictRoute
from app.api.schemas.embeddings import EmbeddingsIn, EmbeddingsOut, ModelOut, ModelsOut
from app.memory.embed_texts import embed_texts, embedding_model

# Writing so many numbers as JSON takes about 2 ms; more than that leaves the event loop.
INLINE_NUMBERS = 4096

router = APIRouter(tags=["embeddings"], route_class=StrictRoute)


@router.post(
    "/v1/embeddings",
    operation_id="create_embeddings",
    summary="Embed texts",
    response_model=EmbeddingsOut,
    responses=problems(
        "forbidden-to-token", "too-large", "unsupported-media-type", "archive-unavailable"
    ),
)
async def embeddings(body: EmbeddingsIn, ctx: Ctx) -> Response:
    """Return a vector for each text, from the embedder that this service searches with."""
    vectors = await embed_texts(
        ctx.services, body.texts, model=body.model, dimensions=body.dimensions
    )
    if vectors.size <= INLINE_NUMBERS:
        content = _rendered(body, vectors)
    else:
        content = await asyncio.to_thread(_rendered, body, vectors)
    return Response(content, media_type="application/json")


@router.get(
    "/v1/models",
    operation_id="list_models",
    summary="List the embedding model",
    responses=problems("forbidden-to-token"),
)
async def models(ctx: Ctx) -> ModelsOut:
    """Name the model of this service's embedder."""
    ours = embedding_model(ctx.services)
    model = ModelOut(
        id=ours.name,
        object="model",
        created=0,
        owned_by="letta-lineage",
        dimensions=ours.dimensions,
    )
    return ModelsOut(object="list", data=[model])


def _rendered(body: EmbeddingsIn, vectors: NDArray[np.float32]) -> str:
    """Return the answer's JSON; EmbeddingsOut documents it."""
    size = sum(len(text.encode()) for text in body.texts)
    encoded = _base64(vectors) if body.encoding_format == "base64" else vectors.tolist()
    answer = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(encoded)
        ],
        "model": body.model,
        "usage": {"prompt_tokens": size, "total_tokens": size},
    }
    return json.dumps(answer, separators=(",", ":"))


def _base64(vectors: NDArray[np.float32]) -> Sequence[str]:
    return [b64encode(row.tobytes()).decode() for row in vectors.astype("<f4")]
