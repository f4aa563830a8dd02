"""Instants as the tables keep them: whole microseconds since the epoch, UTC."""

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def now_us() -> int:
    """Return the present instant."""
    return time.time_ns() // 1000


def from_us(instant: int) -> datetime:
    """Return the aware UTC datetime of an instant."""
    return EPOCH + timedelta(microseconds=instant)


def to_us(instant: datetime) -> int:
    """Return the instant of an aware datetime."""
    return (instant - EPOCH) // MICROSECOND
