"""Exact cosine ranking of a scope: the one ranking code, whichever archive asks for it.

Two passes. The first scores every row by float32 products, whose last bits depend on where a row
stands in its matrix. The second scores what may be among the best again in float64, each row by
itself, so that equal texts score equal wherever they stand, and their order is by age alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.archive.port import Candidates, Hit, Vector, Vectors
from app.lineage.entry import Entry

# Twice the worst rounding error of a float32 product of unit vectors up to 4,096 dimensions
# (4096 * 2**-24 = 2.4e-4 is the bound; measured at 256 dimensions: 3e-7).
SLACK = 5e-4


def rank(parts: Sequence[Candidates], query: Vector, *, limit: int) -> list[Hit]:
    """Return the min(limit, all rows) best hits, best first; equal scores oldest first.

    `query` has shape (dimensions,), the rows of `parts` too; both are of length 1 or all zeros. A
    row or a query of zeros has no direction: its score is None, and it comes last.
    """
    # Rows count, not entries: a node may grow while we rank.
    parts = [part for part in parts if len(part.vectors)]
    if not parts:
        return []
    if not query.any():
        return _by_age([entry for part in parts for entry in part.entries], limit)
    coarse = _coarse(parts, query)
    rows = np.flatnonzero(coarse >= _threshold(coarse, limit)).tolist()
    entries, vectors = _picked(parts, rows)
    # Each row's sum is by itself: a matrix product may round a row by where it stands.
    exact = (vectors.astype(np.float64) * query).sum(axis=1)
    exact[coarse[rows] == -np.inf] = -np.inf
    scored = sorted(
        zip(exact.tolist(), entries, strict=True), key=lambda item: (-item[0], item[1].order)
    )
    return [hit(entry, None if score == -np.inf else score) for score, entry in scored[:limit]]


def _coarse(parts: Sequence[Candidates], query: Vector) -> NDArray[np.float32]:
    """Score every row of all parts; a row of zeros gets minus infinity: it displaces nothing."""
    scores = np.concatenate([part.vectors @ query for part in parts])
    if not scores.all():
        suspects = np.flatnonzero(scores == 0)
        _, vectors = _picked(parts, suspects.tolist())
        scores[suspects[~vectors.any(axis=1)]] = -np.inf
    return scores


def _threshold(scores: NDArray[np.float32], limit: int) -> float:
    """Return the coarse score below which no row can be among the best `limit`."""
    if len(scores) <= limit:
        return -np.inf
    worst = len(scores) - limit
    return float(np.partition(scores, worst)[worst]) - SLACK


def _picked(parts: Sequence[Candidates], rows: Sequence[int]) -> tuple[list[Entry], Vectors]:
    """Return entries and vectors of some rows, ascending and counted through all parts."""
    entries: list[Entry] = []
    vectors: list[Vector] = []
    waiting = iter(parts)
    part, first = next(waiting), 0
    for row in rows:
        while row - first >= len(part.vectors):
            first += len(part.vectors)
            part = next(waiting)
        entries.append(part.entries[row - first])
        vectors.append(part.vectors[row - first])
    return entries, np.array(vectors)


def cosine(vector: Vector, query: Vector) -> float | None:
    """Return the exact cosine of a row, as `rank` takes it; None where either has no direction."""
    if not vector.any() or not query.any():
        return None
    return float((vector.astype(np.float64) * query).sum())


def hit(entry: Entry, exact: float | None) -> Hit:
    """Return the hit of an entry with this cosine; scores are floored at 0."""
    return Hit(entry.id, None if exact is None else min(1.0, max(0.0, exact)))


def _by_age(entries: Sequence[Entry], limit: int) -> list[Hit]:
    oldest = sorted(entries, key=lambda entry: entry.order)[:limit]
    return [Hit(entry.id, None) for entry in oldest]
