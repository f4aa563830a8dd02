"""The database goes away, fills up, falls silent or turns read-only under the live service."""

import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import httpx
import pytest
from alembic import command
from alembic.config import Config
from psycopg import sql
from sqlalchemy import Engine, create_engine, event

from app.db.migrate import configuration
from tests.conftest import StartLive, StartService
from tests.support.client import Api, Json, answer
from tests.support.postgres import Postgres
from tests.support.proxy import Endpoint, FaultProxy
from tests.support.service import InProcessService, LiveService
from tests.support.storage import Storage
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)

AnyService = InProcessService | LiveService


class Behind(Protocol):
    """A service whose way to PostgreSQL leads through a proxy."""

    def __call__(self, *, until: str = "/readyz") -> LiveService: ...


@pytest.fixture
def way(postgres: Postgres) -> Iterator[FaultProxy]:
    with FaultProxy(Endpoint.unix(postgres.socket_path)) as proxy:
        yield proxy


@pytest.fixture
def behind(
    postgres: Postgres,
    way: FaultProxy,
    start_live: StartLive,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Behind]:
    started: list[LiveService] = []
    with postgres.fresh_database() as name:

        def start(*, until: str = "/readyz") -> LiveService:
            folder = tmp_path_factory.mktemp("behind") / "data"
            storage = Storage(folder, postgres.url(name, port=way.port))
            started.append(start_live(storage=storage, until=until))
            return started[-1]

        yield start
        for service in started:
            service.close()


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@contextmanager
def calls(service: AnyService) -> Iterator[Api]:
    with Api(service.base_url) as api:
        yield api


def becomes_unready(api: Api) -> str:
    """Return the reason that /readyz gives as soon as it is 503."""
    state = wait_until(
        lambda: None if (said := api.readyz()).is_success else said, describe="/readyz turns 503"
    )
    assert state is not None
    assert state.status_code == httpx.codes.SERVICE_UNAVAILABLE
    return str(state.json()["ledger"])


def becomes_ready(api: Api) -> None:
    wait_until(lambda: api.readyz().is_success, describe="/readyz answers 200", timeout=60)


def assert_refused(response: httpx.Response) -> None:
    assert response.status_code == httpx.codes.SERVICE_UNAVAILABLE, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["type"] == "/problems/ledger-unavailable"
    assert int(response.headers["retry-after"]) >= 1


def assert_outage_is_survived(
    api: Api, tree: Tree, outage: AbstractContextManager[None], *, reason: str
) -> None:
    """Told within seconds, nothing acknowledged meanwhile, and whole again by itself."""
    tree.write("a", "before")
    with outage:
        assert reason in becomes_unready(api)
        assert api.healthz().is_success
        assert_refused(api.write(tree["a"], "during"))
        assert_refused(api.write_batch(tree["a"], ["during", "during"]))
        assert_refused(api.node(tree.checkpoint, "late", "root"))
        assert_refused(api.checkpoint(unique_checkpoint()))
    becomes_ready(api)
    tree.write("a", "after")
    assert tree.own("a") == ["before", "after"]
    assert tree.search("a1", "before", limit=2) == ["before", "after"]


def migrate(engine: Engine, step: Callable[[Config, str], None], revision: str) -> None:
    """Run Alembic beside the service."""
    config = configuration()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        step(config, revision)


# SQLite


@on_sqlite
def test_a_read_only_sqlite_database_refuses_writes_until_it_is_writable_again(
    start_service: StartService,
) -> None:
    service = start_service()

    @contextmanager
    def read_only() -> Iterator[None]:
        engine = service.app.state.services.ledger._engine

        def forbid(connection: object, *_: object) -> None:
            connection.execute("PRAGMA query_only = ON")  # type: ignore[attr-defined]

        event.listen(engine, "checkout", forbid)
        yield
        event.remove(engine, "checkout", forbid)

    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        assert_outage_is_survived(api, tree, read_only(), reason="read-only")


@on_sqlite
def test_a_full_disk_refuses_writes_until_there_is_room_again(start_live: StartLive) -> None:
    service = start_live()

    @contextmanager
    def full() -> Iterator[None]:
        # A file may not grow beyond one byte: the log of writes finds no room.
        _, most = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (1, most))
        yield
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (most, most))

    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        assert_outage_is_survived(api, tree, full(), reason="disk")


@on_sqlite
def test_a_disk_with_room_for_the_probe_alone_is_not_ready(start_live: StartLive) -> None:
    service = start_live()
    _, most = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        tree.write("root", "a blue door")
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (2_000_000, most))
        written = 0
        while (response := api.write_batch(tree["root"], ["x" * 30_000] * 5)).is_success:
            written += 5
        assert response.status_code == 503
        assert "disk" in response.json()["detail"]

        ready = wait_until_not_ready(api)
        assert "disk" in ready["ledger"]
        assert api.healthz().status_code == 200

        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (most, most))
        tree.write("root", "a green door")
        assert answer(api.get_node(tree["root"]))["entry_count"] == written + 2


def wait_until_not_ready(api: Api) -> Json:
    """Return what readiness says; its state may be a second old."""
    wait_until(lambda: api.readyz().status_code == 503, timeout=5, describe="not ready")
    body: Json = api.readyz().json()
    return body


# PostgreSQL


@on_postgresql
def test_a_postgresql_that_is_stopped_and_started_needs_no_restart_of_the_service(
    own_postgres: Postgres, start_live: StartLive, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = own_postgres.create_database()
    folder = tmp_path_factory.mktemp("own") / "data"
    service = start_live(storage=Storage(folder, own_postgres.url(name)))

    @contextmanager
    def stopped() -> Iterator[None]:
        own_postgres.stop()
        yield
        own_postgres.start()

    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        assert_outage_is_survived(api, tree, stopped(), reason="database")
    service.close()


@on_postgresql
def test_a_server_that_takes_no_writes_refuses_them_until_it_does(
    postgres: Postgres, way: FaultProxy, behind: Behind
) -> None:
    service = behind()
    assert service.storage.database_url is not None
    name = sql.Identifier(service.storage.database_url.rpartition("/")[2])

    @contextmanager
    def read_only() -> Iterator[None]:
        postgres.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
        )
        way.cut()  # the service comes back to a server that has become a replica
        yield
        postgres.execute(
            sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name)
        )

    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        assert_outage_is_survived(api, tree, read_only(), reason="read-only")


@on_postgresql
@pytest.mark.slow
def test_a_silent_server_is_given_up_on_and_found_again(way: FaultProxy, behind: Behind) -> None:
    service = behind()
    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        tree.write("a", "before")
        way.silence()

        assert "time" in becomes_unready(api)
        assert api.healthz().is_success
        assert_refused(api.write(tree["a"], "during"))
        assert_refused(api.checkpoint(unique_checkpoint()))

        way.restore()
        becomes_ready(api)
        tree.write("a", "after")
        # What was refused for lack of an answer may have been stored, but once at most.
        assert tree.own("a") in (["before", "after"], ["before", "during", "after"])


@on_postgresql
def test_a_service_that_starts_before_its_database_becomes_ready_and_takes_every_call(
    way: FaultProxy, behind: Behind
) -> None:
    way.refuse()
    service = behind(until="/healthz")
    with calls(service) as api:
        assert "database" in becomes_unready(api)
        assert_refused(api.checkpoint(unique_checkpoint()))
        way.restore()
        way.delay(0.3)  # each connection is slow to come, as while a server recovers
        becomes_ready(api)

        tree = grow_tree(api, unique_checkpoint())
        tree.write("root", "the first write")
        assert tree.search("a", "write") == ["the first write"]
        assert tree.inherited("a") == ["the first write"]
        assert api.trace_step(tree.checkpoint, "the first step").is_success
        assert api.put_core_memory(tree.checkpoint, persona="first").is_success
        assert answer(api.access_log(tree.checkpoint))["items"]
        assert answer(api.get_checkpoint(tree.checkpoint))["entries"] == 2


@on_postgresql
def test_a_commit_whose_answer_is_lost_neither_loses_nor_doubles_an_entry(
    way: FaultProxy, behind: Behind
) -> None:
    service = behind()
    acknowledged, keyed = [], []
    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        # A step of one message's length: some of the cuts fall between COMMIT and its answer.
        for bytes_left in range(300, 2700, 40):
            way.cut_answers_after(bytes_left)
            way.cut()
            bare, with_key = f"bare {bytes_left}", f"keyed {bytes_left}"
            if api.write(tree["a"], bare).is_success:
                acknowledged.append(bare)
            api.write(tree["b"], with_key, key=with_key)
            way.restore()
            way.cut()
            answer(api.write(tree["b"], with_key, key=with_key))
            keyed.append(with_key)

        stored = tree.own("a")
        assert len(acknowledged) < 60  # the cuts did hit
        assert set(acknowledged) <= set(stored)
        assert len(stored) == len(set(stored))
        assert tree.own("b") == keyed


# Both


def test_a_schema_that_is_behind_is_told_and_needs_no_restart_once_it_is_migrated(
    start_service: StartService,
) -> None:
    service = start_service()
    engine = create_engine(service.settings.database)
    with calls(service) as api:
        tree = grow_tree(api, unique_checkpoint())
        migrate(engine, command.downgrade, "-1")

        assert "schema" in becomes_unready(api)
        assert api.healthz().is_success
        assert_refused(api.write(tree["a"], "during"))
        assert_refused(api.checkpoint(unique_checkpoint()))

        migrate(engine, command.upgrade, "head")
        becomes_ready(api)
        assert grow_tree(api, unique_checkpoint()).write("a", "after")
    engine.dispose()
