"""Wires the service together: the one place that knows every part."""

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from functools import partial

import structlog
from fastapi import FastAPI

from app.api.app import add_http
from app.api.callers import Doorkeeper
from app.api.metrics import Metrics
from app.archive.embedded import EmbeddedArchive
from app.archive.letta.archive import LettaArchive, LettaOptions
from app.archive.letta.embeddings import Embedding
from app.archive.letta.windows import Searched, SearchMode
from app.archive.port import Archive, Lag
from app.db.checkup import upgrade_database
from app.db.engine import AlreadyServed, SingleWriter, sqlite_file
from app.db.ledger import Ledger
from app.embedding.openai import OpenAIEmbedder
from app.embedding.port import Embedder
from app.embedding.wordllama import WordLlamaEmbedder
from app.lineage.errors import LedgerUnavailable
from app.lineage.guard import Claim
from app.logs import RequestLog
from app.memory.access_recorder import AccessRecorder
from app.memory.archive_upkeep import ArchiveUpkeep
from app.memory.housekeeping import Housekeeping
from app.memory.indexer import Indexer
from app.memory.migration import keep_migrating, migrate_or_go_on
from app.memory.readiness import Readiness
from app.memory.services import Limits, Services
from app.memory.snapshot.automatic import AutomaticSnapshots
from app.memory.underway import Underway
from app.settings import Settings

VERSION = "0.1.0"
# A batch of texts may wait for a slow embedder as well.
MIN_INDEX_PATIENCE_S = 30.0

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


def migrate_database(settings: Settings) -> tuple[str | None, str]:
    """Bring the schema to this version without serving; return the migration before and after.

    StartRefused says why that cannot be done.
    """
    try:
        schema = upgrade_database(settings.database)
    except (AlreadyServed, LedgerUnavailable) as error:
        raise StartRefused(str(error)) from error
    return schema.at, schema.needed


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
        max_snapshot_bytes=settings.max_snapshot_bytes,
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
    stack.push_async_callback(embedder.close)
    replica = secrets.token_hex(8)
    archive = _archive(settings, ledger, embedder, replica=replica, metrics=metrics)
    stack.push_async_callback(archive.close)
    accesses = AccessRecorder(ledger, on_lost=metrics.accesses_lost.inc)
    stack.push_async_callback(accesses.flush)
    patience_s = max(settings.letta_timeout_s, MIN_INDEX_PATIENCE_S)
    indexer = Indexer(
        ledger,
        archive,
        replica=replica,
        patience_s=patience_s,
        on_failure=metrics.indexing_failures.inc,
    )
    upkeep = ArchiveUpkeep(archive, on_lag=partial(_show_lag, metrics))
    app.state.services = Services(
        ledger=ledger,
        archive=archive,
        embedder=embedder,
        accesses=accesses,
        indexer=indexer,
        upkeep=upkeep,
        underway=Underway(),
        limits=Limits(
            max_text_bytes=settings.max_text_bytes,
            index_wait_s=settings.index_wait_s,
            max_snapshot_bytes=settings.max_snapshot_bytes,
            scratch_dir=settings.data_dir / "scratch",
            snapshot_dir=settings.snapshot_dir,
            timezone=settings.timezone,
            core_max_words=settings.core_max_words,
        ),
    )
    app.state.readiness = Readiness(ledger, archive, indexer, upkeep)
    housekeeping = Housekeeping(ledger, settings.access_log_days, settings.access_log_rows)
    beside = [accesses.run(), indexer.run(), upkeep.run(), housekeeping.run()]
    if settings.snapshot_dir is not None:
        snapshots = AutomaticSnapshots(app.state.services, quiet_s=settings.snapshot_quiet_s)
        # After the loops have ended, with the ledger still open.
        stack.push_async_callback(snapshots.stop)
        beside.append(snapshots.run())
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


def _archive(
    settings: Settings, ledger: Ledger, embedder: Embedder, *, replica: str, metrics: Metrics
) -> Archive:
    if settings.archive == "embedded":
        return EmbeddedArchive(embedder, search_wait_s=settings.embedding_timeout_s)
    # The settings refuse a Letta without them.
    assert settings.letta_base_url
    key = settings.letta_api_key
    if settings.letta_embedding:
        assert settings.embedding_dim
        embedding = Embedding.of_handle(settings.letta_embedding, settings.embedding_dim)
    else:
        embedding = Embedding.of_endpoint(
            settings.own_embeddings_url, embedder.model, embedder.dimensions
        )
    return LettaArchive(
        ledger,
        LettaOptions(
            base_url=settings.letta_base_url,
            api_key=key.get_secret_value() if key else None,
            instance=settings.letta_instance,
            timeout_s=settings.letta_timeout_s,
            mode=SearchMode(settings.search),
            overfetch=settings.letta_overfetch,
        ),
        embedding,
        embedder if settings.knows_embedder_of_letta else None,
        # Another name than the embedded archive's: what that one indexed, Letta does not have.
        model=f"letta/{settings.letta_embedding or embedder.model}",
        replica=replica,
        on_search=partial(_count_search, metrics),
    )


def _count_search(metrics: Metrics, searched: Searched) -> None:
    labels = (searched.mode.value, searched.ranked_by)
    metrics.search_rounds.labels(*labels).observe(searched.rounds)
    widest = math.inf if searched.widest == 0 else searched.widest or 0
    metrics.search_window.labels(*labels).observe(widest)
    metrics.search_letta_seconds.labels(*labels).observe(searched.letta_s)


def _show_lag(metrics: Metrics, lag: Lag) -> None:
    for kind, count in asdict(lag).items():
        metrics.archive_lag.labels(kind).set(count)


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
