"""A long text in one short line."""

import unicodedata

ZERO_WIDTH_JOINER = "\u200d"


def cut(text: str, length: int) -> str:
    """Return one line of at most `length` characters, cut between words or at least characters."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    end = length - 1
    while end > 1 and _joined(line, end):
        end -= 1
    space = line.rfind(" ", 0, end + 1)
    # Scripts without spaces are cut between characters.
    end = space if space >= length // 2 else end
    return f"{line[:end].rstrip()}…"


def _joined(line: str, at: int) -> bool:
    """Tell whether the character at this place belongs to the one before it."""
    before, character = line[at - 1], line[at]
    return (
        unicodedata.category(character)[0] == "M"
        or ZERO_WIDTH_JOINER in (before, character)
        or _is_skin_tone(character)
        or (_is_half_flag(before) and _is_half_flag(character))
    )


def _is_skin_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff"


def _is_half_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
