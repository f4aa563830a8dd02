"""How long to wait before the next try."""

import pytest

from app.backoff import Backoff

BACKOFF = Backoff(first_s=1.0, longest_s=60.0)


def pauses(failures: int) -> list[float]:
    return [BACKOFF.pause_s(failures) for _ in range(500)]


@pytest.mark.parametrize(("failures", "longest"), [(1, 1.0), (2, 2.0), (3, 4.0), (6, 32.0)])
def test_a_pause_doubles_with_each_failure(failures: int, longest: float) -> None:
    found = pauses(failures)

    assert longest / 2 <= min(found)
    assert max(found) <= longest


@pytest.mark.parametrize("failures", [7, 31, 32, 1000, 10**9])
def test_a_pause_never_passes_the_longest(failures: int) -> None:
    found = pauses(failures)

    assert min(found) >= 30.0
    assert max(found) <= 60.0


def test_replicas_that_failed_together_do_not_come_back_together() -> None:
    assert len(set(pauses(3))) > 400


def test_microseconds_are_those_of_the_seconds() -> None:
    assert 500_000 <= BACKOFF.pause_us(1) <= 1_000_000
