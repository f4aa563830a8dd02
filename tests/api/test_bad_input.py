"""Bad input gets a clear problem document, and changes nothing."""

import http.client
import json
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.support.client import Api, Json, answer
from tests.support.tree import Tree

JSON = {"Content-Type": "application/json"}
BROKEN = "run 7\\u0000 loss 0.31", "tail \\ud801 cut", "\\udc00"


def post(api: Api, path: str, raw: str | bytes, *, claim: str | None = None) -> httpx.Response:
    content = raw if isinstance(raw, bytes) else raw.encode()
    return api.request("POST", path, headers=JSON, claim=claim, content=content)


def places(tree: Tree) -> list[tuple[str, str, str]]:
    """Method, path and body, with a place for the broken string."""
    a, checkpoint = tree["a"], tree.checkpoint
    batch = ", ".join(['{"text": "good"}'] * 6 + ['{"text": "%s"}'] + ['{"text": "good"}'] * 3)
    return [
        ("POST", f"/nodes/{a}/memory", '{"text": "%s"}'),
        ("POST", f"/nodes/{a}/memory", '{"text": "x", "metadata": {"k": ["%s"]}}'),
        ("POST", f"/nodes/{a}/memory", '{"text": "x", "metadata": {"%s": 1}}'),
        ("POST", f"/nodes/{a}/memory", '{"text": "x", "%s": 1}'),
        ("POST", f"/nodes/{a}/memory/batch", f'{{"entries": [{batch}]}}'),
        ("POST", f"/nodes/{a}/memory/search", '{"query": "%s"}'),
        ("POST", f"/nodes/{a}/memory/search", '{"query": "x", "filter": {"k": "%s"}}'),
        ("POST", f"/nodes/{a}/memory/search", '{"query": "x", "ancestor_ids": ["%s"]}'),
        ("POST", f"/checkpoints/{checkpoint}/trace", '{"text": "%s"}'),
        ("POST", f"/checkpoints/{checkpoint}/trace/search", '{"query": "%s"}'),
        ("PUT", f"/checkpoints/{checkpoint}/core-memory", '{"persona": "%s"}'),
        ("PUT", f"/checkpoints/{checkpoint}/core-memory", '{"context": {"goal": "%s"}}'),
        ("PUT", f"/checkpoints/{checkpoint}/core-memory/sections/user", '{"text": "%s"}'),
        ("PATCH", f"/checkpoints/{checkpoint}/core-memory/sections/user", '{"append": "%s"}'),
        ("POST", f"/checkpoints/{checkpoint}/nodes", '{"name": "x", "metadata": {"k": "%s"}}'),
        ("POST", f"/checkpoints/{checkpoint}/nodes", '{"name": "x", "eval_summary": "%s"}'),
        ("POST", f"/checkpoints/{checkpoint}/nodes", '{"name": "x", "parent": "%s"}'),
        ("PATCH", f"/nodes/{a}", '{"eval_summary": "%s"}'),
        ("POST", "/checkpoints", '{"name": "%s"}'),
    ]


def state(tree: Tree) -> list[Json]:
    api = tree.api
    return [
        answer(api.get_checkpoint(tree.checkpoint)),
        answer(api.get_node(tree["a"])),
        answer(api.core_memory(tree.checkpoint)),
        answer(api.trace(tree.checkpoint)),
    ]


@pytest.mark.parametrize("broken", BROKEN)
def test_characters_that_no_store_keeps_are_refused_wherever_they_are(
    tree: Tree, api: Api, broken: str
) -> None:
    before = state(tree)
    for method, path, body in places(tree):
        refused = api.request(
            method, path, headers=JSON, claim=tree["a"], content=(body % broken).encode()
        )
        assert refused.status_code == 422, (path, body)
        problem = refused.json()
        assert problem["type"] == "/problems/invalid-input"
        assert problem["errors"][0]["loc"][0] == "body"
        assert len(problem["errors"][0]["loc"]) > 1
        assert "\\ud801" not in refused.text
    assert state(tree) == before

    tree.write("a", "the next good write")
    assert tree.own("a") == ["the next good write"]


def test_a_whole_pair_comes_back_as_the_fox(tree: Tree, api: Api) -> None:
    stored = post(api, f"/nodes/{tree['a']}/memory", '{"text": "\\ud83e\\udd8a"}', claim=tree["a"])

    assert answer(stored)["text"] == "\U0001f98a"


def test_a_null_character_in_a_url_is_refused(tree: Tree, api: Api) -> None:
    path = f"/nodes/{tree['a']}/memory"

    assert api.request("GET", f"{path}/search?query=a%00b").status_code == 422
    assert api.request("GET", f"{path}/inherited?metadata.k=a%00b").status_code == 422
    assert api.request("GET", f"{path}/inherited?metadata.a%00b=x").status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "nul",
        '{"text": NaN}',
        '{"text": "x", "metadata": {"k": NaN}}',
        '{"text": "x", "metadata": {"k": Infinity}}',
        '{"text": "x", "metadata": {"k": 1e999}}',
        '{"text": "x", "metadata": {"k": 9223372036854775808}}',
        '{"text": "x", "metadata": {"k": %s}}' % ("9" * 5_000),
        '{"text": "x", "metadata": %s}' % ("[" * 100_000),
        '{"text": "x", "metadata": {"k": %s}}' % ("[" * 17 + "]" * 17),
        '{"text": "x", "metadata": {"k": "%s"}}' % ("x" * 16_384),
        '{"text": "x", "metadata": []}',
        '{"text": "x", "metadata": null}',
        '{"text": null}',
        '{"text": 7}',
        '{"text": ["x"]}',
        '{"text": ""}',
        '{"text": " \\n\\t"}',
        '{"text": "x", "extra": 1}',
        '{"text": "x", "text": "y"}',
        '{"text": "x", "metadata": {"a": 1, "a": 2}}',
        "[]",
        '"x"',
        "{}",
    ],
)
def test_a_body_that_breaks_a_rule_is_422_and_stores_nothing(
    tree: Tree, api: Api, body: str
) -> None:
    refused = post(api, f"/nodes/{tree['a']}/memory", body, claim=tree["a"])

    assert refused.status_code == 422
    assert refused.json()["errors"]
    assert tree.own("a") == []


@pytest.mark.parametrize(
    "body", [b"\xff\xfe{}", b'{"text": "\xe9"}', '{"text": "x"}'.encode("utf-16")]
)
def test_a_body_that_is_not_utf8_is_refused(tree: Tree, api: Api, body: bytes) -> None:
    assert post(api, f"/nodes/{tree['a']}/memory", body, claim=tree["a"]).status_code == 422


@pytest.mark.parametrize(
    "media_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "application/xml", "application/jsonx"],
)
def test_another_media_type_is_415(tree: Tree, api: Api, media_type: str) -> None:
    refused = api.request(
        "POST",
        f"/nodes/{tree['a']}/memory",
        headers={"Content-Type": media_type} if media_type else {},
        claim=tree["a"],
        content=b'{"text": "x"}',
    )

    assert (refused.status_code, tree.own("a")) == (415, [])


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_by_any_spelling_is_taken(tree: Tree, api: Api, media_type: str) -> None:
    sent = api.request(
        "POST",
        f"/nodes/{tree['a']}/memory",
        headers={"Content-Type": media_type},
        claim=tree["a"],
        content=b'{"text": "x"}',
    )

    assert sent.status_code == 201


def test_texts_over_their_limits_are_413_and_say_the_limit(tree: Tree, api: Api) -> None:
    a = tree["a"]
    for refused, limit in (
        (api.write(a, "x" * 32_769), 32_768),
        (api.write(a, "é" * 16_385), 32_768),
        (api.write_batch(a, ["x", "x" * 32_769]), 32_768),
        (api.trace_step(tree.checkpoint, "x" * 32_769), 32_768),
        (api.search_trace(tree.checkpoint, "x" * 16_385), 16_384),
        (api.patch_node(a, eval_summary="x" * 16_385), 16_384),
        (api.node(tree.checkpoint, "n", eval_summary="x" * 16_385), 16_384),
        (api.write(a, "x" * (8 * 1024 * 1024)), 8 * 1024 * 1024),
    ):
        assert (refused.status_code, refused.json()["limit"]) == (413, limit)
    assert answer(api.write(a, "x" * 32_768))["indexed"] is True
    assert len(tree.own("a")) == 1


def test_a_chunked_body_over_the_limit_is_cut_off(tree: Tree, api: Api) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1024 * 1024

    refused = api.http.post(
        f"/nodes/{tree['a']}/memory",
        headers={**JSON, "X-Current-Node": tree["a"]},
        content=chunks(),
    )

    assert refused.status_code == 413


def test_a_batch_has_1_to_1000_entries(tree: Tree, api: Api) -> None:
    for count in (0, 1001):
        assert api.write_batch(tree["a"], ["x"] * count).status_code == 422
    assert answer(api.get_node(tree["a"]))["entry_count"] == 0
    assert len(answer(api.write_batch(tree["a"], ["x"] * 1000))["items"]) == 1000


@pytest.mark.parametrize(
    "body",
    [
        {"query": ""},
        {"query": "  "},
        {"query": None, "limit": 5},
        {"query": "x", "limit": "5"},
        {"query": "x", "limit": True},
        {"query": "x", "limit": 1.5},
        {"query": "x", "include_self": 1},
        {"query": "x", "filter": {"k": {}}},
        {"query": "x", "filter": {"k": [1]}},
        {"query": "x", "filter": []},
        {"query": "x", "filter": {"k": 2**64}},
        {"query": "x", "ancestor_ids": "root"},
        {"query": "x", "ancestor_ids": [1]},
        {"query": "x", "top_k": 3},
    ],
)
def test_a_search_that_breaks_a_rule_is_422(tree: Tree, api: Api, body: Json) -> None:
    refused = post(api, f"/nodes/{tree['a']}/memory/search", json.dumps(body))

    assert refused.status_code == 422


def test_an_unknown_query_parameter_is_422_and_named(tree: Tree, api: Api) -> None:
    for path in (
        f"/nodes/{tree['a']}/memory?offset=3",
        f"/nodes/{tree['a']}/memory/search?query=x&tags=y",
        f"/nodes/{tree['a']}?metadata.k=v",
        "/checkpoints?page=2",
    ):
        refused = api.request("GET", path)
        assert refused.status_code == 422
        assert refused.json()["type"] == "/problems/unknown-query-parameter"


@pytest.mark.parametrize(
    "path",
    ["/nodes/{node}/memory/search?query=", "/checkpoints/{checkpoint}/session?query=%20"],
)
def test_what_is_wrong_in_a_query_string_is_said_of_the_query_string(
    tree: Tree, api: Api, path: str
) -> None:
    url = path.format(node=tree["a"], checkpoint=tree.checkpoint)

    refused = api.request("GET", url)

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"] == ["query", "query"]


def test_a_query_parameter_comes_once_unless_it_is_a_list(tree: Tree, api: Api) -> None:
    path = f"/nodes/{tree['a1']}/memory/search"

    assert api.request("GET", f"{path}?query=x&query=y").status_code == 422
    assert api.request("GET", f"{path}?query=x&limit=1&limit=5").status_code == 422
    both = f"{path}?query=x&ancestor_ids=root&ancestor_ids=a"
    assert answer(api.request("GET", both))["scope"] == [tree["root"], tree["a"]]


@pytest.mark.parametrize("broken", ["%ff", "%ed%a0%80", "%e6%90"])
def test_a_url_that_is_not_utf8_is_refused(tree: Tree, api: Api, broken: str) -> None:
    path = f"/nodes/{tree['a']}/memory/search"

    assert api.request("GET", f"{path}?query={broken}").status_code == 422
    assert api.request("GET", f"{path}?query=x&metadata.k={broken}").status_code == 422


def test_what_is_not_there_is_404(api: Api) -> None:
    for response in (
        api.get_node("exp-nowhere.root"),
        api.write("exp-nowhere.root", "x"),
        api.search("exp-nowhere.root", "x"),
        api.seal("exp-nowhere.root"),
        api.token("exp-nowhere.root"),
        api.node("exp-nowhere", "x"),
        api.trace("exp-nowhere"),
        api.trace_step("exp-nowhere", "x"),
        api.context("exp-nowhere"),
        api.tree("exp-nowhere"),
        api.access_log("exp-nowhere"),
        api.reindex("exp-nowhere"),
        api.purge("exp-nowhere"),
    ):
        assert response.status_code == 404, response.request.url


def test_the_checks_come_in_their_order(tree: Tree, api: Api) -> None:
    nowhere, sealed = f"{tree.checkpoint}.nobody", tree["b"]
    answer(api.seal(sealed))

    assert api.write(nowhere, "x" * 32_769, claim=None).status_code == 413
    assert api.write(nowhere, "", claim=None).status_code == 422
    assert api.write(nowhere, "x", claim=None).status_code == 404
    assert api.write(sealed, "x", claim=None).status_code == 428
    assert api.write(sealed, "x", claim=tree["a"]).status_code == 403
    assert api.write(sealed, "x").status_code == 409


def sent_raw(api: Api, start: str, rest: str) -> str:
    """Send a request as it is written here, and return the whole answer."""
    url = api.http.base_url
    with socket.create_connection((url.host, url.port or 80), timeout=10) as connection:
        connection.sendall(f"{start}\r\nConnection: close\r\n{rest}".encode())
        with connection.makefile("rb") as answered:
            return answered.read().decode()


@pytest.mark.parametrize(
    "length",
    [
        "Content-Length: many",
        "Content-Length: -1",
        "Content-Length: +12",
        "Content-Length: 12, 12",
        "Content-Length: 12\r\nContent-Length: 3",
        f"Content-Length: {10**30}",
        "Content-Length: 12\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
    ],
)
def test_a_length_that_means_nothing_is_400_and_stores_nothing(
    tree: Tree, api: Api, length: str
) -> None:
    head = f"X-Current-Node: {tree['a']}\r\nContent-Type: application/json\r\n{length}"

    answered = sent_raw(
        api,
        f"POST /nodes/{tree['a']}/memory HTTP/1.1\r\nHost: x",
        f'{head}\r\n\r\n{{"text": "x"}}',
    )

    assert answered.startswith("HTTP/1.1 400 ")
    assert tree.own("a") == []


def test_a_length_over_the_limit_is_413_before_any_of_the_body_came(tree: Tree, api: Api) -> None:
    answered = sent_raw(
        api,
        f"POST /nodes/{tree['a']}/memory HTTP/1.1\r\nHost: x",
        f"Content-Type: application/json\r\nContent-Length: {10**12}\r\n\r\n",
    )

    assert answered.startswith("HTTP/1.1 413 ")
    assert json.loads(answered.partition("\r\n\r\n")[2])["limit"] == 8 * 1024 * 1024


def test_http_1_0_is_served_alike(tree: Tree, api: Api) -> None:
    body = '{"text": "x"}'
    head = f"X-Current-Node: {tree['a']}\r\nContent-Type: application/json"

    stored = sent_raw(
        api,
        f"POST /nodes/{tree['a']}/memory HTTP/1.0",
        f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}",
    )

    assert " 201 " in stored.partition("\r\n")[0]
    assert " 200 " in sent_raw(api, f"GET /nodes/{tree['a']} HTTP/1.0", "\r\n")
    assert tree.own("a") == ["x"]


@pytest.mark.parametrize("depth", [17, 900, 5_000, 100_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"k": ', "}")])
def test_a_value_that_nests_deeper_than_any_reader_goes_is_422(
    tree: Tree, api: Api, opened: str, closed: str, depth: int
) -> None:
    deep = opened * depth + "1" + closed * depth
    for path, body in (
        ("memory", f'{{"text": "x", "metadata": {{"k": {deep}}}}}'),
        ("memory", f'{{"text": "\\u0041", "unknown": {deep}}}'),
        ("memory/search", f'{{"query": "x", "filter": {{"k": {deep}}}}}'),
        ("memory/search", f'{{"query": "x", "ancestor_ids": {deep}}}'),
    ):
        refused = post(api, f"/nodes/{tree['a']}/{path}", body, claim=tree["a"])
        assert refused.status_code == 422, body[:60]
    assert tree.own("a") == []


@pytest.mark.parametrize(
    "junk",
    ["%", "%zz", "%ff%fe", "%00", "%2e%2e%2f", "%ed%a0%81", "a%0ab", "%25%30%30", "x" * 9_000],
)
def test_junk_in_a_path_names_nothing(api: Api, junk: str) -> None:
    connection = http.client.HTTPConnection(api.http.base_url.host, api.http.base_url.port or 80)
    for path in (f"/nodes/{junk}", f"/checkpoints/{junk}", f"/nodes/{junk}/memory"):
        connection.request("GET", path)
        response = connection.getresponse()
        told = json.loads(response.read())
        assert (response.status, told["status"]) == (404, 404), path
    connection.close()


@pytest.mark.parametrize("junk", ["%ff%fe", "%00", "%ed%a0%81"])
def test_junk_in_a_query_is_422(tree: Tree, api: Api, junk: str) -> None:
    connection = http.client.HTTPConnection(api.http.base_url.host, api.http.base_url.port or 80)
    for query in (f"cursor={junk}", f"limit={junk}", f"{junk}=1"):
        connection.request("GET", f"/nodes/{tree['a']}/memory?{query}")
        response = connection.getresponse()
        assert json.loads(response.read())["status"] == response.status == 422, query
    connection.close()
