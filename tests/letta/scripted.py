"""A way to the real Letta with scripted answers: those that it cannot be made to give itself.

Whatever no rule speaks of is passed on, and so is its answer.
"""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx
import uvicorn
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

from tests.support.ports import LOOPBACK, port_of

# Of one connection alone, or told anew by whoever sends.
OF_THE_HOP = {"host", "connection", "content-length", "transfer-encoding", "content-encoding"}
INSERT = r"POST /v1/archives/[^/]+/passages/batch"
SEARCH = r"GET /v1/agents/[^/]+/archival-memory/search"
LIST = r"GET /v1/agents/[^/]+/archival-memory"
MAKE_AGENT = r"POST /v1/agents/"
MAKE_ARCHIVE = r"POST /v1/archives/"
ATTACH = r"PATCH /v1/agents/[^/]+/archives/attach/[^/]+"
SET_BLOCK = r"PATCH /v1/agents/[^/]+/core-memory/blocks/[^/]+"
ANYTHING = r".*"


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def texts(self) -> list[str]:
        """The texts of a batch."""
        return [passage["text"] for passage in json.loads(self.body)["passages"]]


@dataclass
class Exchange:
    """One request, and the way to its client."""

    asked: Asked
    upstream: str
    receive: ASGIReceiveCallable
    send: ASGISendCallable

    async def passed_on(self) -> httpx.Response:
        """Let Letta carry the request out, and return its answer."""
        headers = [(k, v) for k, v in self.asked.headers.items() if k not in OF_THE_HOP]
        url = f"{self.upstream}{self.asked.path}" + (
            f"?{self.asked.query}" * bool(self.asked.query)
        )
        async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
            return await client.request(
                self.asked.method, url, headers=headers, content=self.asked.body
            )

    async def begin(self, status: int, headers: dict[str, str]) -> None:
        """Send the head of an answer."""
        await self.send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
                "trailers": False,
            }
        )

    async def body(self, sent: bytes, *, more: bool = False) -> None:
        """Send a part of the body, the last one unless there is more."""
        await self.send({"type": "http.response.body", "body": sent, "more_body": more})

    async def until_the_client_hangs_up(self) -> None:
        """Wait, saying nothing."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


Reply = Callable[[Exchange], Awaitable[None]]


@dataclass
class _Rule:
    pattern: re.Pattern[str]
    reply: Reply
    left: int | None
    when: Callable[[Asked], bool]

    def takes(self, asked: Asked) -> bool:
        if self.left == 0 or not self.pattern.fullmatch(f"{asked.method} {asked.path}"):
            return False
        if not self.when(asked):
            return False
        if self.left is not None:
            self.left -= 1
        return True


def always(_: Asked) -> bool:
    return True


@dataclass
class ScriptedLetta:
    """Stands before the Letta at `upstream`; `asked` is all that came in."""

    upstream: str
    asked: list[Asked] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._socket = socket.create_server((LOOPBACK, 0))
        config = uvicorn.Config(self._answer, interface="asgi3", lifespan="off", log_config=None)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    @property
    def base_url(self) -> str:
        """What a service is configured with."""
        return f"http://{LOOPBACK}:{port_of(self._socket)}"

    def script(
        self,
        what: str,
        reply: Reply,
        *,
        times: int | None = None,
        when: Callable[[Asked], bool] = always,
    ) -> None:
        """Give this reply to requests whose method and path match, so many times or for good."""
        self._rules.append(_Rule(re.compile(what), reply, times, when))

    def restore(self) -> None:
        """Pass everything on again."""
        self._rules.clear()

    def count(self, what: str) -> int:
        """Return how many requests came in whose method and path match."""
        return sum(bool(re.fullmatch(what, f"{item.method} {item.path}")) for item in self.asked)

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
        asked = Asked(
            scope["method"],
            scope["path"],
            scope["query_string"].decode(),
            {name.decode(): value.decode() for name, value in scope["headers"]},
            await _body(receive),
        )
        self.asked.append(asked)
        rule = next((rule for rule in list(self._rules) if rule.takes(asked)), None)
        reply = passes_on if rule is None else rule.reply
        await reply(Exchange(asked, self.upstream, receive, send))


async def _body(receive: ASGIReceiveCallable) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        assert message["type"] == "http.request"
        body += message["body"]
        more = message["more_body"]
    return body


async def passes_on(exchange: Exchange) -> None:
    """Answer as Letta does."""
    answer = await exchange.passed_on()
    headers = {k: v for k, v in answer.headers.items() if k not in OF_THE_HOP}
    await exchange.begin(answer.status_code, headers)
    await exchange.body(answer.content)


async def is_carried_out_and_cut(exchange: Exchange) -> None:
    """Let Letta do it; the client gets half of the answer and a closed connection."""
    answer = await exchange.passed_on()
    length = str(len(answer.content) + 10)
    await exchange.begin(200, {"content-type": "application/json", "content-length": length})
    await exchange.body(answer.content[: len(answer.content) // 2])


async def says_nothing(exchange: Exchange) -> None:
    """Stay silent until the client goes away."""
    await exchange.until_the_client_hangs_up()


async def says_nothing_after_the_head(exchange: Exchange) -> None:
    """Send a head and a part of the body, then stay silent until the client goes away."""
    await exchange.begin(200, {"content-type": "application/json"})
    await exchange.body(b'{"results": [', more=True)
    await exchange.until_the_client_hangs_up()


async def drips(exchange: Exchange) -> None:
    """Send a byte at a time, for ever: no single read takes long."""
    await exchange.begin(200, {"content-type": "application/json"})
    gone = asyncio.ensure_future(exchange.until_the_client_hangs_up())
    while not gone.done():
        await exchange.body(b" ", more=True)
        await asyncio.wait([gone], timeout=0.1)


def says(
    body: str, *, status: int = 200, kind: str = "application/json", location: str | None = None
) -> Reply:
    """Answer with this text; Letta hears nothing of it."""

    async def reply(exchange: Exchange) -> None:
        headers = {"content-type": kind} | ({"location": location} if location else {})
        await exchange.begin(status, headers)
        await exchange.body(body.encode())

    return reply


def answers_with(change: Callable[[Any], Any]) -> Reply:
    """Let Letta do it, and change the JSON that it answers; None makes an empty body of it."""

    async def reply(exchange: Exchange) -> None:
        answer = await exchange.passed_on()
        changed = change(answer.json())
        await exchange.begin(answer.status_code, {"content-type": "application/json"})
        await exchange.body(b"" if changed is None else json.dumps(changed).encode())

    return reply
