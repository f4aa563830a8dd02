"""Cursors: a position in one list, opaque to the client, and good for that list only."""

import binascii
import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from app.lineage.errors import InvalidCursor

DIGEST_BYTES = 8


def encode(position: Any, *, listing: str) -> str | None:
    """Return the cursor of a position (JSON) in the list of this name; None stays None."""
    if position is None:
        return None
    payload = json.dumps(position, separators=(",", ":")).encode()
    return urlsafe_b64encode(_digest(payload, listing) + payload).decode().rstrip("=")


def decode(cursor: str | None, *, listing: str) -> Any:
    """Return the position, None without a cursor; InvalidCursor where it is of another list."""
    if cursor is None:
        return None
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        raise InvalidCursor from None
    digest, payload = raw[:DIGEST_BYTES], raw[DIGEST_BYTES:]
    if digest != _digest(payload, listing):
        raise InvalidCursor
    return json.loads(payload)


def _digest(payload: bytes, listing: str) -> bytes:
    """Bind a position to its list: against mistakes, not attackers; a position is no secret."""
    key = hashlib.sha256(listing.encode()).digest()
    return hashlib.blake2s(payload, key=key, digest_size=DIGEST_BYTES).digest()
