"""Times as RFC 3339 writes them, and no other form of ISO 8601."""

import re
from datetime import datetime

CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
OFFSET = rf"(?:Z|[+-]{CLOCK})"
INSTANT = re.compile(rf"\d{{4}}-\d\d-\d\dT{CLOCK}:[0-5]\d(?:\.\d+)?{OFFSET}?", re.ASCII)


def read_rfc3339(text: str) -> datetime | None:
    """Read a date and a time of day; None for anything else.

    Without its offset, the result has no zone: what that means, the caller knows.
    """
    # Python takes weeks, bare days and much else beside.
    if not INSTANT.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # a day that no calendar has
        return None
