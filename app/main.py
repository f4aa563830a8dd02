"""Wires the service together: the one place that knows every part."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from fastapi import FastAPI

from app.api.app import add_http
from app.api.callers import Doorkeeper
from app.api.metrics import Metrics
from app.archive.embedded import EmbeddedArchive
from app.db.engine import AlreadyServed, SingleWriter, sqlite_file
from app.db.ledger import Ledger
from app.embedding.openai import OpenAIEmbedder
from app.embedding.port import Embedder
from app.embedding.wordllama import WordLlamaEmbedder
from app.lineage.guard import Claim
from app.logs import RequestLog
from app.memory.access_recorder import AccessRecorder
from app.memory.housekeeping import Housekeeping
from app.memory.indexer import Indexer
from app.memory.migration import keep_migrating, migrate_or_go_on
from app.memory.readiness import Readiness
from app.memory.services import Limits, Services
from app.settings import Settings

VERSION = "0.1.0"

log = structlog.get_logger(__name__)


class StartRefused(Exception):
    """The service cannot start so; the message says what to do."""


def check_start(settings: Settings) -> None:
    """Refuse a start that could only fail: StartRefused."""
    if (file := sqlite_file(settings.database)) is None:
        return
    try:
        with SingleWriter(file):
            return
    except AlreadyServed as error:
        raise StartRefused(str(error)) from error
    except OSError as error:
        raise StartRefused(
            f"LINEAGE_DATA_DIR (or LINEAGE_DATABASE_URL): {file.parent} cannot hold the database "
            f"({error.strerror})."
        ) from error


def create_app(settings: Settings) -> FastAPI:
    """Return the service; nothing is opened before its lifespan begins."""
    metrics = Metrics()
    requests = RequestLog(enabled=settings.log_level in {"debug", "info"})

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(requests.flush)
            await _open(app, settings, metrics, stack)
            yield

    app = FastAPI(
        title="letta-lineage",
        version=VERSION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.metrics = metrics

    async def find_token(token_hash: bytes) -> Claim | None:
        held = await app.state.services.ledger.places.token(token_hash)
        return None if held is None else held.claim

    embeddings_key = settings.embeddings_key
    add_http(
        app,
        doorkeeper=Doorkeeper(
            [key.get_secret_value() for key in settings.api_keys],
            embeddings_key.get_secret_value() if embeddings_key else None,
            find_token,
        ),
        metrics=metrics,
        requests=requests,
        max_body_bytes=settings.max_body_bytes,
    )
    return app


async def _open(app: FastAPI, settings: Settings, metrics: Metrics, stack: AsyncExitStack) -> None:
    """Open the parts in order; the stack closes them in reverse."""
    ledger = Ledger(
        settings.database,
        cache_bytes=settings.cache_bytes,
        on_accesses_lost=metrics.accesses_lost.inc,
    )
    ledger.open()
    stack.push_async_callback(ledger.close)
    metrics.cache_bytes.set_function(lambda: ledger.blocks.size_bytes)
    embedder = _embedder(settings)
    archive = EmbeddedArchive(embedder, search_wait_s=settings.embedding_timeout_s)
    stack.push_async_callback(archive.close)
    accesses = AccessRecorder(ledger, on_lost=metrics.accesses_lost.inc)
    stack.push_async_callback(accesses.flush)
    indexer = Indexer(ledger, archive)
    app.state.services = Services(
        ledger=ledger,
        archive=archive,
        embedder=embedder,
        accesses=accesses,
        indexer=indexer,
        limits=Limits(settings.max_text_bytes, settings.index_wait_s),
    )
    app.state.readiness = Readiness(ledger, archive)
    housekeeping = Housekeeping(ledger, settings.access_log_days, settings.access_log_rows)
    beside = [accesses.run(), indexer.run(), housekeeping.run()]
    if not await migrate_or_go_on(ledger):
        beside.append(keep_migrating(ledger))
    _run_beside(stack, beside)


def _run_beside(stack: AsyncExitStack, loops: Sequence[Coroutine[None, None, None]]) -> None:
    """Run loops until the service closes; one that breaks is a bug, and logged."""
    for loop in loops:
        task = asyncio.create_task(loop)
        task.add_done_callback(_tell_of_failure)
        stack.push_async_callback(_stop, task)


async def _stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])


def _tell_of_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background_work_failed", exc_info=error)


def _embedder(settings: Settings) -> Embedder:
    if settings.embedder == "wordllama":
        return WordLlamaEmbedder.load()
    # The settings refuse an endpoint without them.
    assert settings.embedding_url
    assert settings.embedding_model
    assert settings.embedding_dim
    key = settings.embedding_api_key
    return OpenAIEmbedder(
        settings.embedding_url,
        settings.embedding_model,
        dimensions=settings.embedding_dim,
        api_key=key.get_secret_value() if key else None,
        timeout_s=settings.embedding_timeout_s,
    )
