"""Fenced code: where it ends, and which lines are of it. A fence without an end is none.

Comments are looked for as well, for neither holds a heading: a fence that is begun in a comment, or
a comment that is begun in a fence, is none.
"""

import re
from collections.abc import Callable, Sequence

from app.layers.markdown.lines import BOM, MARKER, lines_of

# A backtick further on makes it code within a line (CommonMark 0.31, 4.5).
FENCE_MARK = r"(?:`{3,}(?!.*`)|~{3,})"
FENCE = re.compile(rf"[ \t]*({FENCE_MARK})")


def past_fence(lines: Sequence[str], at: int, line: str) -> int | None:
    """Return where a fence that the line at this place begins ends; None where it begins none.

    `line` is that line without what stands before a fence: a list item's marker, a byte order mark.
    """
    opener = FENCE.match(line)
    if opener is None:
        return None
    ends = (end for end in range(at + 1, len(lines)) if _closes(lines[end], opener[1]))
    return next((end + 1 for end in ends), None)


def past_comment(lines: Sequence[str], at: int) -> int | None:
    """Return where a comment that begins with the line at this place ends; None where none does.

    One that goes on past a blank line is a text like any other: an end that somebody forgot would
    hide all that follows.
    """
    if not lines[at].removeprefix(BOM).lstrip().startswith("<!--"):
        return None
    for end in range(at, len(lines)):
        if "-->" in lines[end]:
            return end + 1
        if not lines[end].strip():
            return None
    return None


def set_aside(lines: Sequence[str]) -> list[bool]:
    """Tell of each line whether it is of a comment, or of a fence that has an end.

    A fence may be in a list item.
    """
    told: list[bool] = []
    while (at := len(told)) < len(lines):
        marker = MARKER.match(lines[at])
        first = lines[at][marker.end() :] if marker else lines[at]
        end = past_comment(lines, at) or past_fence(lines, at, first)
        told += [False] if end is None else [True] * (end - at)
    return told


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Change the lines outside of fences and comments; what is within one is left alone."""
    lines = lines_of(text)
    return "".join(
        line if aside else change(line) for line, aside in zip(lines, set_aside(lines), strict=True)
    )


def _closes(line: str, opener: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(opener) and set(mark) == {opener[0]}
