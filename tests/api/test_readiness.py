"""What /healthz and /readyz say: alive, able to take writes, able to search."""

from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import API_KEY, ArchiveKind, StartLive, StartService
from tests.embedding.endpoint import Endpoint, body, silence
from tests.support.client import Api, answer
from tests.support.ports import port_of, reserve_port
from tests.support.service import InProcessService
from tests.support.storage import Storage
from tests.support.tree import grow_tree, unique_checkpoint

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
SECRET = "hunter2"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(body("{}", status=500)) as running:
        yield running


@pytest.fixture
def searchless(start_service: StartService, endpoint: Endpoint) -> Iterator[Api]:
    """A service whose embedder fails from the start."""
    service = start_service(
        embedder="openai",
        embedding_url=endpoint.url,
        embedding_model="m",
        embedding_dim=8,
        embedding_timeout_s=1,
        embedding_api_key=SECRET,
        index_wait_s=0,
    )
    with Api(service.base_url) as api:
        yield api


def test_a_service_that_takes_writes_and_searches_is_ok(
    start_service: StartService, archive: ArchiveKind, archive_settings: dict[str, object]
) -> None:
    model = "wordllama-l2-supercat-256"
    facts = {
        "embedded": {"embedding": model},
        "letta": {"embedding": f"letta/{model}", "letta": "0.16.7"},
    }
    # The shared service may still be telling Letta what the tests before this one set.
    service = start_service(storage=None, **archive_settings)
    with Api(service.base_url) as api:
        assert answer(api.healthz()) == {"status": "ok"}
        assert answer(api.readyz()) == {
            "status": "ok",
            "ledger": None,
            "archive": None,
            "facts": facts[archive],
            "lag": {"purges": 0, "removals": 0, "core_memories": 0},
        }


def test_the_probes_need_no_credential(keyed_service: InProcessService) -> None:
    with Api(keyed_service.base_url) as nobody:
        assert nobody.healthz().is_success
        assert nobody.readyz().is_success
        assert nobody.checkpoints().status_code == httpx.codes.UNAUTHORIZED


def test_the_probe_of_writes_leaves_nothing_that_a_caller_sees(start_service: StartService) -> None:
    with Api(start_service().base_url) as api:
        answer(api.readyz())

        assert answer(api.checkpoints())["items"] == []


@on_sqlite
@pytest.mark.parametrize("fault", [body("{}", status=500), silence], ids=["fails", "is silent"])
def test_without_its_embedder_a_service_is_degraded_and_takes_writes(
    searchless: Api, endpoint: Endpoint, fault: object
) -> None:
    endpoint.otherwise = fault  # type: ignore[assignment]  # parametrize forgets the type
    state = answer(searchless.readyz())

    assert state["status"] == "degraded"
    assert state["ledger"] is None
    assert state["archive"]
    assert SECRET not in state["archive"]
    tree = grow_tree(searchless, unique_checkpoint())
    assert tree.write("a", "taken")[0]["indexed"] is False


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_no_secret_of_an_unreachable_database_is_shown_or_logged(
    start_live: StartLive, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with reserve_port() as nobody:
        url = f"postgresql://user:{SECRET}@127.0.0.1:{port_of(nobody)}/lineage"
        storage = Storage(tmp_path_factory.mktemp("away") / "data", url)
        service = start_live(storage=storage, until="/healthz", LINEAGE_API_KEYS=API_KEY)
        with Api(service.base_url, bearer=API_KEY) as api:
            state, refused = api.readyz(), api.checkpoint("any")
        service.close()

    assert state.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert state.json()["status"] == "unavailable"
    assert "database" in state.json()["ledger"]
    assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert SECRET not in state.text + refused.text + service.log
    assert API_KEY not in service.log
