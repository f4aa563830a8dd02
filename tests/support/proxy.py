"""A TCP proxy that fails on demand, between the service and whatever it depends on."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.ports import LOOPBACK, port_of, reserve_port

CHUNK_BYTES = 65_536
CONTROL_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Endpoint:
    """The server behind the proxy: a TCP port on loopback or a unix socket."""

    address: int | Path

    @classmethod
    def tcp(cls, port: int) -> "Endpoint":
        """Name a server by its port on loopback."""
        return cls(port)

    @classmethod
    def unix(cls, path: Path) -> "Endpoint":
        """Name a server by its unix socket."""
        return cls(path)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the server; OSError while it is away."""
        if isinstance(self.address, Path):
            return await asyncio.open_unix_connection(self.address)
        return await asyncio.open_connection(LOOPBACK, self.address)


class FaultProxy:
    """Forward `port` to an endpoint, with faults that can be switched while it runs.

    Runs an event loop in a thread of its own; the methods are for the test's thread, and each
    fault is in force when its method returns. `restore` ends them all.
    """

    def __init__(self, upstream: Endpoint) -> None:
        self._upstream = upstream
        self._reservation = reserve_port()
        self.port = port_of(self._reservation)
        self.accepted = 0
        self._delay_s = 0.0
        self._cut_after: int | None = None
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._undelayed = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy")

    @property
    def open_connections(self) -> int:
        """How many clients are connected at this moment."""
        return len(self._connections)

    def refuse(self) -> None:
        """Refuse new connections and cut the open ones, as a server that is down."""
        self._call(self._refuse())

    def silence(self) -> None:
        """Accept everything and pass nothing on in either direction; `restore` lets it flow."""
        self._call(self._silence())

    def delay(self, seconds: float) -> None:
        """Hold each new connection for `seconds` (or until `restore`) before it goes through."""
        self._call(self._set(delay_s=seconds))

    def cut_answers_after(self, count: int) -> None:
        """Close each connection made from now on once `count` bytes of answers went through."""
        self._call(self._set(cut_after=count))

    def cut(self) -> None:
        """Close the connections that are open now; new ones work."""
        self._call(self._cut())

    def restore(self) -> None:
        """End every fault: new connections pass, and what was held back goes on."""
        self._call(self._restore())

    def close(self) -> None:
        """Close the port and every connection, and end the thread."""
        self._call(self._refuse())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._reservation.close()

    def __enter__(self) -> Self:
        self._thread.start()
        self.restore()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, action: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(action, self._loop).result(CONTROL_TIMEOUT_S)

    async def _set(self, *, delay_s: float = 0.0, cut_after: int | None = None) -> None:
        self._delay_s, self._cut_after = delay_s, cut_after
        if delay_s:
            self._undelayed.clear()
        else:
            self._undelayed.set()

    async def _silence(self) -> None:
        self._flowing.clear()

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _restore(self) -> None:
        await self._set()
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, LOOPBACK, self.port)

    async def _cut(self) -> None:
        connections = tuple(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.accepted += 1
        self._connections.add(task)
        try:
            async with closing(writer):
                await self._forward(reader, writer)
        except (asyncio.CancelledError, OSError):
            pass  # cut by us, or one side went away: to the other it is a lost connection
        finally:
            self._connections.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        limit = self._cut_after
        await self._held_back()
        upstream_reader, upstream_writer = await self._upstream.connect()
        async with closing(upstream_writer):
            await _until_one_ends(
                self._pump(reader, upstream_writer),
                self._pump(upstream_reader, writer, limit=limit),
            )

    async def _held_back(self) -> None:
        with contextlib.suppress(TimeoutError):  # the delay is over
            await asyncio.wait_for(self._undelayed.wait(), self._delay_s or None)
        await self._flowing.wait()

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        *,
        limit: int | None = None,
    ) -> None:
        """Copy bytes until the source ends or `limit` of them went through."""
        left = limit
        while data := await source.read(CHUNK_BYTES):
            await self._flowing.wait()
            target.write(data[:left])
            await target.drain()
            if left is not None:
                left -= len(data)
                if left <= 0:
                    return


@contextlib.asynccontextmanager
async def closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Send what was written and close; at once, without sending it, where the block is cut."""
    try:
        yield
        writer.close()
        await writer.wait_closed()
    finally:
        writer.transport.abort()


async def _until_one_ends(*pumps: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(pump) for pump in pumps]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
