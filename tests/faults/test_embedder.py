"""The embedding endpoint is down, slow, wrong or picky, and the ledger goes on."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import httpx
import pytest
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable

from tests.conftest import StartService
from tests.embedding.endpoint import (
    Answer,
    Endpoint,
    Request,
    body,
    embeddings,
    headers_then_silence,
    silence,
)
from tests.support.client import Api, Json, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

POISON = "REFUSE-ME"
DIMENSIONS = 16
# Short enough for a test, and long enough for an endpoint on a busy machine.
TIMEOUT_S = 1.0
INDEX_WAIT_S = 0.3

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def vector_of(text: str) -> list[float]:
    """A direction of the text's own."""
    return [byte - 127.5 for byte in sha256(text.encode()).digest()[:DIMENSIONS]]


GOOD = embeddings(vector_of)


async def picky(request: Request, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Refuse any request that holds the poison, as a whole."""
    refused = any(POISON in text for text in request.texts)
    await (body("no", status=400) if refused else GOOD)(request, receive, send)


FAULTS = {
    "answers 500": body("oops", status=500),
    "is silent": silence,
    "stalls after the headers": headers_then_silence,
    "does not answer embeddings": body("<html>"),
    "does not accept the key": body("no", status=401),
}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(GOOD) as running:
        yield running


@pytest.fixture
def remote(endpoint: Endpoint, start_service: StartService) -> InProcessService:
    """A service whose embedder is the endpoint."""
    return start_service(
        embedder="openai",
        embedding_url=endpoint.url,
        embedding_model="m",
        embedding_dim=DIMENSIONS,
        embedding_timeout_s=TIMEOUT_S,
        index_wait_s=INDEX_WAIT_S,
    )


@pytest.fixture
def remote_api(remote: InProcessService) -> Iterator[Api]:
    with Api(remote.base_url) as api:
        yield api


@pytest.fixture
def remote_tree(remote_api: Api) -> Tree:
    return grow_tree(remote_api, unique_checkpoint())


def all_settled(tree: Tree) -> Json:
    """Wait until nothing is pending and return the checkpoint."""

    def settled() -> Json | None:
        shown = answer(tree.api.get_checkpoint(tree.checkpoint))
        return shown if shown["pending"] == 0 else None

    shown = wait_until(settled, describe="nothing is pending", timeout=60)
    assert shown is not None
    return shown


def assert_unavailable(response: httpx.Response) -> None:
    assert response.status_code == httpx.codes.SERVICE_UNAVAILABLE, response.text
    assert response.json()["type"] == "/problems/archive-unavailable"
    assert response.json()["detail"].partition(": ")[2]
    assert int(response.headers["retry-after"]) >= 1


def test_a_writer_is_told_as_soon_as_its_entry_is_indexed(
    start_service: StartService, endpoint: Endpoint
) -> None:
    service = start_service(
        embedder="openai",
        embedding_url=endpoint.url,
        embedding_model="m",
        embedding_dim=DIMENSIONS,
        index_wait_s=300,  # the request would time out before this does
    )
    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        [entry] = tree.write("root", "told at once")

        assert entry["indexed"] is True
        assert tree.search("a", "told at once") == ["told at once"]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_while_the_endpoint_fails_writes_are_taken_and_searches_told_to_come_again(
    endpoint: Endpoint, remote_api: Api, remote_tree: Tree, fault: Answer
) -> None:
    remote_tree.write("root", "before")
    endpoint.otherwise = fault

    [entry] = remote_tree.write("root", "during")
    assert entry["indexed"] is False
    assert_unavailable(remote_api.search(remote_tree["a"], "during"))
    assert remote_tree.inherited("a") == ["before", "during"]
    assert answer(remote_api.readyz())["status"] == "degraded"

    endpoint.otherwise = GOOD
    assert all_settled(remote_tree)["refused"] == 0
    assert remote_tree.search("a", "during", limit=1) == ["during"]


def test_an_endpoint_that_is_not_there_yet_is_waited_for(start_service: StartService) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    service = start_service(
        embedder="openai",
        embedding_url=f"http://127.0.0.1:{port}/v1",
        embedding_model="m",
        embedding_dim=DIMENSIONS,
        embedding_timeout_s=TIMEOUT_S,
        index_wait_s=INDEX_WAIT_S,
    )
    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        [entry] = tree.write("root", "early")

        assert entry["indexed"] is False
        assert_unavailable(api.search(tree["a"], "early"))


def test_a_poisonous_text_is_counted_as_refused_and_holds_nothing_back(
    endpoint: Endpoint, remote_api: Api, remote_tree: Tree
) -> None:
    endpoint.otherwise = picky
    good = [f"good {number}" for number in range(20)]
    answer(remote_api.write_batch(remote_tree["root"], [*good[:7], POISON, *good[7:]]))

    assert all_settled(remote_tree)["refused"] == 1
    asked = len(endpoint.requests)
    [entry] = remote_tree.write("root", "after")
    assert entry["indexed"] is True
    # One for the write, and none again for the refused text.
    assert [request.texts for request in endpoint.requests[asked:]] == [["after"]]
    found = remote_tree.search("a", "good 3", limit=100)
    assert found[0] == "good 3"
    assert sorted(found) == sorted([*good, "after"])
    assert POISON in remote_tree.inherited("a")


def test_a_query_that_the_endpoint_refuses_is_not_a_failure_of_the_service(
    endpoint: Endpoint, remote_api: Api, remote_tree: Tree
) -> None:
    endpoint.otherwise = picky

    assert_unavailable(remote_api.search(remote_tree["a"], POISON))


@pytest.mark.slow
def test_a_hundred_searches_that_wait_hold_up_no_call_of_the_ledger(
    endpoint: Endpoint, remote: InProcessService, remote_tree: Tree
) -> None:
    remote_tree.write("root", "found afterwards")
    endpoint.otherwise = silence
    waiting = threading.Barrier(101)

    def search(number: int) -> int | None:
        hangs_up = number % 2 == 0
        # A client that hangs up does so long before the service would answer.
        with httpx.Client(timeout=TIMEOUT_S / 4 if hangs_up else 60, trust_env=False) as client:
            waiting.wait()
            url = f"{remote.base_url}/nodes/{remote_tree['a']}/memory/search"
            try:
                return client.post(url, json={"query": "found"}).status_code
            except httpx.ReadTimeout:
                return None

    # A search gives up after four attempts of TIMEOUT_S.
    prompt_s = 3 * TIMEOUT_S
    with (
        ThreadPoolExecutor(100) as clients,
        httpx.Client(timeout=prompt_s, trust_env=False) as ledger,
    ):
        outcomes = [clients.submit(search, number) for number in range(100)]
        waiting.wait()
        url = f"{remote.base_url}/nodes/{remote_tree['a']}/memory"
        headers = {"X-Current-Node": remote_tree["a"]}
        assert ledger.post(url, json={"text": "meanwhile"}, headers=headers).is_success
        assert ledger.get(url).is_success
        assert ledger.get(f"{remote.base_url}/healthz").is_success
        answered = [outcome.result() for outcome in outcomes]

    assert answered[1::2] == [httpx.codes.SERVICE_UNAVAILABLE] * 50
    assert set(answered[0::2]) <= {None, httpx.codes.SERVICE_UNAVAILABLE}
    endpoint.otherwise = GOOD
    all_settled(remote_tree)
    for _ in range(200):
        assert remote_tree.search("a", "found afterwards") == ["found afterwards"]
