"""A real HTTP server on loopback whose answers a test writes down beforehand."""

import json
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import uvicorn
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

from tests.support.ports import LOOPBACK, port_of


@dataclass(frozen=True)
class Request:
    """What came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        texts: list[str] = self.body["input"]
        return texts


Answer = Callable[[Request, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]


class Endpoint:
    """Gives each request the next answer of `script`, and `otherwise` when that has run out."""

    def __init__(self, otherwise: Answer) -> None:
        self._acts = 0
        self.begin(otherwise)
        self._socket = socket.create_server((LOOPBACK, 0))
        config = uvicorn.Config(self._answer, interface="asgi3", lifespan="off", log_config=None)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    @property
    def url(self) -> str:
        """What a client is configured with; good until the next `begin`."""
        return f"http://{LOOPBACK}:{port_of(self._socket)}{self.path}"

    @property
    def path(self) -> str:
        """The path of `url`."""
        return f"/{self._acts}/v1"

    def begin(self, otherwise: Answer) -> None:
        """Start anew at another path, so that a request left over from a test disturbs no other."""
        self._acts += 1
        self.script: deque[Answer] = deque()
        self.otherwise = otherwise
        self.requests: list[Request] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _answer(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        assert scope["type"] == "http"
        body = b""
        more = True
        while more:
            message = await receive()
            assert message["type"] == "http.request"
            body += message["body"]
            more = message["more_body"]
        if not scope["path"].startswith(self.path):
            await content(b"", status=404)(Request(scope["path"], {}, {}), receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        request = Request(scope["path"], headers, json.loads(body))
        self.requests.append(request)
        answer = self.script.popleft() if self.script else self.otherwise
        await answer(request, receive, send)


def embeddings(vector_of: Callable[[str], list[float]]) -> Answer:
    """Answer as the contract says, in the order asked."""

    async def answer(
        request: Request, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        items = [item(place, vector_of(text)) for place, text in enumerate(request.texts)]
        await data(*items)(request, receive, send)

    return answer


def item(index: int, vector: list[float]) -> dict[str, Any]:
    """One vector, as the contract shapes it."""
    return {"object": "embedding", "index": index, "embedding": vector}


def data(*items: dict[str, Any]) -> Answer:
    """Answer 200 with these vectors, whatever was asked."""
    return body(json.dumps({"object": "list", "model": "some", "data": items}))


def body(text: str, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Answer with this text; a lone surrogate in it is sent as the byte it stands for."""
    return content(text.encode(errors="surrogateescape"), status=status, headers=headers)


def cut_short(text: str) -> Answer:
    """Promise one byte more than is sent, then close the connection."""
    return content(text.encode(), headers={"content-length": str(len(text) + 1)})


def content(sent: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Answer with these bytes."""

    async def answer(_: Request, __: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (name.encode(), value.encode()) for name, value in (headers or {}).items()
                ],
                "trailers": False,
            }
        )
        await send({"type": "http.response.body", "body": sent, "more_body": False})

    return answer


async def silence(_: Request, receive: ASGIReceiveCallable, __: ASGISendCallable) -> None:
    """Send nothing until the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def headers_then_silence(
    request: Request, receive: ASGIReceiveCallable, send: ASGISendCallable
) -> None:
    """Send headers and half a body, then nothing until the client goes away."""
    await send({"type": "http.response.start", "status": 200, "headers": [], "trailers": False})
    await send({"type": "http.response.body", "body": b'{"data": [', "more_body": True})
    await silence(request, receive, send)
