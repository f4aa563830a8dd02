"""A text as blocks: headings, list items with all that is below them, prose, and the rest."""

import re
from dataclasses import dataclass
from enum import StrEnum

from app.layers.markdown.fences import past_comment, past_fence
from app.layers.markdown.lines import BOM, INNER, MARKER, lines_of
from app.layers.words import has_words

HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\r?\n?")
RULE = re.compile(r" {0,3}([-*_=])(?:[ \t]*\1){2,}[ \t]*\r?\n?")
FRONT = "---"
KEY = re.compile(r"[A-Za-z_][\w-]*:(?:\s|$)")


class Kind(StrEnum):
    """What a block is; only items and prose say something of their own."""

    HEADING = "heading"
    ITEM = "item"
    PROSE = "prose"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Block:
    """A slice of a text, from `start` to `end`, its last line's end included."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def level(self) -> int:
        """The level of a heading, 1 to 6; 0 of what is none."""
        return len(found[1]) if (found := self._heading()) else 0

    @property
    def title(self) -> str:
        """The words of a heading."""
        return (found[2] or "").strip() if (found := self._heading()) else ""

    def _heading(self) -> re.Match[str] | None:
        return HEADING.fullmatch(self.text.removeprefix(BOM))


def blocks(text: str) -> list[Block]:
    """Return the blocks of a text in order; the blank lines between them belong to none.

    A list item takes along what is indented below it, a fence all up to its end; a fence that has
    no end is an ordinary line. Front matter, rules and comments are of kind OTHER.
    """
    lines = lines_of(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    at = 0
    while at < len(lines):
        if not lines[at].removeprefix(BOM).strip():
            at += 1
            continue
        kind, end = _block(lines, at)
        found.append(Block(kind, text[starts[at] : starts[end]], starts[at], starts[end]))
        at = end
    return found


def statements(text: str) -> list[Block]:
    """Return the blocks that say something: list items and prose with at least a word."""
    return [
        block
        for block in blocks(text)
        if block.kind in (Kind.ITEM, Kind.PROSE) and has_words(block.text)
    ]


def _block(lines: list[str], at: int) -> tuple[Kind, int]:
    line = lines[at].removeprefix(BOM)
    if at == 0 and line.rstrip() == FRONT and (end := _front(lines)):
        return Kind.OTHER, end
    if end := past_comment(lines, at):
        return Kind.OTHER, end
    if HEADING.fullmatch(line):
        return Kind.HEADING, at + 1
    if RULE.fullmatch(line):
        return Kind.OTHER, at + 1
    if (marker := MARKER.match(line)) is not None:
        return Kind.ITEM, _item(lines, at, line[marker.end() :])
    return Kind.PROSE, _prose(lines, at)


def _front(lines: list[str]) -> int | None:
    """Return where front matter ends: keys without a blank line; a rule above a text is none."""
    if not KEY.match("".join(lines[1:2])):
        return None
    for at, line in enumerate(lines[1:], start=1):
        if not line.strip():
            return None
        if line.rstrip() == FRONT:
            return at + 1
    return None


def _item(lines: list[str], at: int, first: str) -> int:
    end = past_fence(lines, at, first) or at + 1
    while end < len(lines):
        line = lines[end]
        if not line.strip():
            after = _past_blanks(lines, end)
            if after == len(lines) or not lines[after].startswith(INNER):
                return end
            end = after
        elif not line.startswith(INNER) and _begins(line):
            return end
        else:
            end = past_fence(lines, end, line) or end + 1
    return end


def _prose(lines: list[str], at: int) -> int:
    end = past_fence(lines, at, lines[at].removeprefix(BOM)) or at + 1
    while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
        end = past_fence(lines, end, lines[end]) or end + 1
    return end


def _begins(line: str) -> bool:
    """Tell whether a line ends the block above it."""
    return any(form.fullmatch(line) for form in (HEADING, RULE)) or MARKER.match(line) is not None


def _past_blanks(lines: list[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at
