"""A node is written by its own executor only, and accepted bytes never change."""

import hashlib
from http.client import HTTPConnection

import httpx
import pytest

from tests.support.client import Api, answer
from tests.support.tree import Tree

WRITES = ("/memory", "/memory/batch")


def write(api: Api, written: str, route: str, claim: str | None, **extra: object) -> httpx.Response:
    entry = {"text": "a blue door", **extra}
    body = entry if route == "/memory" else {"entries": [entry]}
    return api.request("POST", f"/nodes/{written}{route}", claim=claim, json=body)


def assert_nothing_is_left(tree: Tree) -> None:
    counts = answer(tree.api.get_checkpoint(tree.checkpoint))
    assert counts["entries"] == 0
    for name in tree.names:
        assert tree.own(name) == []
        assert tree.search(name, "a blue door", include_self=True) == []


@pytest.mark.parametrize("route", WRITES)
@pytest.mark.parametrize("claim", ["a2", "a", "root", "b"])
def test_anyone_elses_write_is_refused_and_leaves_nothing(
    tree: Tree, api: Api, route: str, claim: str
) -> None:
    refused = write(api, tree["a1"], route, tree[claim])

    assert refused.status_code == 403
    assert refused.json()["type"] == "/problems/cow-violation"
    assert_nothing_is_left(tree)


@pytest.mark.parametrize("route", WRITES)
def test_a_write_without_a_claim_is_told_to_send_one(tree: Tree, api: Api, route: str) -> None:
    refused = write(api, tree["a1"], route, None)

    assert refused.status_code == 428
    assert refused.json()["type"] == "/problems/current-node-required"
    assert_nothing_is_left(tree)


@pytest.mark.parametrize("route", WRITES)
@pytest.mark.parametrize("claim", ["{upper}", "x{node}", "{node}x", "", "{name}"])
def test_the_claim_is_compared_byte_for_byte(tree: Tree, api: Api, route: str, claim: str) -> None:
    sent = claim.format(upper=tree["a1"].upper(), node=tree["a1"], name="a1")

    assert write(api, tree["a1"], route, sent).status_code == 403
    assert_nothing_is_left(tree)


@pytest.mark.parametrize("route", WRITES)
def test_blanks_around_a_header_are_no_part_of_its_value(tree: Tree, api: Api, route: str) -> None:
    # By hand: a well-behaved client would not send them.
    connection = HTTPConnection(api.http.base_url.host, api.http.base_url.port or 80)
    entry = '{"text": "a blue door"}'
    connection.putrequest("POST", f"/nodes/{tree['a1']}{route}")
    connection.putheader("X-Current-Node", f"  {tree['a1']} \t")
    connection.putheader("Content-Type", "application/json")
    body = entry if route == "/memory" else f'{{"entries": [{entry}]}}'
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body.encode())
    status = connection.getresponse().status
    connection.close()

    assert status == 201
    assert tree.own("a1") == ["a blue door"]


@pytest.mark.parametrize("route", WRITES)
def test_two_claims_are_never_chosen_from(tree: Tree, api: Api, route: str) -> None:
    entry = {"text": "a blue door"}
    for order in (("a1", "a2"), ("a2", "a1"), ("a1", "a1")):
        refused = api.http.post(
            f"/nodes/{tree['a1']}{route}",
            headers=[("X-Current-Node", tree[name]) for name in order],
            json=entry if route == "/memory" else {"entries": [entry]},
        )
        assert refused.status_code == 403
        assert refused.json()["type"] == "/problems/ambiguous-claim"
    assert_nothing_is_left(tree)


@pytest.mark.parametrize("route", WRITES)
def test_a_node_in_the_body_is_no_claim(tree: Tree, api: Api, route: str) -> None:
    assert write(api, tree["a2"], route, tree["a2"], node=tree["a1"]).status_code == 422
    assert_nothing_is_left(tree)


def test_metadata_that_names_another_node_is_plain_data(tree: Tree, api: Api) -> None:
    metadata = {"node": tree["a1"], "agent_id": tree["a1"]}

    stored = answer(api.write(tree["a2"], "a blue door", metadata=metadata))

    assert (stored["node"], stored["metadata"]) == (tree["a2"], metadata)
    assert tree.own("a1") == []


@pytest.mark.parametrize("claim", ["a2", None])
def test_a_clear_by_anyone_else_removes_nothing(tree: Tree, api: Api, claim: str | None) -> None:
    tree.write("a1", "a blue door")

    refused = api.clear(tree["a1"], claim=claim and tree[claim])

    assert refused.status_code == (403 if claim else 428)
    assert tree.own("a1") == ["a blue door"]


def test_a_clear_removes_the_nodes_own_entries_from_every_read(tree: Tree, api: Api) -> None:
    tree.write("a", "a blue door", "a green door")
    tree.write("root", "a red door")
    assert len(tree.search("a1", "door")) == 3

    assert answer(api.clear(tree["a"])) == {"removed": 2}

    assert tree.search("a1", "door") == ["a red door"]
    assert tree.inherited("a1") == ["a red door"]
    assert tree.own("a") == []
    assert answer(api.get_node(tree["a"]))["entry_count"] == 0


class TestASealedNode:
    """It accepts no more writes, and reads as before."""

    @pytest.fixture
    def sealed(self, tree: Tree, api: Api) -> Tree:
        tree.write("a", "a blue door")
        assert answer(api.seal(tree["a"]))["sealed"] is True
        return tree

    @pytest.mark.parametrize("route", WRITES)
    def test_it_accepts_no_entry(self, sealed: Tree, api: Api, route: str) -> None:
        refused = write(api, sealed["a"], route, sealed["a"])

        assert refused.status_code == 409
        assert refused.json()["type"] == "/problems/node-sealed"
        assert sealed.own("a") == ["a blue door"]

    def test_it_is_not_cleared_or_patched(self, sealed: Tree, api: Api) -> None:
        assert api.clear(sealed["a"]).status_code == 409
        assert api.patch_node(sealed["a"], eval_summary="x").status_code == 409
        assert sealed.own("a") == ["a blue door"]

    def test_sealing_it_again_changes_nothing(self, sealed: Tree, api: Api) -> None:
        before = answer(api.get_node(sealed["a"]))

        assert answer(api.seal(sealed["a"])) == before

    def test_its_children_go_on(self, sealed: Tree) -> None:
        sealed.write("a1", "a green door")

        assert sealed.search("a1", "door", include_self=True)
        assert sealed.search("a1", "door") == ["a blue door"]

    def test_its_executor_adds_no_trace_step(self, sealed: Tree, api: Api) -> None:
        refused = api.trace_step(sealed.checkpoint, "thought", claim=sealed["a"])

        assert refused.status_code == 409

    def test_nobody_else_seals_it(self, tree: Tree, api: Api) -> None:
        assert api.seal(tree["a"], claim=tree["b"]).status_code == 403
        assert api.seal(tree["a"], claim=None).status_code == 428


@pytest.mark.parametrize(
    "text",
    [
        "  blanks around  ",
        "\ttab\r\nand lines\n",
        "狐が庭を走る",
        "\U0001f98a fox",
        "é e\u0301",
        "\u200b",
    ],
)
def test_accepted_bytes_come_back_unchanged(tree: Tree, api: Api, text: str) -> None:
    metadata = {"z": 1, "a": [1.5, None, True, {"k": "é"}], "n": -(2**63), "m": 2**63 - 1}

    stored = answer(api.write(tree["a"], text, metadata=metadata))

    assert stored["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    [listed] = answer(api.entries(tree["a"]))["items"]
    assert listed == stored
    assert list(listed["metadata"]) == list(metadata)
    assert listed["metadata"] == metadata


def test_a_nodes_digest_is_made_of_its_entries_digests_in_order(tree: Tree, api: Api) -> None:
    stored = tree.write("a", "one", "two", "three")
    whole = hashlib.sha256()
    for entry in stored:
        whole.update(bytes.fromhex(entry["sha256"]))

    node = answer(api.get_node(tree["a"]))

    assert (node["entry_count"], node["digest"]) == (3, whole.hexdigest())


def test_a_batch_is_stored_all_or_not_at_all(tree: Tree, api: Api) -> None:
    refused = api.write_batch(tree["a"], ["one", "two", " \n", "four"])
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"] == ["body", "entries", 2, "text"]
    assert tree.own("a") == []

    stored = answer(api.write_batch(tree["a"], ["one", "two", "four"]))
    assert [entry["text"] for entry in stored["items"]] == ["one", "two", "four"]
    assert tree.own("a") == ["one", "two", "four"]


def test_created_at_only_grows(tree: Tree) -> None:
    stored = tree.write("a", *(f"entry {number}" for number in range(20)))

    times = [entry["created_at"] for entry in stored]
    assert times == sorted(set(times))
