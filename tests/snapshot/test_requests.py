"""Who may back up and restore, and in what form a snapshot is sent."""

import random

import httpx
import pytest

from tests.conftest import StartService
from tests.snapshot.files import entry, foreign, header, node, packed, sealed
from tests.snapshot.sample import texts
from tests.support.client import Api, answer
from tests.support.letta import EMBEDDINGS_KEY
from tests.support.tree import Tree, grow_tree, unique_checkpoint

FILE = sealed([header(), node("root"), entry("blue door")])
CALLS = [("GET", "backup"), ("POST", "restore"), ("POST", "resume"), ("POST", "snapshot")]


def call(api: Api, method: str, path: str, **headers: str) -> httpx.Response:
    content = FILE if path in {"restore", "resume"} else None
    sent = {"Content-Type": "application/gzip"} if content else {}
    return api.request(method, path, headers={**sent, **headers}, content=content)


@pytest.fixture
def keyed_tree(keyed_api: Api) -> Tree:
    return grow_tree(keyed_api, unique_checkpoint())


@pytest.mark.parametrize(("method", "verb"), CALLS)
def test_a_node_token_reaches_no_snapshot(keyed_tree: Tree, method: str, verb: str) -> None:
    token = answer(keyed_tree.api.token(keyed_tree["root"]))["token"]
    path = f"/checkpoints/{keyed_tree.checkpoint}/{verb}"

    with keyed_tree.api.with_bearer(token) as worker:
        refused = call(worker, method, path)
        elsewhere = call(worker, method, f"/checkpoints/{unique_checkpoint()}/{verb}")

    assert (refused.status_code, elsewhere.status_code) == (403, 403)
    assert keyed_tree.own("root") == []


@pytest.mark.parametrize(("method", "verb"), CALLS)
@pytest.mark.parametrize("bearer", [None, "wrong"], ids=repr)
def test_without_a_key_there_is_no_snapshot(
    keyed_tree: Tree, method: str, verb: str, bearer: str | None
) -> None:
    with keyed_tree.api.with_bearer(bearer) as stranger:
        refused = call(stranger, method, f"/checkpoints/{keyed_tree.checkpoint}/{verb}")

    assert refused.status_code == 401
    assert keyed_tree.own("root") == []


def test_the_embeddings_key_reaches_no_snapshot(start_service: StartService) -> None:
    service = start_service(api_keys=("the key",), embeddings_key=EMBEDDINGS_KEY)
    with Api(service.base_url, bearer=EMBEDDINGS_KEY) as letta:
        for method, verb in CALLS:
            assert call(letta, method, f"/checkpoints/exp1/{verb}").status_code in {401, 403}


@pytest.mark.parametrize(("method", "verb"), CALLS)
def test_a_claim_reaches_no_snapshot(tree: Tree, method: str, verb: str) -> None:
    path = f"/checkpoints/{tree.checkpoint}/{verb}"

    refused = call(tree.api, method, path, **{"X-Current-Node": tree["root"]})

    assert refused.status_code == 403
    assert tree.own("root") == []


@pytest.mark.parametrize("verb", ["restore", "resume", "snapshot"])
def test_an_idempotency_key_is_refused(tree: Tree, verb: str) -> None:
    path = f"/checkpoints/{tree.checkpoint}/{verb}"

    refused = call(tree.api, "POST", path, **{"Idempotency-Key": "once"})

    assert refused.status_code == 422
    assert "Idempotency-Key" in refused.text
    assert tree.own("root") == []


@pytest.mark.parametrize(
    "media_type",
    [
        "application/gzip",
        "application/x-gzip",
        "application/octet-stream",
        "Application/GZIP; charset=binary",
    ],
)
def test_these_types_are_taken(api: Api, media_type: str) -> None:
    checkpoint = unique_checkpoint()

    answer(api.restore(checkpoint, FILE, media_type=media_type))

    assert texts(api, f"{checkpoint}.root") == ["blue door"]


@pytest.mark.parametrize("verb", ["restore", "resume"])
@pytest.mark.parametrize("media_type", ["application/json", "text/plain", ""])
def test_another_type_is_415(api: Api, verb: str, media_type: str) -> None:
    checkpoint = unique_checkpoint()
    headers = {"Content-Type": media_type}

    refused = api.request(
        "POST", f"/checkpoints/{checkpoint}/{verb}", headers=headers, content=FILE
    )

    assert refused.status_code == 415
    assert api.get_checkpoint(checkpoint).status_code == 404


def test_a_body_in_chunks_is_taken(api: Api) -> None:
    checkpoint = unique_checkpoint()

    answer(api.restore(checkpoint, (FILE[at : at + 7] for at in range(0, len(FILE), 7))))

    assert texts(api, f"{checkpoint}.root") == ["blue door"]


@pytest.mark.parametrize("name", ["EXP1", "..%2Fx", "a.b"])
def test_a_checkpoint_of_no_lawful_name_is_not_made(api: Api, name: str) -> None:
    assert api.restore(name, FILE).status_code == 404


@pytest.fixture
def narrow(start_service: StartService) -> Api:
    return Api(start_service(max_snapshot_bytes=20_000).base_url)


def test_a_body_over_the_limit_is_413_announced_or_not(narrow: Api) -> None:
    body = b"\x1f\x8b" + bytes(30_000)
    with narrow:
        for content in (body, (body[at : at + 1000] for at in range(0, len(body), 1000))):
            refused = narrow.restore("exp1", content)
            assert refused.status_code == 413
            assert refused.json()["limit"] == 20_000
        assert narrow.get_checkpoint("exp1").status_code == 404


def test_what_unpacks_to_more_than_the_limit_is_413(narrow: Api) -> None:
    lines = [foreign("a" * 1_000, ts=float(number)) for number in range(30)]
    file = packed(lines)
    assert len(file) < 2_000
    with narrow:
        refused = narrow.restore("exp1", file)
        assert refused.status_code == 413
        assert refused.json()["limit"] == 20_000
        assert narrow.get_checkpoint("exp1").status_code == 404

        answer(narrow.restore("exp1", packed(lines[:15])))


def test_a_snapshot_larger_than_any_other_body_is_taken(start_service: StartService) -> None:
    chance = random.Random(1)
    lines = [foreign(chance.randbytes(50).hex(), ts=float(number)) for number in range(40)]
    service = start_service(max_body_bytes=1024)
    with Api(service.base_url) as api:
        assert len(packed(lines)) > 1024
        assert answer(api.restore("exp1", packed(lines)))["restored"]["entries"] == 40


def test_a_text_over_the_services_own_limit_is_refused(start_service: StartService) -> None:
    with Api(start_service(max_text_bytes=8).base_url) as api:
        refused = api.restore("exp1", FILE)

        assert refused.status_code == 422
        assert refused.json()["line"] == 3


def test_the_scratch_folder_is_empty_after_restores(start_service: StartService) -> None:
    service = start_service()
    with Api(service.base_url) as api:
        answer(api.restore("exp1", FILE))
        assert api.restore("exp1", FILE[:-9]).status_code == 422
        assert api.backup("exp1").is_success

    assert list((service.storage.data_dir / "scratch").iterdir()) == []
