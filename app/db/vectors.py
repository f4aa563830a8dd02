"""Vectors as the ledger keeps them: float32, little-endian."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]
Vectors: TypeAlias = NDArray[np.float32]

FLOAT32 = np.dtype("<f4")


def to_bytes(vector: Vector) -> bytes:
    """Return the bytes of one vector, 4 a dimension."""
    return vector.astype(FLOAT32, copy=False).tobytes()


def from_bytes(stored: bytes) -> Vector:
    """Return the vector, shape (dimensions,), read-only."""
    return np.frombuffer(stored, dtype=FLOAT32)
