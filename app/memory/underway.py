"""Writes whose entries are stored and whose answers wait for the archive."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Underway:
    """Lets a repeated request wait for the first one's answer, which the index may still change."""

    def __init__(self) -> None:
        self._ends: dict[bytes, asyncio.Event] = {}

    @contextmanager
    def begun(self, scope: bytes) -> Iterator[None]:
        """Hold back repeats of the request with this idempotency scope."""
        self._ends[scope] = end = asyncio.Event()
        try:
            yield
        finally:
            del self._ends[scope]
            end.set()

    async def ended(self, scope: bytes) -> bool:
        """Wait for the first request where it is under way; tell whether it was."""
        if (end := self._ends.get(scope)) is None:
            return False
        await end.wait()
        return True
