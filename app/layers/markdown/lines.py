"""A text line by line, and the marks that a line may begin with."""

import re

BOM = "\ufeff"
# What makes a line the first one of a list item.
BULLET_OR_NUMBER = r"(?:[-*+]|\d{1,9}[.)])"
MARKER = re.compile(rf"( {{0,3}})({BULLET_OR_NUMBER})([ \t]+|(?=\r?(?:\n|$)))")
# Indented so far, a line goes on with the list item above it.
INNER = ("  ", "\t")


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def newline_of(text: str) -> str:
    """Return the line end that the text uses first, a line feed where it has none."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"
