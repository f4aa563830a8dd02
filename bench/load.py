"""A load generator that costs little, since it shares the machine with what it measures.

It speaks keep-alive HTTP/1.1 in a process of its own: requests are bytes made beforehand, and of an
answer only the status and the length are read.
"""

import asyncio
import gc
import math
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, cycle
from time import perf_counter
from types import TracebackType
from typing import Self, cast

import uvloop

# Answers of the first moments are not counted: connections open, caches and branches warm up.
WARM_UP_S = 0.3


class LoadFailed(Exception):
    """A request was answered with another status than expected, or not at all."""


@dataclass(frozen=True, slots=True)
class Group:
    """Clients of one kind; each sends its requests in rotation, the next when one is answered."""

    port: int
    clients: Sequence[Sequence[bytes]]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Run:
    """What one group saw: latencies in ms, ascending, of the answers that came in the window."""

    seconds: float
    latencies_ms: Sequence[float]

    @property
    def per_second(self) -> float:
        """Return the answers a second."""
        return len(self.latencies_ms) / self.seconds

    @property
    def p50(self) -> float:
        """Return the median latency in ms."""
        return self._percentile(0.50)

    @property
    def p99(self) -> float:
        """Return the latency in ms that 99 of 100 answers kept."""
        return self._percentile(0.99)

    def _percentile(self, share: float) -> float:
        if not self.latencies_ms:
            # A service that answers nothing within the window is at least that slow.
            return self.seconds * 1000
        return self.latencies_ms[math.ceil(share * len(self.latencies_ms)) - 1]


class LoadGenerator:
    """The generator's process, started once for the whole benchmark."""

    def __init__(self) -> None:
        # Spawned, not forked: a fork would share this process's open files with the generator.
        self._process = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.shutdown()

    def run(self, *groups: Group, seconds: float) -> list[Run]:
        """Load with all groups at once and return each group's run, in the order given.

        Raises LoadFailed at the first unexpected answer.
        """
        return self._process.submit(_generate, groups, seconds).result()


def _generate(groups: Sequence[Group], seconds: float) -> list[Run]:
    gc.disable()  # a collection here would be measured as a slow answer there
    try:
        return uvloop.run(_load(groups, seconds))
    finally:
        gc.enable()


async def _load(groups: Sequence[Group], seconds: float) -> list[Run]:
    clients = [
        [await _connect(group.port, requests, status=group.status) for requests in group.clients]
        for group in groups
    ]
    opens = perf_counter() + WARM_UP_S
    latencies = [
        [client.work(opens=opens, closes=opens + seconds) for client in group] for group in clients
    ]
    return [
        Run(seconds, sorted(chain.from_iterable(await asyncio.gather(*group))))
        for group in latencies
    ]


async def _connect(port: int, requests: Sequence[bytes], *, status: int) -> "_Client":
    loop = asyncio.get_running_loop()
    make = partial(_Client, cycle(requests), status=status)
    _, client = await loop.create_connection(make, "127.0.0.1", port)
    return client


class _Client(asyncio.Protocol):
    """One connection with at most one request under way."""

    def __init__(self, requests: Iterator[bytes], *, status: int) -> None:
        self._requests = requests
        self._status = str(status).encode()
        self._done: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
        self._latencies_ms: list[float] = []

    def work(self, *, opens: float, closes: float) -> "asyncio.Future[list[float]]":
        """Send until `closes`; give the latencies of what was answered since `opens`."""
        self._opens, self._closes = opens, closes
        self._send()
        return self._done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0 or len(self._received) < head_end + 4 + self._length(head_end):
            return
        now = perf_counter()
        if self._received[9:12] != self._status:
            self._fail(self._received.decode(errors="replace"))
            return
        if self._opens <= now < self._closes:
            self._latencies_ms.append((now - self._sent) * 1000)
        if now < self._closes:
            self._send()
        else:
            self._done.set_result(self._latencies_ms)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._fail(f"connection lost: {exc}")

    def _send(self) -> None:
        self._received = b""
        self._sent = perf_counter()
        self._transport.write(next(self._requests))

    def _length(self, head_end: int) -> int:
        head = self._received[:head_end].lower()
        _, found, rest = head.partition(b"\r\ncontent-length:")
        if not found:
            raise LoadFailed(f"an answer without a length: {head!r}")
        return int(rest.partition(b"\r\n")[0])

    def _fail(self, what: str) -> None:
        self._done.set_exception(LoadFailed(what[:1000]))
        self._transport.close()
