"""The limits of texts: what is blank, and what is too long."""

from app.lineage.errors import InvalidInput, TooLarge

MAX_QUERY_BYTES = 16 * 1024


def check_text(
    text: str, *, max_bytes: int, what: str = "text", place: tuple[str | int, ...]
) -> None:
    """Refuse a blank text (InvalidInput) and one over the limit in UTF-8 bytes (TooLarge)."""
    if not text.strip():
        raise InvalidInput(f"A blank {what} is not allowed.", place=place)
    check_size(text, max_bytes=max_bytes, what=what)


def check_size(text: str, *, max_bytes: int, what: str) -> None:
    """Refuse a text over the limit in UTF-8 bytes (TooLarge)."""
    if len(text) * 4 > max_bytes and (size := len(text.encode())) > max_bytes:
        raise TooLarge(what, limit=max_bytes, size=size)
