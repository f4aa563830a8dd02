"""Fenced code: where it ends, and which lines are of it. A fence without an end is none."""

import re
from collections.abc import Callable, Sequence

from app.layers.markdown.lines import MARKER, lines_of

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def past_fence(lines: Sequence[str], at: int, line: str) -> int | None:
    """Return where a fence that the line at this place begins ends; None where it begins none.

    `line` is that line without what stands before a fence: a list item's marker, a byte order mark.
    """
    opener = FENCE.match(line)
    if opener is None:
        return None
    ends = (end for end in range(at + 1, len(lines)) if _closes(lines[end], opener[1]))
    return next((end + 1 for end in ends), None)


def in_fences(lines: Sequence[str]) -> list[bool]:
    """Tell of each line whether it is of a fence that has an end, in a list item or not."""
    told: list[bool] = []
    while (at := len(told)) < len(lines):
        marker = MARKER.match(lines[at])
        first = lines[at][marker.end() :] if marker else lines[at]
        end = past_fence(lines, at, first)
        told += [False] if end is None else [True] * (end - at)
    return told


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Change the lines outside of fences; what is within a fence that ends is left alone."""
    lines = lines_of(text)
    return "".join(
        line if fenced else change(line)
        for line, fenced in zip(lines, in_fences(lines), strict=True)
    )


def _closes(line: str, opener: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(opener) and set(mark) == {opener[0]}
