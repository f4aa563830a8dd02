"""Waiting for a condition instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.01


def wait_until(
    condition: Callable[[], T],
    *,
    describe: str | Callable[[], str],
    timeout: float = 30.0,
) -> T:
    """Return the condition's first true value.

    Raises TimeoutError with the description (called late, so that it can show what went wrong)
    once `timeout` seconds have passed.
    """
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            what = describe if isinstance(describe, str) else describe()
            raise TimeoutError(f"not within {timeout:g} s: {what}")
        time.sleep(POLL_S)
    return value
