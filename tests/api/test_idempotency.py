"""With a key, a repeat gets the first answer again, and nothing twice."""

import socket
import threading
import time
from collections.abc import Callable

import httpx
import pytest

from app.db import idempotency
from tests.conftest import API_KEY, StartService
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint

REPLAYED = "Idempotency-Replayed"


def creates(tree: Tree) -> dict[str, Callable[[str, str], httpx.Response]]:
    """Every create, given what to create and a key."""
    api, a = tree.api, tree["a"]
    return {
        "entry": lambda what, key: api.write(a, what, key=key),
        "batch": lambda what, key: api.write_batch(a, [what, what], key=key),
        "step": lambda what, key: api.trace_step(tree.checkpoint, what, key=key),
        "node": lambda what, key: api.node(tree.checkpoint, what, "a", key=key),
        "checkpoint": lambda what, key: api.checkpoint(None, name=what, key=key),
    }


@pytest.mark.parametrize("kind", ["entry", "batch", "step", "node", "checkpoint"])
def test_the_same_body_gets_the_first_answer_and_another_is_told(tree: Tree, kind: str) -> None:
    create, key = creates(tree)[kind], unique_checkpoint("key")

    first = create("one", key)
    again = create("one", key)
    other = create("two", key)

    assert first.status_code == 201
    assert (again.status_code, again.text) == (201, first.text)
    assert (REPLAYED in first.headers, again.headers[REPLAYED]) == (False, "true")
    assert other.status_code == 422
    assert other.json()["type"] == "/problems/idempotency-mismatch"


def test_a_key_counts_for_one_path_and_method(tree: Tree, api: Api) -> None:
    key = unique_checkpoint("key")
    for response in (
        api.write(tree["a"], "x", key=key),
        api.write(tree["b"], "x", key=key),
        api.trace_step(tree.checkpoint, "x", key=key),
    ):
        assert (response.status_code, REPLAYED in response.headers) == (201, False)


def test_a_key_counts_for_one_credential(keyed_api: Api) -> None:
    tree, key = grow_tree(keyed_api, unique_checkpoint()), unique_checkpoint("key")
    token = answer(keyed_api.token(tree["a"]))["token"]
    with keyed_api.with_bearer(token) as worker:
        first = keyed_api.write(tree["a"], "x", key=key)
        second = worker.write(tree["a"], "x", key=key)

    assert second.status_code == 201
    assert first.json()["id"] != second.json()["id"]


def test_a_key_counts_for_one_claim(tree: Tree, api: Api) -> None:
    key = unique_checkpoint("key")

    mine = answer(api.trace_step(tree.checkpoint, "step", claim=tree["a1"], key=key))
    theirs = answer(api.trace_step(tree.checkpoint, "step", claim=tree["a2"], key=key))

    assert (mine["node"], theirs["node"]) == (tree["a1"], tree["a2"])


def test_repeats_at_once_store_one_entry(tree: Tree) -> None:
    key, seen = unique_checkpoint("key"), []

    def send() -> None:
        with Api(str(tree.api.http.base_url)) as api:
            seen.append(api.write(tree["a"], "x", key=key))

    threads = [threading.Thread(target=send) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {response.status_code for response in seen} == {201}
    assert len({response.text for response in seen}) == 1
    assert sum(REPLAYED in response.headers for response in seen) == 11
    assert tree.own("a") == ["x"]


def test_only_answers_of_success_are_kept(tree: Tree, api: Api) -> None:
    key = unique_checkpoint("key")

    assert api.write(tree["a"], "x", claim=tree["b"], key=key).status_code == 403
    assert api.write(tree["a"], " ", key=key).status_code == 422
    assert api.write(tree["a"], "x", key=key).status_code == 201


def test_a_repeat_is_answered_after_the_node_was_sealed(tree: Tree, api: Api) -> None:
    key = unique_checkpoint("key")
    first = api.write(tree["a"], "x", key=key)
    answer(api.seal(tree["a"]))

    again = api.write(tree["a"], "x", key=key)

    assert (again.status_code, again.text) == (201, first.text)
    assert api.write(tree["a"], "x").status_code == 409


def test_a_key_goes_with_its_checkpoint(tree: Tree, api: Api) -> None:
    key = unique_checkpoint("key")
    first = answer(api.write(tree["root"], "x", key=key))
    assert api.purge(tree.checkpoint).status_code == 204
    again = grow_tree(api, tree.checkpoint)

    second = answer(api.write(again["root"], "x", key=key))

    assert second["id"] != first["id"]


def test_a_key_is_good_for_a_day(tree: Tree, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    key = unique_checkpoint("key")
    first = answer(api.write(tree["a"], "x", key=key))
    day_us = 24 * 3600 * 1_000_000
    monkeypatch.setattr(idempotency, "now_us", lambda: time.time_ns() // 1000 + day_us)

    second = answer(api.write(tree["a"], "y", key=key))

    assert second["id"] != first["id"]


@pytest.mark.parametrize("key", ["", "x" * 201, "é", "a\tb"])
def test_a_key_is_1_to_200_printable_ascii_characters(tree: Tree, api: Api, key: str) -> None:
    refused = api.http.post(
        f"/nodes/{tree['a']}/memory",
        headers={b"X-Current-Node": tree["a"].encode(), b"Idempotency-Key": key.encode()},
        json={"text": "x"},
    )

    assert (refused.status_code, tree.own("a")) == (422, [])


def test_two_keys_are_refused(tree: Tree, api: Api) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), ("X-Current-Node", tree["a"])]

    refused = api.http.post(f"/nodes/{tree['a']}/memory", headers=headers, json={"text": "x"})

    assert (refused.status_code, tree.own("a")) == (422, [])


def test_a_token_is_given_out_without_a_key_only(tree: Tree, api: Api) -> None:
    path = f"/nodes/{tree['a']}/token"

    assert api.request("POST", path, key="k").status_code == 422
    assert api.request("POST", path).status_code == 201


def test_a_client_that_hung_up_changes_nothing_of_it(service: InProcessService, tree: Tree) -> None:
    key = unique_checkpoint("key")
    body = b'{"text":"x"}'
    head = (
        f"POST /nodes/{tree['a']}/memory HTTP/1.1\r\nHost: x\r\nX-Current-Node: {tree['a']}\r\n"
        f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    url = httpx.URL(service.base_url)
    for _ in range(10):
        with socket.create_connection((url.host, url.port or 80)) as impatient:
            impatient.sendall(head.encode() + body)

    answer(tree.api.write(tree["a"], "x", key=key))

    assert tree.own("a") == ["x"]


def test_keys_survive_a_restart(start_service: StartService) -> None:
    service = start_service(api_keys=(API_KEY,))
    key = unique_checkpoint("key")
    with Api(service.base_url, bearer=API_KEY) as api:
        tree = grow_tree(api, unique_checkpoint())
        first = api.write(tree["a"], "x", key=key)
    storage = service.storage
    service.stop()
    with Api(start_service(storage=storage, api_keys=(API_KEY,)).base_url, bearer=API_KEY) as api:
        again = api.write(tree["a"], "x", key=key)

    assert (again.text, again.headers[REPLAYED]) == (first.text, "true")
