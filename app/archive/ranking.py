"""Exact cosine ranking of a scope: the one ranking code, whichever archive asks for it.

Two passes. The first scores every row by float32 products, whose last bits depend on where a row
stands in its matrix. The second scores what may be among the best again in float64, each row by
itself, so that equal texts score equal wherever they stand, and their order is by age alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.archive.port import Candidates, Hit, Vector
from app.lineage.entry import Entry

# Twice the worst rounding error of a float32 product of unit vectors up to 4,096 dimensions
# (4096 * 2**-24 = 2.4e-4 is the bound; measured at 256 dimensions: 3e-7).
SLACK = 5e-4


def rank(parts: Sequence[Candidates], query: Vector, *, limit: int) -> list[Hit]:
    """Return the min(limit, all rows) best hits, best first; equal scores oldest first.

    `query` has shape (dimensions,), the rows of `parts` too; both are of length 1 or all zeros. A
    row or a query of zeros has no direction: its score is None, and it comes last.
    """
    parts = [part for part in parts if part.entries]
    if not parts:
        return []
    if not query.any():
        return _by_age([entry for part in parts for entry in part.entries], limit)
    coarse = [_coarse(part, query) for part in parts]
    scored = _exact(parts, coarse, query, _threshold(coarse, limit))
    scored.sort(key=lambda item: (-item[0], item[1].order))
    return [_hit(entry, score) for score, entry in scored[:limit]]


def _coarse(part: Candidates, query: Vector) -> NDArray[np.float32]:
    """Score every row; a row of zeros gets minus infinity, so that it displaces nothing."""
    scores = part.vectors @ query
    if not scores.all():
        suspects = np.flatnonzero(scores == 0)
        blank = suspects[~part.vectors[suspects].any(axis=1)]
        scores[blank] = -np.inf
    return scores


def _threshold(coarse: Sequence[NDArray[np.float32]], limit: int) -> float:
    """Return the coarse score below which no row can be among the best `limit`."""
    scores = coarse[0] if len(coarse) == 1 else np.concatenate(coarse)
    if len(scores) <= limit:
        return -np.inf
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit]) - SLACK


def _exact(
    parts: Sequence[Candidates],
    coarse: Sequence[NDArray[np.float32]],
    query: Vector,
    threshold: float,
) -> list[tuple[float, Entry]]:
    """Score the rows at or over the threshold again, each by itself."""
    wide = query.astype(np.float64)
    scored: list[tuple[float, Entry]] = []
    for part, scores in zip(parts, coarse, strict=True):
        rows = np.flatnonzero(scores >= threshold)
        if not len(rows):
            continue
        exact = (part.vectors[rows].astype(np.float64) * wide).sum(axis=1)
        exact[np.isneginf(scores[rows])] = -np.inf
        scored += zip(exact.tolist(), [part.entries[row] for row in rows.tolist()], strict=True)
    return scored


def _hit(entry: Entry, score: float) -> Hit:
    if score == -np.inf:
        return Hit(entry.id, None)
    return Hit(entry.id, min(1.0, max(0.0, score)))


def _by_age(entries: Sequence[Entry], limit: int) -> list[Hit]:
    oldest = sorted(entries, key=lambda entry: entry.order)[:limit]
    return [Hit(entry.id, None) for entry in oldest]
