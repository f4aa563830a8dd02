"""Request ids, metrics, the request log, and the answer to a bug."""

import re
import time
from functools import lru_cache

import structlog
from prometheus_client import Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.metrics import Metrics
from app.api.problems import INTERNAL_ERROR, problem_response
from app.logs import RequestLog
from app.randomness import random_id

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
HEADER = b"x-request-id"

log = structlog.get_logger("letta_lineage.requests")


class Telemetry:
    """The outermost layer: gives each request its id, and tells what became of it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, requests: RequestLog) -> None:
        self._app = app
        self._requests = requests
        # Looking a child up by its labels costs more than counting does.
        self._counter = lru_cache(maxsize=1024)(metrics.requests.labels)
        self._timer = lru_cache(maxsize=256)(metrics.seconds.labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; whatever escapes the layers below is answered as a bug of ours."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id)
        begun = time.perf_counter()
        try:
            await self._app(scope, receive, answer.send)
        except ClientDisconnect:
            pass  # It hung up before its body was whole: no fault of ours, and nobody to answer.
        except Exception:
            log.exception("request_failed", request_id=request_id)
            if answer.status is None:
                await _bug(request_id)(scope, receive, answer.send)
        finally:
            self._tell(scope, answer, time.perf_counter() - begun)

    def _tell(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        route = scope.get("route")
        operation = getattr(route, "operation_id", None) or getattr(route, "name", "none")
        # A client that hung up before its answer began has no status.
        status = answer.status or 499
        counter: Counter = self._counter(operation, status)
        timer: Histogram = self._timer(operation)
        counter.inc()
        timer.observe(seconds)
        self._requests.tell(
            {
                "request_id": answer.request_id,
                "method": scope["method"],
                "path": scope["path"],
                "operation": operation,
                "status": status,
                "ms": round(seconds * 1000, 2),
            }
        )


class _Answer:
    """Sends an answer with its request id, and remembers its status."""

    __slots__ = ("_send", "request_id", "status")

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (HEADER, self.request_id.encode())]
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """Take a caller's own id where it is a harmless one."""
    for name, value in scope["headers"]:
        if name == HEADER and REQUEST_ID.fullmatch(value):
            return str(value, "ascii")
    return random_id()


def _bug(request_id: str) -> ASGIApp:
    return problem_response(
        "internal-error",
        INTERNAL_ERROR,
        detail="The service failed at this request; its log tells more under the request id.",
        request_id=request_id,
    )
