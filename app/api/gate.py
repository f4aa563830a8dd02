"""What stands in front of every route: who calls, and how much is sent."""

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.callers import Doorkeeper
from app.api.problems import error_response
from app.lineage.errors import LineageError, TooLarge

SNAPSHOT_PATH = re.compile(r"/checkpoints/[^/]+/(restore|resume)")


class Gate:
    """Refuses unknown callers and bodies over the limit before anything of them is read."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        doorkeeper: Doorkeeper,
        max_body_bytes: int,
        max_snapshot_bytes: int,
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._max_body_bytes = max_body_bytes
        self._max_snapshot_bytes = max_snapshot_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through with its caller in the state, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            scope["state"]["caller"] = await self._doorkeeper.caller(
                scope["method"], scope["path"], scope["headers"]
            )
            bounded = self._bounded(scope, receive)
        except LineageError as error:
            response = error_response(error, request_id=scope["state"]["request_id"])
            await response(scope, receive, send)
            return
        await self._app(scope, bounded, send)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Check the announced length; where none is announced, count what comes."""
        takes_snapshot = SNAPSHOT_PATH.fullmatch(scope["path"]) is not None
        # Packed it may be as long as unpacked: what cannot be packed is not made shorter.
        limit = self._max_snapshot_bytes if takes_snapshot else self._max_body_bytes
        announced = next(
            (value for name, value in scope["headers"] if name == b"content-length"), None
        )
        if announced is not None:
            if int(announced) > limit:
                raise TooLarge("The body", limit=limit, size=int(announced))
            return receive
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise TooLarge("The body", limit=limit)
            return message

        return counted
