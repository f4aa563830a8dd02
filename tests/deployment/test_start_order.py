from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import StartLive
from tests.deployment.files import image_environment, read_compose, read_dockerfile
from tests.deployment.health import run_health_check
from tests.support.ports import LOOPBACK, port_of, reserve_port
from tests.support.postgres import Postgres
from tests.support.proxy import Endpoint, FaultProxy
from tests.support.service import LiveService
from tests.support.storage import Storage
from tests.support.wait import wait_until

KEY = "key-of-the-deployment"
PLACES = {
    "PATH",
    "LETTA_BASE_URL",
    "LINEAGE_HOST",
    "LINEAGE_PORT",
    "LINEAGE_DATA_DIR",
    "LINEAGE_DATABASE_URL",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("database", ["postgresql"], indirect=True),
]


@pytest.fixture
def way_to_database(postgres: Postgres) -> Iterator[FaultProxy]:
    with FaultProxy(Endpoint.unix(postgres.socket_path)) as proxy:
        yield proxy


@pytest.fixture
def composed(
    postgres: Postgres, way_to_database: FaultProxy, start_live: StartLive, tmp_path: Path
) -> Iterator[LiveService]:
    """The service as compose starts it, before its database and its Letta; only places differ."""
    variables = {
        "LINEAGE_API_KEYS": KEY,
        "LINEAGE_EMBEDDINGS_KEY": "key-of-letta",
        "POSTGRES_PASSWORD": "not-asked-for",
    }
    given = read_compose(variables)["services"]["lineage"]["environment"]
    environment = {
        name: value
        for name, value in (image_environment(read_dockerfile()) | given).items()
        if name not in PLACES
    }
    way_to_database.refuse()
    with postgres.fresh_database() as name, reserve_port() as nobody:
        environment["LETTA_BASE_URL"] = f"http://{LOOPBACK}:{port_of(nobody)}"
        storage = Storage(tmp_path / "data", postgres.url(name, port=way_to_database.port))
        service = start_live(storage=storage, until="/healthz", **environment)
        yield service
        service.close()


def readiness(service: LiveService) -> httpx.Response:
    return httpx.get(f"{service.base_url}/readyz", timeout=30)


def test_a_service_without_its_database_is_alive_and_says_that_it_is_not_ready(
    composed: LiveService,
) -> None:
    answer = readiness(composed)

    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert "database" in answer.text
    assert run_health_check(composed.port) == 0


def test_the_service_takes_writes_once_its_database_is_there_without_a_restart_or_a_letta(
    composed: LiveService, way_to_database: FaultProxy
) -> None:
    started_as = composed.pid
    way_to_database.restore()

    wait_until(
        lambda: readiness(composed).is_success,
        describe=lambda: f"/readyz answers 200; the log:\n{composed.log}",
        timeout=60,
    )
    created = httpx.post(
        f"{composed.base_url}/checkpoints",
        json={"id": "late"},
        headers={"Authorization": f"Bearer {KEY}"},
        timeout=30,
    )

    assert created.status_code == httpx.codes.CREATED
    assert readiness(composed).json()["status"] == "degraded"
    assert composed.pid == started_as
