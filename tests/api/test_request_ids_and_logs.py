"""What the log and the metrics tell of a request that never became whole."""

import json
import socket

import httpx
import pytest

from tests.conftest import StartLive
from tests.support.client import Api
from tests.support.service import LiveService
from tests.support.tree import grow_tree, unique_checkpoint
from tests.support.wait import wait_until

HEAD = (
    "POST /nodes/{node}/memory HTTP/1.1\r\nHost: x\r\nX-Current-Node: {node}\r\n"
    "X-Request-Id: half-sent\r\nContent-Type: application/json\r\n"
)


def lines(service: LiveService) -> list[dict[str, object]]:
    rows = [json.loads(row) for row in service.log.splitlines() if row.startswith("{")]
    return [row for row in rows if row.get("request_id") == "half-sent"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "rest",
    [
        'Content-Length: 100\r\n\r\n{"text": ',
        'Transfer-Encoding: chunked\r\n\r\n9\r\n{"text": \r\n',
        "Transfer-Encoding: chunked\r\n\r\nno length\r\n",
    ],
    ids=["cut body", "cut chunks", "no chunk"],
)
def test_a_body_that_never_came_whole_is_no_failure_of_the_service(
    start_live: StartLive, rest: str
) -> None:
    service = start_live()
    url = httpx.URL(service.base_url)
    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        with socket.create_connection((url.host, url.port or 80)) as sender:
            sender.sendall((HEAD.format(node=tree["a"]) + rest).encode())
        wait_until(lambda: bool(lines(service)), describe="the request is logged", timeout=10)

        counted = api.metrics().text
        assert tree.own("a") == []

    assert [(line["event"], line["status"]) for line in lines(service)] == [("request", 499)]
    assert 'lineage_requests_total{operation="write_entry",status="499"} 1.0' in counted
    assert 'status="500"' not in counted
