"""Cursors: a position in one list, opaque to the client, and good for that list only."""

import binascii
import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from app.lineage.errors import InvalidCursor

DIGEST_BYTES = 8
# What both databases can compare with.
MAX_POSITION = 2**63


def encode(position: Any, *, listing: str) -> str | None:
    """Return the cursor of a position (JSON) in the list of this name; None stays None."""
    if position is None:
        return None
    payload = json.dumps(position, separators=(",", ":")).encode()
    return urlsafe_b64encode(_digest(payload, listing) + payload).decode().rstrip("=")


def decode(cursor: str | None, *, listing: str, like: Any) -> Any:
    """Return the position, None without a cursor.

    InvalidCursor where it is of another list, or not of the shape of `like`: whoever reads this
    can make a cursor, and it must be no more than a position.
    """
    if cursor is None:
        return None
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        raise InvalidCursor from None
    digest, payload = raw[:DIGEST_BYTES], raw[DIGEST_BYTES:]
    if digest != _digest(payload, listing):
        raise InvalidCursor
    try:
        position = json.loads(payload)
    except (ValueError, RecursionError):
        raise InvalidCursor from None
    if not _fits(position, like):
        raise InvalidCursor
    return position


def _fits(position: Any, like: Any) -> bool:
    if isinstance(like, list):
        return (
            isinstance(position, list)
            and len(position) == len(like)
            and all(map(_fits, position, like))
        )
    if type(position) is not type(like):
        return False
    if isinstance(position, str):
        return position.isascii() and position.isprintable()
    return not isinstance(position, int) or 0 <= position < MAX_POSITION


def _digest(payload: bytes, listing: str) -> bytes:
    """Bind a position to its list: against mistakes, not attackers; a position is no secret."""
    key = hashlib.sha256(listing.encode()).digest()
    return hashlib.blake2s(payload, key=key, digest_size=DIGEST_BYTES).digest()
