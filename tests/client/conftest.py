"""Workers that block and workers that await, through the same behaviours."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal, Protocol, cast

import pytest

from app.client import AsyncLineageMemory, LineageMemory
from app.client.ari import default_memory
from tests.conftest import ArchiveKind, DatabaseKind
from tests.support.http_proxy import HttpFaultProxy
from tests.support.proxy import Endpoint
from tests.support.service import InProcessService

WorkerKind = Literal["sync", "async"]


class NewWorker(Protocol):
    def __call__(self, url: str | None = None, **given: Any) -> LineageMemory: ...


class Awaited:
    """An AsyncLineageMemory whose calls are awaited and whose walks are lists."""

    def __init__(self, *args: Any, **given: Any) -> None:
        self._runner = asyncio.Runner()
        self._memory = self._runner.run(self._made(*args, **given))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._memory, name)

        def run(*args: Any, **given: Any) -> Any:
            return self._runner.run(self._outcome(call(*args, **given)))

        return run

    def close(self) -> None:
        self._runner.run(self._memory.aclose())
        self._runner.close()

    @staticmethod
    async def _made(*args: Any, **given: Any) -> AsyncLineageMemory:
        return AsyncLineageMemory(*args, **given)

    @staticmethod
    async def _outcome(called: Any) -> Any:
        if inspect.isawaitable(called):
            return await called
        walk: AsyncIterator[Any] = called
        return [item async for item in walk]


@pytest.fixture
def database() -> DatabaseKind:
    """Which database is behind HTTP makes no difference to its callers."""
    return "sqlite"


@pytest.fixture
def archive() -> ArchiveKind:
    """Nor does the archive."""
    return "embedded"


@pytest.fixture(autouse=True)
def _no_worker_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARI_CURRENT_NODE_ID", "ARI_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> WorkerKind:
    """Run the test once with each client."""
    worker_kind: WorkerKind = request.param
    return worker_kind


@pytest.fixture
def new_worker(kind: WorkerKind) -> Iterator[NewWorker]:
    """Make workers that are closed after the test."""
    with ExitStack() as opened:

        def new(url: str | None = None, **given: Any) -> LineageMemory:
            made = LineageMemory if kind == "sync" else Awaited
            memory = cast("LineageMemory", made(url, **given))
            opened.callback(memory.close)
            return memory

        yield new


@pytest.fixture
def proxy(service: InProcessService) -> Iterator[HttpFaultProxy]:
    """A gateway to the shared service that fails on demand."""
    port = int(service.base_url.rpartition(":")[2])
    with HttpFaultProxy(Endpoint.tcp(port)) as running:
        yield running


@pytest.fixture
def default_worker() -> Iterator[None]:
    """Give the test the five calls with a client that no other test used."""
    default_memory.cache_clear()
    yield
    default_memory().close()
    default_memory.cache_clear()
