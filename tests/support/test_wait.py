"""Waiting ends with the condition's value or with a description."""

import pytest

from tests.support.wait import wait_until


def test_the_first_true_value_is_returned() -> None:
    values = iter([None, 0, "", "ready", "later"])
    assert wait_until(lambda: next(values), describe="a word") == "ready"


def test_a_condition_that_never_holds_is_named_with_its_last_state() -> None:
    tries: list[int] = []
    with pytest.raises(TimeoutError, match="the door opens, tried"):
        wait_until(
            lambda: tries.append(1),
            timeout=0,
            describe=lambda: f"the door opens, tried {len(tries)} times",
        )


def test_a_condition_that_fails_is_not_waited_for() -> None:
    def broken() -> bool:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        wait_until(broken, describe="never asked")
