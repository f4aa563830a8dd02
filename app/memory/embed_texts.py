"""Embed texts for others: what `/v1/embeddings` gives to whoever wants our vectors."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.embedding.port import EmbedderRefused, EmbedderUnavailable, Vectors
from app.lineage.errors import ArchiveUnavailable, InvalidInput
from app.lineage.texts import check_size
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class Model:
    """The embedder's model, and how long its vectors are."""

    name: str
    dimensions: int


def embedding_model(services: Services) -> Model:
    """Return the one model that texts can be embedded with."""
    return Model(services.embedder.model, services.embedder.dimensions)


async def embed_texts(
    services: Services, texts: Sequence[str], *, model: str, dimensions: int | None
) -> Vectors:
    """Return one row a text, shape (len(texts), dimensions), each of length 1.

    InvalidInput for another model or length than ours (None takes ours), or where the embedder
    will not have a text, TooLarge for a text over the limit of entries, ArchiveUnavailable where
    the embedder does not answer.
    """
    _check_model(embedding_model(services), model, dimensions)
    for text in texts:
        check_size(text, max_bytes=services.limits.max_text_bytes, what="input")
    try:
        return await services.embedder.embed(texts)
    except EmbedderRefused as error:
        raise InvalidInput(
            f"The embedder refused: {error.reason}", place=("body", "input")
        ) from error
    except EmbedderUnavailable as error:
        raise ArchiveUnavailable(error.reason, retry_after_s=error.retry_after_s) from error


def _check_model(ours: Model, model: str, dimensions: int | None) -> None:
    """Never answer with vectors of another model or length than asked for."""
    if model != ours.name:
        raise InvalidInput(f"The model of this service is {ours.name!r}.", place=("body", "model"))
    if dimensions not in (None, ours.dimensions):
        raise InvalidInput(
            f"The vectors of this service have {ours.dimensions} dimensions.",
            place=("body", "dimensions"),
        )
