"""How calls travel: attempts, waits and a deadline, for the sync and the async client alike."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_before_delay,
)

from app.backoff import Backoff
from app.client.calls import Call
from app.client.connection import NOT_JSON, NotTheService, Unreachable
from app.client.environment import Address
from app.client.errors import Problem, problem_of

T = TypeVar("T")

# What may pass: too many requests, and a service or a gateway that is away for a moment.
PASSING = {429, 502, 503, 504}
# A write waits 5 s for its index at most; a service that starts anew is back well within 2 minutes.
TIMEOUT_S = 30.0
DEADLINE_S = 120.0
BACKOFF = Backoff(first_s=0.25, longest_s=8.0)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call may take: one attempt, and all of them with the waits between."""

    timeout_s: float
    deadline_s: float

    def attempts(self) -> dict[str, Any]:
        """Return the arguments of a Retrying, one for each call, as it keeps the state of one."""
        return {
            "retry": retry_if_exception(passes),
            "stop": stop_before_delay(self.deadline_s),
            "wait": wait,
            "reraise": True,
        }

    def left_s(self, began: float) -> float:
        """Return the seconds until the deadline of a call that began then, 0 where it is past."""
        return max(0.0, self.deadline_s - (time.monotonic() - began))

    def timeout(self, began: float) -> httpx.Timeout:
        """Return how long an attempt of a call that began then waits for each next byte."""
        return httpx.Timeout(max(0.001, min(self.timeout_s, self.left_s(began))))


@dataclass(slots=True)
class Transport:
    """Connections of a process, shared by its threads."""

    patience: Patience
    _by_process: dict[int, httpx.Client] = field(default_factory=dict)

    def send(self, call: Call[T], to: Address) -> T:
        """Return the call's result; Problem, Unreachable or NotTheService."""
        attempts = Retrying(**self.patience.attempts())
        answered: T = attempts(self._send_once, call, to, time.monotonic())
        return answered

    def close(self) -> None:
        """Close the connections of this process."""
        if client := self._by_process.pop(os.getpid(), None):
            client.close()

    def _send_once(self, call: Call[T], to: Address, began: float) -> T:
        timeout = self.patience.timeout(began)
        with (
            connected(to),
            self._client().stream(**request(call, to), timeout=timeout) as answered,
        ):
            response = self._read(answered, began)
        return result(call, response, to)

    def _read(self, answered: httpx.Response, began: float) -> httpx.Response:
        """Return what is answered with its body; ReadTimeout where that goes on past the deadline.

        A timeout alone would begin anew with each byte.
        """
        parts = []
        for part in answered.iter_raw():
            if not self.patience.left_s(began):
                raise httpx.ReadTimeout("the deadline is over", request=answered.request)
            parts.append(part)
        return httpx.Response(
            answered.status_code,
            headers=answered.headers,
            content=b"".join(parts),
            extensions=answered.extensions,
        )

    def _client(self) -> httpx.Client:
        # A fork shares its parent's sockets, and answers would go to either: it gets its own.
        # There is no lock, since a fork may find it taken; a client built in vain costs nothing.
        pid = os.getpid()
        known = self._by_process.get(pid)
        return self._by_process.setdefault(pid, httpx.Client()) if known is None else known


@dataclass(slots=True)
class AsyncTransport:
    """Connections of one event loop."""

    patience: Patience
    _client: httpx.AsyncClient = field(default_factory=httpx.AsyncClient)

    async def send(self, call: Call[T], to: Address) -> T:
        """Return the call's result; Problem, Unreachable or NotTheService."""
        attempts = AsyncRetrying(**self.patience.attempts())
        answered: T = await attempts(self._send_once, call, to, time.monotonic())
        return answered

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send_once(self, call: Call[T], to: Address, began: float) -> T:
        with connected(to):
            async with asyncio.timeout(self.patience.left_s(began)):
                response = await self._client.request(
                    **request(call, to), timeout=self.patience.timeout(began)
                )
        return result(call, response, to)


def passes(error: BaseException) -> bool:
    """Tell whether a repeat may go well: every call has the same effect once or twice."""
    if isinstance(error, Problem):
        return error.status in PASSING
    return isinstance(error, Unreachable) and not isinstance(error, NotTheService)


def wait(state: RetryCallState) -> float:
    """Return the seconds to wait: what the service asked for, and then a random while.

    The random part keeps many workers from coming back all at once.
    """
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, Problem) else 0.0
    return asked + BACKOFF.pause_s(state.attempt_number)


def request(call: Call[Any], to: Address) -> dict[str, Any]:
    """Return the call as arguments of httpx."""
    headers = call.headers()
    if to.api_key is not None:
        headers["Authorization"] = f"Bearer {to.api_key}"
    return {
        "method": call.method,
        "url": f"{to.url}{call.path}",
        "params": dict(call.params),
        "headers": headers,
        "content": call.content(),
    }


def result(call: Call[T], response: httpx.Response, to: Address) -> T:
    """Return what was answered, or raise it: Problem, or NotTheService for what no one can read."""
    try:
        if response.is_success:
            return call.read(response.json())
        problem = problem_of(response)
    except (*NOT_JSON, KeyError, TypeError) as error:
        raise not_the_service(to, f"{response.status_code}, {error!r}") from error
    raise problem


def not_the_service(to: Address, why: str) -> NotTheService:
    """Return the error that says what is wrong with an answer."""
    return NotTheService(f"What answers at {to.url} is not the service ({why}).")


@contextmanager
def connected(to: Address) -> Iterator[None]:
    """Say which service does not answer, Unreachable, or not readably: NotTheService."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise NotTheService(f"{to.url} is not a URL ({error}).") from error
    except (httpx.TransportError, TimeoutError) as error:
        raise Unreachable(f"{to.url} does not answer ({type(error).__name__}).") from error
    except httpx.RequestError as error:
        raise not_the_service(to, repr(error)) from error
