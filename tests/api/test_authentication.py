"""Who may call what: API keys, node tokens, and nobody."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import API_KEY, Grow, StartService
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint

OPEN = re.compile(r"/(healthz|readyz|openapi\.json|docs.*|problems/.*)")


@pytest.fixture
def guarded(keyed_api: Api) -> Tree:
    """A tree in the service that has keys, seen with one."""
    return grow_tree(keyed_api, unique_checkpoint())


def operations(api: Api, tree: Tree) -> Iterator[tuple[str, str]]:
    """Every method and path of the OpenAPI description, with HEAD and OPTIONS beside."""
    paths: dict[str, Any] = api.request("GET", "/openapi.json").json()["paths"]
    for template, methods in paths.items():
        path = template.replace("{checkpoint}", tree.checkpoint).replace("{node}", tree["a"])
        path = (
            path.replace("{problem}", "too-large")
            .replace("{note}", "a-note")
            .replace("{section}", "identity")
        )
        for method in {*map(str.upper, methods), "HEAD", "OPTIONS"}:
            yield method, path


@pytest.fixture
def bearer(request: pytest.FixtureRequest, guarded: Tree) -> str | None:
    """The credential of each bad caller."""
    kind: str = request.param
    if kind == "token of a purged checkpoint":
        gone = grow_tree(guarded.api, unique_checkpoint())
        token: str = answer(guarded.api.token(gone["a"]))["token"]
        assert guarded.api.purge(gone.checkpoint).status_code == 204
        return token
    return {"none": None, "wrong": "wrong", "made-up token": "lnt_made-up"}[kind]


@pytest.mark.parametrize(
    "bearer",
    ["none", "wrong", "made-up token", "token of a purged checkpoint"],
    indirect=True,
)
def test_without_a_known_credential_nothing_but_health_and_docs_answers(
    guarded: Tree, bearer: str | None
) -> None:
    with guarded.api.with_bearer(bearer) as stranger:
        for method, path in operations(guarded.api, guarded):
            status = stranger.request(method, path).status_code
            if OPEN.fullmatch(path) and bearer is None:
                assert status in {200, 405}, (method, path)
            elif not OPEN.fullmatch(path):
                assert status == 401, (method, path)
    assert answer(guarded.api.get_checkpoint(guarded.checkpoint))["entries"] == 0


def test_a_refusal_says_how_to_authenticate(guarded: Tree) -> None:
    with guarded.api.with_bearer(None) as stranger:
        refused = stranger.checkpoints()

    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert refused.json()["type"] == "/problems/unauthenticated"


@pytest.mark.parametrize("header", ["Basic a2V5", "Bearer", "", f"Token {API_KEY}", API_KEY])
def test_another_scheme_is_no_credential(guarded: Tree, header: str) -> None:
    with guarded.api.with_bearer(None) as stranger:
        refused = stranger.request("GET", "/checkpoints", headers={"Authorization": header})

    assert refused.status_code == 401


def test_two_credentials_are_none(guarded: Tree) -> None:
    headers = [("Authorization", f"Bearer {API_KEY}"), ("Authorization", "Bearer x")]
    with guarded.api.with_bearer(None) as stranger:
        assert stranger.http.get("/checkpoints", headers=headers).status_code == 401


@pytest.mark.parametrize("bearer", ["none", "wrong"], indirect=True)
def test_who_calls_is_asked_before_what_is_claimed_or_sent(
    guarded: Tree, bearer: str | None
) -> None:
    claims = [("X-Current-Node", guarded["a"]), ("X-Current-Node", guarded["b"])]
    with guarded.api.with_bearer(bearer) as stranger:
        assert stranger.http.get("/checkpoints", headers=claims).status_code == 401
        assert stranger.write(guarded["a"], "x" * 9_000_000).status_code == 401


def test_a_key_in_the_url_is_no_credential(guarded: Tree) -> None:
    with guarded.api.with_bearer(None) as stranger:
        assert stranger.request("GET", f"/checkpoints?api_key={API_KEY}").status_code == 401


def test_in_open_mode_an_unknown_bearer_is_refused_too(tree: Tree, api: Api) -> None:
    with api.with_bearer("unknown") as stranger:
        assert stranger.get_checkpoint(tree.checkpoint).status_code == 401
    assert api.get_checkpoint(tree.checkpoint).status_code == 200


class TestANodeToken:
    @pytest.fixture
    def token(self, guarded: Tree) -> str:
        given = answer(guarded.api.token(guarded["a"]))
        assert given["node"] == guarded["a"]
        token: str = given["token"]
        assert token.startswith("lnt_")
        return token

    @pytest.fixture
    def worker(self, guarded: Tree, token: str) -> Iterator[Api]:
        with guarded.api.with_bearer(token) as worker:
            yield worker

    def test_writes_its_node_and_the_trace_and_reads_its_lineage(
        self, guarded: Tree, worker: Api
    ) -> None:
        guarded.write("root", "a blue door")
        a, checkpoint = guarded["a"], guarded.checkpoint

        assert worker.write(a, "mine", claim=None).status_code == 201
        assert worker.write_batch(a, ["x"], claim=None).status_code == 201
        assert worker.patch_node(a, eval_summary="doors", claim=None).status_code == 200
        step = answer(worker.trace_step(checkpoint, "a thought"))
        assert step["node"] == a
        for read in (
            worker.get_node(a),
            worker.entries(guarded["root"]),
            worker.inherited(a),
            worker.search(a, "door"),
            worker.search_by_get(a, "door"),
            worker.working_context(a),
            worker.trace(checkpoint),
            worker.search_trace(checkpoint, "thought"),
            worker.core_memory(checkpoint),
            worker.core_section(checkpoint, "identity"),
            worker.context(checkpoint),
            worker.healthz(),
        ):
            assert read.status_code == 200, read.request.url
        assert worker.clear(a, claim=None).status_code == 200
        assert worker.seal(a, claim=None).status_code == 200

    def test_reaches_nothing_else(self, guarded: Tree, worker: Api) -> None:
        for method, path in operations(guarded.api, guarded):
            allowed = re.fullmatch(
                r"/nodes/[^/]+(/memory.*|/working-context|/seal)?"
                r"|/checkpoints/[^/]+/(trace.*|core-memory|context)",
                path,
            )
            reads = r".*/(core-memory/sections/identity|archival(/[^/]+)?|notes|session)"
            if method == "GET" and re.fullmatch(reads, path):
                continue
            if method == "POST" and path.endswith(("/archival/search", "/recall/search")):
                continue
            if OPEN.fullmatch(path) or (allowed and method in {"GET", "POST", "PATCH", "DELETE"}):
                continue
            assert worker.request(method, path).status_code == 403, (method, path)
        assert worker.put_core_memory(guarded.checkpoint, persona="x").status_code == 403
        edit = worker.put_core_section(guarded.checkpoint, "identity", "x", if_match="*")
        assert edit.json()["type"] == "/problems/forbidden-to-token"
        assert worker.token(guarded["a"]).status_code == 403

    def test_of_another_node_or_checkpoint_reads_and_writes_nothing_there(
        self, guarded: Tree, worker: Api
    ) -> None:
        other = grow_tree(guarded.api, unique_checkpoint())
        for node in (guarded["b"], guarded["a1"], other["a"], other["root"]):
            assert worker.write(node, "x", claim=None).status_code == 403
            assert worker.write_batch(node, ["x"], claim=None).status_code == 403
            assert worker.clear(node, claim=None).status_code == 403
            assert worker.seal(node, claim=None).status_code == 403
            assert worker.entries(node).status_code == 403
            assert worker.search(node, "x").status_code == 403
        assert worker.trace(other.checkpoint).status_code == 403
        assert worker.trace_step(other.checkpoint, "x").status_code == 403
        assert worker.context(other.checkpoint).status_code == 403

    def test_and_a_header_that_differs_is_ambiguous(self, guarded: Tree, worker: Api) -> None:
        for node, claim in (("a", "b"), ("b", "b"), ("a", "root")):
            refused = worker.write(guarded[node], "x", claim=guarded[claim])
            assert refused.json()["type"] == "/problems/ambiguous-claim"
        assert worker.write(guarded["a"], "x", claim=guarded["a"]).status_code == 201

    def test_that_was_overtaken_is_stale_on_every_call(self, guarded: Tree, worker: Api) -> None:
        newer = answer(guarded.api.token(guarded["a"]))["token"]
        a, checkpoint = guarded["a"], guarded.checkpoint

        for response in (
            worker.write(a, "x", claim=None),
            worker.trace_step(checkpoint, "x"),
            worker.get_node(a),
            worker.entries(guarded["root"]),
            worker.inherited(a),
            worker.search(a, "x"),
            worker.working_context(a),
            worker.trace(checkpoint),
            worker.context(checkpoint),
            worker.seal(a, claim=None),
            worker.clear(a, claim=None),
        ):
            assert response.status_code == 409, response.request.url
            assert response.json()["type"] == "/problems/stale-token"
        with guarded.api.with_bearer(newer) as successor:
            assert successor.write(a, "x", claim=None).status_code == 201
        assert guarded.api.write(a, "by an API key with the header").status_code == 201

    def test_is_refused_by_its_reach_before_the_size_of_what_it_sends(self, worker: Api) -> None:
        refused = worker.checkpoint("exp-large", name="x" * 9_000_000)

        assert refused.json()["type"] == "/problems/forbidden-to-token"

    def test_is_refused_as_another_nodes_then_as_stale_then_as_a_sealed_nodes(
        self, guarded: Tree, worker: Api
    ) -> None:
        for name in ("a", "b"):
            answer(guarded.api.seal(guarded[name]))
        assert worker.write(guarded["a"], "x", claim=None).json()["type"].endswith("node-sealed")
        answer(guarded.api.token(guarded["a"]))

        assert worker.write(guarded["b"], "x", claim=None).json()["type"].endswith("cow-violation")
        assert worker.write(guarded["a"], "x", claim=None).json()["type"].endswith("stale-token")

    def test_that_was_overtaken_gets_no_kept_answer(self, guarded: Tree, worker: Api) -> None:
        key = unique_checkpoint("key")
        answer(worker.write(guarded["a"], "x", claim=None, key=key))
        answer(guarded.api.token(guarded["a"]))

        assert worker.write(guarded["a"], "x", claim=None, key=key).status_code == 409

    def test_of_a_sealed_node_still_reads(self, guarded: Tree, worker: Api) -> None:
        guarded.write("root", "a blue door")
        answer(worker.seal(guarded["a"], claim=None))

        assert worker.write(guarded["a"], "x", claim=None).status_code == 409
        assert worker.trace_step(guarded.checkpoint, "x").status_code == 409
        assert answer(worker.search(guarded["a"], "door"))["results"]
        assert worker.entries(guarded["a"]).status_code == 200

    def test_is_not_kept_in_the_clear(self, keyed_service: InProcessService, token: str) -> None:
        ledger = keyed_service.app.state.services.ledger
        with ledger._engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT * FROM node_tokens").fetchall()

        assert rows
        assert token not in repr(rows)


def test_an_api_key_seals_without_a_claim(guarded: Tree) -> None:
    assert answer(guarded.api.seal(guarded["a"], claim=None))["sealed"] is True
    assert guarded.api.seal(guarded["b"], claim=guarded["a"]).status_code == 403


def test_in_open_mode_a_seal_needs_a_claim(grow: Grow, api: Api) -> None:
    assert api.seal(grow()["a"], claim=None).status_code == 428


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_embeddings_key_is_good_for_v1_alone(start_service: StartService) -> None:
    service = start_service(api_keys=(API_KEY,), embeddings_key="for-letta")
    with Api(service.base_url, bearer="for-letta") as letta:
        assert letta.request("GET", "/v1/models").status_code == 200
        for path in ("/checkpoints", "/metrics", "/nodes/exp1.root"):
            assert letta.request("GET", path).status_code == 403
