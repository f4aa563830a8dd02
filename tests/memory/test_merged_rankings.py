"""How the rankings of two collections become one."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.lineage.entry import Collection, Entry
from app.memory.recall import merged
from app.memory.search_entries import Found

BEGUN = datetime(2026, 5, 2, tzinfo=UTC)


def entry(number: int) -> Entry:
    return Entry(
        id=f"e{number}",
        checkpoint="exp",
        collection=Collection.DAILY_NOTE,
        node=None,
        text="",
        metadata={},
        created_at=BEGUN + timedelta(seconds=number),
        seq=number,
        sha256=b"",
        indexed=True,
        refused=None,
    )


def ranking(scores: list[float | None], *, first: int = 0) -> list[Found]:
    return [
        Found(entry(first + place), rank=place + 1, score=score)
        for place, score in enumerate(scores)
    ]


scores = st.lists(st.floats(0, 1), max_size=6).map(lambda some: sorted(some, reverse=True))


@given(left=scores, right=scores)
def test_scored_rankings_merge_by_score_each_in_its_own_order(
    left: list[float], right: list[float]
) -> None:
    one, other = ranking([*left]), ranking([*right], first=10)

    together = merged(one, other)

    assert [hit.score for hit in together] == sorted(left + right, reverse=True)
    assert [hit.rank for hit in together] == list(range(1, len(together) + 1))
    for each in (one, other):
        ids = [hit.entry.id for hit in each]
        assert [hit.entry.id for hit in together if hit.entry.id in ids] == ids


def test_equal_scores_are_oldest_first() -> None:
    assert [hit.entry.seq for hit in merged(ranking([0.5], first=7), ranking([0.5]))] == [0, 7]


def test_rankings_without_scores_take_turns() -> None:
    together = merged(ranking([None] * 3), ranking([None] * 2, first=10))

    assert [hit.entry.seq for hit in together] == [0, 10, 1, 11, 2]


def test_a_ranking_without_scores_takes_turns_with_one_that_has_some() -> None:
    together = merged(ranking([0.9, 0.8]), ranking([None], first=10))

    assert [hit.entry.seq for hit in together] == [0, 10, 1]


def test_what_has_no_direction_comes_last_behind_scores() -> None:
    together = merged(ranking([0.9, None]), ranking([0.1], first=10))

    assert [hit.entry.seq for hit in together] == [0, 10, 1]


def test_nothing_merges_with_anything() -> None:
    assert merged([], []) == []
    assert [hit.entry.seq for hit in merged([], ranking([None, None]))] == [0, 1]
