"""How Letta is told to embed, and whether what it froze or returned is what was told.

Letta checks no lengths: it pads a short vector with zeros and ranks garbage without complaint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.archive.letta.answers import EmbeddingConfig
from app.archive.port import Vector
from app.lineage.errors import ArchiveUnavailable

# Numbers at a vector's end that are never all exactly zero in a vector of the full length: a model
# whose vectors are shorter leaves them to Letta's padding.
TAIL = 8
# How far from 1 the length of a unit vector in float32 may be.
ROUNDING = 1e-5


class Unsound(Exception):
    """What Letta stored of a text cannot be ranked; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Embedding:
    """The configured way: a whole configuration that names our endpoint, or one of Letta's handles.

    `fingerprint` is what is compared with an existing agent's; `dimensions` are the model's.
    """

    argument: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    dimensions: int

    @classmethod
    def of_endpoint(cls, url: str, model: str, dimensions: int) -> "Embedding":
        """Let Letta ask an endpoint that speaks OpenAI's `/v1/embeddings`: ours."""
        config = {
            "embedding_endpoint_type": "openai",
            "embedding_endpoint": url,
            "embedding_model": model,
            "embedding_dim": dimensions,
            # Of files alone: a passage is never cut.
            "embedding_chunk_size": 300,
        }
        fingerprint = {"endpoint": url, "model": model, "dimensions": dimensions}
        return cls({"embedding_config": config}, fingerprint, dimensions)

    @classmethod
    def of_handle(cls, handle: str, dimensions: int) -> "Embedding":
        """Let Letta embed by a provider of its own."""
        return cls({"embedding": handle}, {"handle": handle, "dimensions": dimensions}, dimensions)

    def check(self, config: EmbeddingConfig | None, *, checkpoint: str) -> Mapping[str, Any]:
        """Return the fingerprint of what an agent froze; ArchiveUnavailable if it is another."""
        if config is None:
            raise ArchiveUnavailable("Letta made an agent that does not embed")
        if config.embedding_dim != self.dimensions:
            raise ArchiveUnavailable(
                f"Letta's {config.embedding_model!r} has {config.embedding_dim} dimensions, "
                f"configured are {self.dimensions} (LINEAGE_EMBEDDING_DIM)"
            )
        if "handle" in self.fingerprint:
            return self.fingerprint
        frozen = {
            "endpoint": config.embedding_endpoint,
            "model": config.embedding_model,
            "dimensions": config.embedding_dim,
        }
        self.require(frozen, checkpoint=checkpoint)
        return frozen

    def require(self, frozen: Mapping[str, Any] | None, *, checkpoint: str) -> None:
        """Refuse an agent that embeds otherwise: ArchiveUnavailable that names both."""
        if (mismatch := self.mismatch(frozen, checkpoint=checkpoint)) is not None:
            raise ArchiveUnavailable(mismatch)

    def mismatch(self, frozen: Mapping[str, Any] | None, *, checkpoint: str) -> str | None:
        """Say how the frozen configuration of a checkpoint's agent differs, if it does."""
        if frozen == self.fingerprint:
            return None
        return (
            f"Letta's agent of {checkpoint!r} embeds with {_shown(frozen)}, configured is "
            f"{_shown(self.fingerprint)}: POST /checkpoints/{checkpoint}/reindex makes it anew"
        )

    def vector(self, embedding: Sequence[float] | None) -> Vector:
        """Return the vector of a stored passage, cut to the model's length and scaled to 1.

        Unsound where there is none, or where it is not of the model's length. A vector of zeros is
        returned as it is: whether the text may have one is not known here.
        """
        if embedding is None:
            raise Unsound("Letta stored no vector")
        with np.errstate(over="ignore"):  # past float32 it becomes infinite, which is unsound
            row = np.array(embedding, np.float32).astype(np.float64)
        if not np.isfinite(row).all():
            raise Unsound("Letta stored numbers that are not finite")
        cut, rest = row[: self.dimensions], row[self.dimensions :]
        if len(cut) < self.dimensions or rest.any():
            raise Unsound(f"Letta stored a vector that has not {self.dimensions} dimensions")
        length = np.sqrt(np.square(cut).sum())
        if length > 0 and not cut[-TAIL:].any():
            raise Unsound(f"Letta stored a vector of fewer than {self.dimensions} dimensions")
        # As it is where it is of length 1 already: no bit is to differ from the embedder's own.
        scale = 1.0 if length == 0 or abs(length - 1.0) <= ROUNDING else length
        return (cut / scale).astype(np.float32)


def _shown(fingerprint: Mapping[str, Any] | None) -> str:
    if not fingerprint:
        return "nothing"
    return ", ".join(f"{name} {value}" for name, value in fingerprint.items())
