"""Exact cosine ranking."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.archive.port import Candidates
from app.archive.ranking import rank
from app.lineage.entry import Collection, Entry

BEGUN = datetime(2026, 5, 2, tzinfo=UTC)


def entry(number: int) -> Entry:
    return Entry(
        id=f"e{number}",
        checkpoint="exp",
        collection=Collection.NODE_SCOPE,
        node="root",
        text="",
        metadata={},
        created_at=BEGUN + timedelta(seconds=number),
        seq=number,
        sha256=b"",
        indexed=True,
        refused=None,
    )


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def parts_of(vectors: NDArray[np.float32], cuts: list[int]) -> list[Candidates]:
    bounds = [0, *sorted(cuts), len(vectors)]
    return [Candidates([entry(n) for n in range(a, b)], vectors[a:b]) for a, b in pairwise(bounds)]


@st.composite
def scopes(
    draw: st.DrawFn,
) -> tuple[NDArray[np.float32], list[int], NDArray[np.float32]]:
    """Vectors with many ties and zeros, cut into nodes, and a query."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    base = unit(rng.normal(size=(draw(st.integers(1, 12)), 16)).astype(np.float32))
    if draw(st.booleans()):
        base[0] = 0
    vectors = base[rng.integers(0, len(base), size=draw(st.integers(0, 80)))]
    cuts = draw(st.lists(st.integers(0, len(vectors)), max_size=6))
    query = unit(rng.normal(size=(1, 16)).astype(np.float32))[0]
    return vectors, cuts, query


@given(scopes(), st.integers(1, 100))
def test_the_ranking_is_the_brute_force_one_however_the_scope_is_cut(
    scope: tuple[NDArray[np.float32], list[int], NDArray[np.float32]], limit: int
) -> None:
    vectors, cuts, query = scope
    scores = [
        float((row.astype(np.float64) * query).sum()) if row.any() else -np.inf for row in vectors
    ]
    expected = sorted(range(len(vectors)), key=lambda row: (-scores[row], row))[:limit]

    hits = rank(parts_of(vectors, cuts), query, limit=limit)

    assert [hit.entry_id for hit in hits] == [f"e{row}" for row in expected]


def test_a_score_is_the_cosine_floored_at_zero_and_none_without_a_direction() -> None:
    vectors = np.array([[1, 0], [0, 1], [-1, 0], [0, 0]], dtype=np.float32)

    hits = rank(parts_of(vectors, []), vectors[0], limit=10)

    assert [(hit.entry_id, hit.score) for hit in hits] == [
        ("e0", 1.0),
        ("e1", 0.0),
        ("e2", 0.0),
        ("e3", None),
    ]


def test_a_query_without_a_direction_finds_the_oldest_without_scores() -> None:
    vectors = unit(np.ones((3, 2), dtype=np.float32))

    hits = rank(parts_of(vectors, [1]), np.zeros(2, dtype=np.float32), limit=2)

    assert [(hit.entry_id, hit.score) for hit in hits] == [("e0", None), ("e1", None)]


def test_rows_of_zeros_displace_nothing_at_the_edge_of_the_limit() -> None:
    vectors = np.array([[0, 0], [0, 0], [-1, 0], [0, 0]], dtype=np.float32)

    hits = rank(parts_of(vectors, [2]), np.array([1, 0], dtype=np.float32), limit=1)

    assert [hit.entry_id for hit in hits] == ["e2"]


def test_equal_vectors_score_equal_wherever_they_stand() -> None:
    rng = np.random.default_rng(7)
    vectors = unit(rng.normal(size=(203, 256)).astype(np.float32))
    vectors[[3, 50, 111, 202]] = vectors[0]
    query = unit(rng.normal(size=(1, 256)).astype(np.float32))[0]

    hits = rank(parts_of(vectors, [17, 90]), query, limit=203)

    same = [hit for hit in hits if hit.entry_id in {"e0", "e3", "e50", "e111", "e202"}]
    assert [hit.entry_id for hit in same] == ["e0", "e3", "e50", "e111", "e202"]
    assert len({hit.score for hit in same}) == 1


def test_nothing_to_rank_is_no_hit() -> None:
    assert rank([], np.ones(2, dtype=np.float32), limit=5) == []
    assert (
        rank(parts_of(np.empty((0, 2), dtype=np.float32), []), np.ones(2, np.float32), limit=5)
        == []
    )
