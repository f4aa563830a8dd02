"""Which form of an answer a request asks for, by its Accept header (RFC 9110, 12.5.1)."""

import re
from collections.abc import Sequence

JSON, MARKDOWN = "application/json", "text/markdown"
QUALITY = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


def prefers_markdown(accept: Sequence[str]) -> bool:
    """Tell whether Markdown is asked for rather than JSON, which is the answer in doubt.

    Of two qualities that are equal, the one of the type named more exactly counts.
    """
    ranges = [item for line in accept for item in line.split(",")]
    markdown = _preference(ranges, MARKDOWN)
    return markdown[0] > 0 and markdown > _preference(ranges, JSON)


def _preference(ranges: Sequence[str], media_type: str) -> tuple[float, int]:
    """Return the quality of a type, and how exactly the range that gives it names the type."""
    forms = ("*/*", f"{media_type.partition('/')[0]}/*", media_type)
    found = [(forms.index(name), quality) for name, quality in map(_read, ranges) if name in forms]
    exactness, quality = max(found, default=(0, 0.0))
    return quality, exactness


def _read(item: str) -> tuple[str, float]:
    """Read a range and its quality; one that is no number counts for nothing."""
    name, *parameters = (part.strip().lower() for part in item.split(";"))
    given = [part.partition("=")[2].strip() for part in parameters if part.startswith("q=")]
    if not given:
        return name, 1.0
    return name, float(given[0]) if QUALITY.fullmatch(given[0]) else 0.0
