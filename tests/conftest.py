"""The services that tests talk to, on SQLite and on PostgreSQL.

`service` and `keyed_service` are shared by the whole run: a test isolates itself by a checkpoint of
its own (`tree`, `grow`). What is shared is opened once for each database and picked by a fixture of
function scope, so no order of the tests opens it twice. A test that needs other settings, a restart
or a fault starts a service of its own: `start_service` in this process, `start_live` as another.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal, Protocol

import pytest

from tests.support.client import Api
from tests.support.postgres import Postgres
from tests.support.service import InProcessService, LiveService
from tests.support.storage import Storage, fresh_storage
from tests.support.tree import EXAMPLE, Shape, Tree, grow_tree, unique_checkpoint

DatabaseKind = Literal["sqlite", "postgresql"]

API_KEY = "key-of-the-test-suite"


class Grow(Protocol):
    def __call__(self, shape: Shape = EXAMPLE, *, checkpoint: str | None = None) -> Tree: ...


class StartService(Protocol):
    def __call__(
        self, *, storage: Storage | None = None, **settings: object
    ) -> InProcessService: ...


class StartLive(Protocol):
    def __call__(
        self, *, storage: Storage | None = None, until: str | None = "/readyz", **environment: str
    ) -> LiveService: ...


class NewStorage(Protocol):
    def __call__(self) -> Storage: ...


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside() -> Iterator[None]:
    """Keep the developer's own settings away from the services and databases under test."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith(("LINEAGE_", "LETTA_", "PG")):
                environment.delenv(name)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The PostgreSQL that all tests share, each in a database of its own."""
    with Postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> DatabaseKind:
    """Run the test once on each database.

    `@pytest.mark.parametrize("database", ["sqlite"], indirect=True)` narrows it to one.
    """
    kind: DatabaseKind = request.param
    return kind


@pytest.fixture
def database_server(database: DatabaseKind, request: pytest.FixtureRequest) -> Postgres | None:
    """The shared PostgreSQL where the test runs on it; nothing is started for SQLite."""
    if database == "sqlite":
        return None
    server: Postgres = request.getfixturevalue("postgres")
    return server


# Services shared by the whole run


class SharedServices:
    """The services of one database, open and keyed, each started when first asked for."""

    def __init__(self, folders: pytest.TempPathFactory, server: Postgres | None) -> None:
        self._folders = folders
        self._server = server
        self._open = ExitStack()
        self._running: dict[tuple[str, ...], InProcessService] = {}

    def get(self, *api_keys: str) -> InProcessService:
        if api_keys not in self._running:
            folder = self._folders.mktemp("shared") / "data"
            storage = self._open.enter_context(fresh_storage(folder, server=self._server))
            service = InProcessService(storage, api_keys=api_keys)
            self._running[api_keys] = self._open.enter_context(service)
        return self._running[api_keys]

    def close(self) -> None:
        self._open.close()


@pytest.fixture(scope="session")
def sqlite_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServices]:
    services = SharedServices(tmp_path_factory, None)
    yield services
    services.close()


@pytest.fixture(scope="session")
def postgresql_services(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> Iterator[SharedServices]:
    services = SharedServices(tmp_path_factory, postgres)
    yield services
    services.close()


@pytest.fixture
def shared_services(database: DatabaseKind, request: pytest.FixtureRequest) -> SharedServices:
    services: SharedServices = request.getfixturevalue(f"{database}_services")
    return services


@pytest.fixture
def service(shared_services: SharedServices) -> InProcessService:
    """The shared service in open mode."""
    return shared_services.get()


@pytest.fixture
def keyed_service(shared_services: SharedServices) -> InProcessService:
    """The shared service that asks for API_KEY or a node token."""
    return shared_services.get(API_KEY)


@pytest.fixture
def api(service: InProcessService) -> Iterator[Api]:
    """A client of the shared open service."""
    with Api(service.base_url) as client:
        yield client


@pytest.fixture
def keyed_api(keyed_service: InProcessService) -> Iterator[Api]:
    """A client of the shared keyed service that holds the API key."""
    with Api(keyed_service.base_url, bearer=API_KEY) as client:
        yield client


@pytest.fixture
def grow(api: Api) -> Grow:
    """Grow trees on the shared open service, each in a checkpoint of its own."""

    def grow(shape: Shape = EXAMPLE, *, checkpoint: str | None = None) -> Tree:
        return grow_tree(api, checkpoint or unique_checkpoint(), shape)

    return grow


@pytest.fixture
def tree(grow: Grow) -> Tree:
    """The example tree (root over a and b, a over a1 and a2) in a checkpoint of its own."""
    return grow()


# Services of a test's own


@pytest.fixture
def new_storage(
    database_server: Postgres | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NewStorage]:
    """Make empty storages on the database of the test."""
    with ExitStack() as opened:

        def new() -> Storage:
            folder = tmp_path_factory.mktemp("storage") / "data"
            return opened.enter_context(fresh_storage(folder, server=database_server))

        yield new


@pytest.fixture
def start_service(new_storage: NewStorage) -> Iterator[StartService]:
    """Start services in this process, on a new storage or a given one; ended after the test."""
    with ExitStack() as running:

        def start(*, storage: Storage | None = None, **settings: object) -> InProcessService:
            service = InProcessService(storage or new_storage(), **settings)
            return running.enter_context(service)

        yield start


@pytest.fixture
def start_live(
    new_storage: NewStorage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartLive]:
    """Start services as processes; their logs are shown where the test fails.

    `until=None` returns at once, for a start that is meant to fail: `live.wait()` is its status.
    """
    started: list[LiveService] = []

    def start(
        *, storage: Storage | None = None, until: str | None = "/readyz", **environment: str
    ) -> LiveService:
        scratch = tmp_path_factory.mktemp("live")
        live = LiveService(storage or new_storage(), scratch=scratch, **environment)
        started.append(live)
        if until is None:
            live.launch()
        else:
            live.start(until=until)
        return live

    yield start
    for live in started:
        live.close()
        sys.stdout.write(f"--- {live.log_path}\n{live.log}")
