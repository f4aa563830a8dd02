"""The services that tests talk to, on SQLite and on PostgreSQL.

`service` and `keyed_service` are shared by the whole run: a test isolates itself by a checkpoint of
its own (`tree`, `grow`). What is shared is opened once for each database and picked by a fixture of
function scope, so no order of the tests opens it twice. A test that needs other settings, a restart
or a fault starts a service of its own: `start_service` in this process, `start_live` as another.
"""

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal, NoReturn, Protocol

import pytest
from hypothesis import settings

from tests.support.client import Api
from tests.support.examples import MANY_NEW, SAME
from tests.support.letta import EMBEDDINGS_KEY, RealLetta
from tests.support.postgres import Postgres
from tests.support.service import InProcessService, LiveService
from tests.support.storage import Storage, fresh_storage
from tests.support.tree import EXAMPLE, Shape, Tree, grow_tree, unique_checkpoint

DatabaseKind = Literal["sqlite", "postgresql"]

ArchiveKind = Literal["embedded", "letta"]

API_KEY = "key-of-the-test-suite"

settings.register_profile("tests", SAME)
settings.register_profile("explore", MANY_NEW)
settings.load_profile("tests")
# Read before the environment is cleaned of it.
LETTA_BASE_URL = os.environ.get("LETTA_BASE_URL")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run on a Letta with PostgreSQL alone where a test asks for every pair of the two.

    It is the pair of production, each half is tested with the other's counterpart, and each write
    to Letta takes 0.1 s.
    """
    on_both = {_test(item) for item in items if _pair(item) == ("letta", "postgresql")}
    left_out = {
        item for item in items if _pair(item) == ("letta", "sqlite") and _test(item) in on_both
    }
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _test(item: pytest.Item) -> str:
    """Return the name of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def _pair(item: pytest.Item) -> tuple[object, object]:
    given = item.callspec.params if isinstance(item, pytest.Function) and _is_given(item) else {}
    return given.get("archive"), given.get("database")


def _is_given(item: pytest.Function) -> bool:
    return hasattr(item, "callspec")


# Behind a shell's `&` Ctrl-C is ignored, by whatever is started there as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_the_run(*_: object) -> NoReturn:
    """End the run as Ctrl-C does, which stops what it started; the same again is no hurry."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


signal.signal(signal.SIGTERM, _end_the_run)


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


@pytest.fixture(params=["embedded", pytest.param("letta", marks=pytest.mark.letta)])
def archive(request: pytest.FixtureRequest) -> ArchiveKind:
    """Run the test once on each archive."""
    kind: ArchiveKind = request.param
    return kind


@pytest.fixture(scope="session")
def letta() -> Iterator[RealLetta]:
    """The real Letta; what the run leaves there is removed at its end."""
    if LETTA_BASE_URL is None:
        pytest.fail("LETTA_BASE_URL names no Letta: `make test-letta` brings one up")
    real = RealLetta(LETTA_BASE_URL)
    yield real
    real.close()


@pytest.fixture(scope="session")
def letta_instance(letta: RealLetta) -> Iterator[str]:
    """Mark what the run makes in Letta."""
    instance = f"tests-{uuid.uuid4().hex[:12]}"
    yield instance
    letta.wipe(instance)


@pytest.fixture(scope="session")
def letta_embeddings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL at which Letta embeds: agents keep it for good, services of a test come and go."""
    with (
        fresh_storage(tmp_path_factory.mktemp("embeddings") / "data", server=None) as storage,
        InProcessService(storage, embeddings_key=EMBEDDINGS_KEY) as service,
    ):
        yield f"{service.base_url}/v1"


@pytest.fixture
def archive_settings(archive: ArchiveKind, request: pytest.FixtureRequest) -> dict[str, object]:
    """The settings that put the archive of the test behind a service in this process."""
    if archive == "embedded":
        return {}
    letta: RealLetta = request.getfixturevalue("letta")
    settings = letta.settings(request.getfixturevalue("letta_instance"))
    return {**settings, "embeddings_url": request.getfixturevalue("letta_embeddings")}


@pytest.fixture
def archive_environment(archive: ArchiveKind, request: pytest.FixtureRequest) -> dict[str, str]:
    """The same for a service as a process."""
    if archive == "embedded":
        return {}
    letta: RealLetta = request.getfixturevalue("letta")
    return letta.environment(request.getfixturevalue("letta_instance"))


# Services shared by the whole run


class SharedServices:
    """The services of one database, open and keyed, each started when first asked for."""

    def __init__(self, folders: pytest.TempPathFactory, server: Postgres | None) -> None:
        self._folders = folders
        self._server = server
        self._open = ExitStack()
        self._running: dict[str, InProcessService] = {}

    def get(self, **settings: object) -> InProcessService:
        key = repr(sorted(settings.items()))
        if key not in self._running:
            folder = self._folders.mktemp("shared") / "data"
            storage = self._open.enter_context(fresh_storage(folder, server=self._server))
            service = InProcessService(storage, **settings)
            self._running[key] = self._open.enter_context(service)
        return self._running[key]

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
def service(
    shared_services: SharedServices, archive_settings: dict[str, object]
) -> InProcessService:
    """The shared service in open mode."""
    return shared_services.get(**archive_settings)


@pytest.fixture
def keyed_service(
    shared_services: SharedServices, archive_settings: dict[str, object]
) -> InProcessService:
    """The shared service that asks for API_KEY or a node token."""
    return shared_services.get(api_keys=(API_KEY,), **archive_settings)


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
