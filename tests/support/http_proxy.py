"""A fault proxy that reads HTTP: it fails single requests, before or after they are carried out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus

from tests.support.proxy import Endpoint, FaultProxy, closing

END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True)
class Request:
    """What a client sent; `path` is without its query."""

    method: str
    path: str
    content: bytes


class Lost(Enum):
    """The request is carried out, and its client never knows."""

    CUT = "the connection ends without a byte"
    HELD = "the connection stays, until the proxy closes or cuts it, and nothing comes"


@dataclass(frozen=True)
class Answers:
    """The client gets this status and a body like Letta's; `carried_out` says what became of it."""

    status: int
    carried_out: bool = False

    def encoded(self) -> bytes:
        """Return the bytes of the answer."""
        body = b'{"detail":"An unknown error occurred"}'
        phrase = HTTPStatus(self.status).phrase
        head = (
            f"HTTP/1.1 {self.status} {phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close"
        )
        return head.encode() + END_OF_HEAD + body


Fate = Lost | Answers | None
"""What befalls a request; None passes it and its answer on."""

Fault = Callable[[Request], Fate]


def nothing(_: Request) -> Fate:
    """Pass everything on."""
    return None


class HttpFaultProxy(FaultProxy):
    """Forward one request a connection, each as the fault of the moment says.

    The faults of a plain proxy work as well; a delay is before the request is passed on. A request
    that was passed on is carried out even where its client hangs up.
    """

    def __init__(self, upstream: Endpoint) -> None:
        super().__init__(upstream)
        self._fault: Fault = nothing
        self.failed: list[Request] = []

    def meddle(self, fault: Fault) -> None:
        """Ask `fault` what befalls each request from now on; `restore` ends it."""
        self._call(self._meddle(fault))

    async def _meddle(self, fault: Fault) -> None:
        self._fault = fault

    async def _restore(self) -> None:
        self._fault = nothing
        await super()._restore()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        limit = self._cut_after
        try:
            head, request = await _read(reader)
        except asyncio.IncompleteReadError:  # a client that said nothing
            return
        fate = self._fault(request)
        if fate is not None:
            self.failed.append(request)
        await self._held_back()
        if isinstance(fate, Answers) and not fate.carried_out:
            writer.write(fate.encoded())
            return
        answer = await self._carry_out(head, request)
        await self._flowing.wait()
        if fate is None:
            writer.write(answer[:limit])
        elif isinstance(fate, Answers):
            writer.write(fate.encoded())
        elif fate is Lost.HELD:
            await asyncio.get_running_loop().create_future()

    async def _carry_out(self, head: bytes, request: Request) -> bytes:
        """Return the whole answer of the server, which ends the connection behind it."""
        reader, writer = await self._upstream.connect()
        async with closing(writer):
            writer.write(head.removesuffix(END_OF_HEAD) + b"\r\nconnection: close" + END_OF_HEAD)
            writer.write(request.content)
            return await reader.read()


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, Request]:
    """Return the head of the next request, without its `connection`, and the request."""
    lines = (await reader.readuntil(END_OF_HEAD)).removesuffix(END_OF_HEAD).split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    lengths = [
        int(line.partition(b":")[2])
        for line in lines
        if line.lower().startswith(b"content-length:")
    ]
    method, target, _ = lines[0].decode().split(" ")
    content = await reader.readexactly(lengths[0] if lengths else 0)
    return b"\r\n".join(kept) + END_OF_HEAD, Request(method, target.partition("?")[0], content)
