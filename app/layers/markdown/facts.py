"""What a block says, however it is written: as plain text, as a fact, as an item of a list."""

import re
import textwrap

from app.layers.markdown.blocks import statements
from app.layers.markdown.fences import FENCE
from app.layers.markdown.lines import BOM, INNER, MARKER
from app.layers.markdown.shields import without_open_fences, without_shields

BULLET = re.compile(r"[-*+](?:[ \t]+|$|(?=\n))")


def plain(text: str) -> str:
    """Return a block without its bullet, without space around it and with line feeds.

    A number stays: `2024. A good year` is a list item to Markdown, and the number says something.
    """
    said = text.removeprefix(BOM).replace("\r\n", "\n").strip()
    while bullet := BULLET.match(said):
        said = said[bullet.end() :].strip()
    return said


def fact(text: str) -> str:
    """Return the normal form of a block: two are the same fact where these are equal.

    The list marker, white space and the shields of headings and fences do not count; within a
    block with fenced code, white space does, but for the indentation of the whole.
    """
    first, *rest = plain(text).split("\n")
    said = "\n".join([first, textwrap.dedent("\n".join(rest))]) if rest else first
    said = without_shields(said)
    if any(FENCE.match(line) for line in said.split("\n")):
        return "\n".join(line.rstrip() for line in said.split("\n")).strip()
    return " ".join(said.split())


def facts(text: str) -> list[str]:
    """Return the facts of a text in order, each once."""
    return list(dict.fromkeys(fact(block.text) for block in statements(text)))


def as_item(text: str) -> str:
    """Return a block as a list item that reads as the same fact, with line feeds."""
    first, *rest = without_open_fences(plain(text)).split("\n")
    below = _is_item(text) and all(line.startswith(INNER) for line in rest if line.strip())
    if not below:
        rest = [f"  {line}" if line.strip() else "" for line in rest]
    return "\n".join([f"- {first}", *rest]) + "\n"


def _is_item(text: str) -> bool:
    return MARKER.match(text.removeprefix(BOM).lstrip(" \t\r\n")) is not None
