"""What the service asks of an embedder."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Vectors = NDArray[np.float32]


class EmbedderUnavailable(Exception):
    """The embedder gave no usable vectors; `reason` is fit for an answer: no secrets, not blank."""

    def __init__(self, reason: str, *, retry_after_s: float = 5.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s


class EmbedderRefused(Exception):
    """The embedder will have one of the texts not now and not later; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Embedder(Protocol):
    """Turns texts into vectors of one model."""

    @property
    def model(self) -> str:
        """The model's name; vectors of two names are never ranked together."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    @property
    def local(self) -> bool:
        """True where embedding is a computation in this process, which no network can fail."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row a text, shape (len(texts), dimensions), each of length 1.

        A text without any known token is a row of zeros. Raises EmbedderUnavailable, or
        EmbedderRefused where it is the texts that are at fault.
        """

    async def close(self) -> None:
        """Release connections."""
