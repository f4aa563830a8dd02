"""No credential shows in an answer, a log, a metric or a file of the service."""

import json

import httpx
import pytest

from tests.conftest import API_KEY, StartLive
from tests.support.client import Api, answer
from tests.support.tree import grow_tree, unique_checkpoint
from tests.support.wait import wait_until

EMBEDDINGS_KEY = "key-that-letta-sends"
WRONG_KEY = "key-that-was-never-given-out"


def whole(response: httpx.Response) -> str:
    """The answer with its headers, in the words that went over the wire."""
    return f"{response.headers.raw} {response.text}"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_no_key_or_token_shows_wherever_it_was_sent(start_live: StartLive) -> None:
    service = start_live(LINEAGE_API_KEYS=API_KEY, LINEAGE_EMBEDDINGS_KEY=EMBEDDINGS_KEY)
    with Api(service.base_url, bearer=API_KEY) as api:
        tree = grow_tree(api, unique_checkpoint())
        token: str = answer(api.token(tree["a"]))["token"]
        secrets = (API_KEY, EMBEDDINGS_KEY, WRONG_KEY, token)
        told: list[str] = []
        for bearer in secrets:
            with api.with_bearer(bearer) as caller:
                told += map(
                    whole,
                    (
                        caller.get_checkpoint(tree.checkpoint),
                        caller.write(tree["a"], "a note", claim=None),
                        caller.search(tree["a"], ""),
                        caller.request("GET", "/v1/models"),
                        caller.readyz(),
                        caller.metrics(),
                    ),
                )
        with api.with_bearer(None) as stranger:
            for secret in secrets:
                refused = stranger.request("GET", "/checkpoints", params={"token": secret})
                assert refused.status_code == 401
                told.append(whole(refused))
        told += [api.access_log(tree.checkpoint).text, api.metrics().text]
    service.terminate()

    for secret in secrets:
        assert not any(secret in text for text in told)
        assert secret not in service.log
        for file in service.storage.data_dir.rglob("*"):
            assert not file.is_file() or secret.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_request_is_logged_under_its_id_without_its_query(start_live: StartLive) -> None:
    service = start_live()
    with Api(service.base_url) as api:
        api.request(
            "GET", "/checkpoints", params={"token": "not-for-logs"}, headers={"X-Request-Id": "r-7"}
        )

        wait_until(lambda: '"r-7"' in service.log, describe="the request is logged", timeout=10)

    (line,) = (json.loads(row) for row in service.log.splitlines() if '"r-7"' in row)
    assert (line["method"], line["path"], line["status"]) == ("GET", "/checkpoints", 422)
    assert "not-for-logs" not in service.log
