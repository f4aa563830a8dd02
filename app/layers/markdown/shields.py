r"""Shields: a backslash in front of what would begin a section, at the margin, or a fence.

A fence is one in a list item too. A backslash that stood there before makes two, so that each text
comes back as it was.
"""

import re

from app.layers.markdown.fences import FENCE_MARK, outside_fences
from app.layers.markdown.lines import BULLET_OR_NUMBER

PREFIX = rf"([ \t]*(?:{BULLET_OR_NUMBER}[ \t]+)?)"
FENCE_AHEAD = rf"(?=\\*{FENCE_MARK})"
HEADING_AHEAD = r"(?=\\*#{1,2}(?:[ \t]|\r?\n?$))"
SHIELDABLE = re.compile(rf"\A(?:{PREFIX}{FENCE_AHEAD}|{HEADING_AHEAD})")
SHIELDABLE_FENCE = re.compile(rf"\A{PREFIX}{FENCE_AHEAD}")
SHIELDED = re.compile(rf"\A(?:{PREFIX}\\{FENCE_AHEAD}|\\{HEADING_AHEAD})")
FENCES = re.compile(rf"(?m)^{PREFIX}(?={FENCE_MARK})")
SHIELDS = re.compile(rf"(?m)^{PREFIX}\\+(?=#{{1,6}}(?:[ \t]|$)|{FENCE_MARK})")


def shielded(text: str) -> str:
    """Return a text in which nothing begins a section, and every fence has its end.

    Headings of the first two levels and fences without an end get a shield; `unshielded` takes it
    away again.
    """
    return _shielded(text, SHIELDABLE)


def unshielded(text: str) -> str:
    """Return a text without the backslashes that `shielded` put there."""
    return outside_fences(text, lambda line: SHIELDED.sub(r"\1", line, count=1))


def without_open_fences(text: str) -> str:
    """Return a text in which every fence has its end; headings stay as they are."""
    return _shielded(text, SHIELDABLE_FENCE)


def without_fences(item: str) -> str:
    """Return a list item whose fences are shielded, each of them: none ends one further up."""
    return FENCES.sub(r"\1\\", item)


def without_shields(text: str) -> str:
    """Return a text as two are compared: with no backslash left before a heading or a fence."""
    return SHIELDS.sub(r"\1", text)


def _shielded(text: str, shieldable: re.Pattern[str]) -> str:
    return outside_fences(text, lambda line: shieldable.sub(r"\1\\", line, count=1))
