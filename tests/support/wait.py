"""Waiting for a condition instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.01
LONGEST_POLL_S = 0.5
# Of the time that went by already: looks cost what is being waited for some of its own time.
SHARE = 0.02


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
    started = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - started
        if waited > timeout:
            what = describe if isinstance(describe, str) else describe()
            raise TimeoutError(f"not within {timeout:g} s: {what}")
        time.sleep(min(POLL_S + SHARE * waited, LONGEST_POLL_S))
    return value
