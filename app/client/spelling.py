"""How what was given is spelt in a request, so that it says there what it said here."""

import json
from typing import Any
from urllib.parse import quote

# Of a path, parts that whoever reads it takes away, percent-encoded or not.
LOST = {"", ".", ".."}


class BadSegment(ValueError):
    """What was given cannot be one part of a path; the message names it."""


def path_of(*segments: str) -> str:
    """Return the path of these parts; each stays one part, whatever characters it has.

    BadSegment for an empty one, `.`, `..`, and one that is not Unicode.
    """
    return "".join(f"/{_segment(segment)}" for segment in segments)


def body_of(value: Any) -> bytes:
    """Return JSON; TypeError for what JSON has no form for.

    NaN and unpaired surrogates go out as they are: the service names their place.
    """
    return json.dumps(value).encode()


def _segment(segment: str) -> str:
    if segment in LOST:
        raise BadSegment(f"{segment!r} is no id.")
    try:
        return quote(segment, safe="")
    except UnicodeEncodeError:
        raise BadSegment(f"{segment!r} is no id: it is not Unicode.") from None
