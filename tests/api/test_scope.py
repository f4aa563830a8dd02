"""A node reads what its ancestors wrote, and nothing else, by whichever call."""

import pytest

from tests.conftest import Grow
from tests.support.client import Api, answer
from tests.support.tree import Tree

KEY = "the blue door opens at noon"


@pytest.fixture
def planted(tree: Tree) -> Tree:
    """Every node of the tree has written one entry that names it."""
    for name in tree.names:
        tree.write(name, f"{KEY}, says {name}")
    return tree


def says(*names: str) -> set[str]:
    return {f"{KEY}, says {name}" for name in names}


@pytest.mark.parametrize(
    ("reader", "ancestors"),
    [
        ("root", []),
        ("a", ["root"]),
        ("a1", ["root", "a"]),
        ("a2", ["root", "a"]),
        ("b", ["root"]),
    ],
)
def test_a_search_finds_the_ancestors_entries_and_no_others(
    planted: Tree, reader: str, ancestors: list[str]
) -> None:
    assert set(planted.search(reader, KEY, limit=100)) == says(*ancestors)
    assert set(planted.search(reader, KEY, limit=100, include_self=True)) == says(
        *ancestors, reader
    )


def test_inherited_lists_the_lineage_root_first_and_oldest_first(tree: Tree) -> None:
    tree.write("a", "a: first")
    tree.write("root", "root: first", "root: second")
    tree.write("a", "a: second")
    tree.write("a1", "own")
    tree.write("b", "sibling")

    assert tree.inherited("a1") == ["root: first", "root: second", "a: first", "a: second"]


def test_the_scope_of_an_answer_names_the_nodes_searched_root_first(tree: Tree, api: Api) -> None:
    found = answer(api.search(tree["a1"], KEY, include_self=True))

    assert found["scope"] == [tree["root"], tree["a"], tree["a1"]]


def test_ancestor_ids_narrow_the_scope_by_id_or_name(planted: Tree, api: Api) -> None:
    found = answer(api.search(planted["a1"], KEY, ancestor_ids=[planted["root"]], limit=100))
    assert found["scope"] == [planted["root"]]
    assert {hit["text"] for hit in found["results"]} == says("root")

    found = answer(api.search_by_get(planted["a1"], KEY, ancestor_ids=["a"], limit=100))
    assert {hit["text"] for hit in found["results"]} == says("a")


def test_no_ancestor_ids_find_nothing(planted: Tree, api: Api) -> None:
    found = answer(api.search(planted["a1"], KEY, ancestor_ids=[]))

    assert (found["results"], found["scope"]) == ([], [])


@pytest.mark.parametrize("outside", ["a2", "b", "a1", "nobody", "exp2.root"])
def test_ancestor_ids_outside_of_the_lineage_are_refused_by_name(
    planted: Tree, api: Api, outside: str
) -> None:
    refused = api.search(planted["a1"], KEY, ancestor_ids=["root", outside])

    assert refused.status_code == 403
    assert refused.json()["type"] == "/problems/scope-violation"
    assert refused.json()["outside"] == [outside]


def test_the_node_itself_may_be_named_where_it_is_included(planted: Tree, api: Api) -> None:
    found = answer(api.search(planted["a1"], KEY, include_self=True, ancestor_ids=["a1"]))

    assert {hit["text"] for hit in found["results"]} == says("a1")


def test_another_checkpoint_with_the_same_names_is_another_world(grow: Grow) -> None:
    one, other = grow(), grow()
    one.write("root", KEY)

    assert one.search("a", KEY) == [KEY]
    assert other.search("a", KEY) == []
    assert other.inherited("a") == []


def test_trace_steps_are_not_found_by_a_nodes_search(tree: Tree, api: Api) -> None:
    answer(api.trace_step(tree.checkpoint, KEY, claim=tree["root"]))
    tree.write("root", "something else about doors")

    assert tree.search("a", KEY, limit=100) == ["something else about doors"]


class TestTheClaimBindsReads:
    """A request that carries a claim reads its own node and its lineage only."""

    CALLS = ("get_node", "entries", "inherited", "search", "search_by_get", "working_context")

    @staticmethod
    def read(api: Api, call: str, node: str, claim: str) -> int:
        arguments = [KEY] if call in {"search", "search_by_get", "working_context"} else []
        response = getattr(api, call)(node, *arguments, claim=claim)
        status: int = response.status_code
        return status

    @pytest.mark.parametrize("call", CALLS)
    def test_an_executor_reads_itself_and_its_ancestors(
        self, planted: Tree, api: Api, call: str
    ) -> None:
        for node in ("a1", "a", "root"):
            assert self.read(api, call, planted[node], planted["a1"]) == 200

    @pytest.mark.parametrize("call", CALLS)
    def test_an_executor_reads_no_other_node(self, planted: Tree, api: Api, call: str) -> None:
        for node, claim in (("a2", "a1"), ("b", "a1"), ("a1", "a"), ("a", "root")):
            assert self.read(api, call, planted[node], planted[claim]) == 403

    @pytest.mark.parametrize("call", CALLS)
    def test_a_claim_of_elsewhere_or_of_nobody_reads_nothing(
        self, planted: Tree, grow: Grow, api: Api, call: str
    ) -> None:
        elsewhere = grow()["root"]
        for claim in (elsewhere, f"{planted.checkpoint}.nobody", planted["a1"].upper(), "", "x"):
            assert self.read(api, call, planted["root"], claim) == 403

    @pytest.mark.parametrize("path", ["", "/nodes", "/tree", "/access-log"])
    def test_what_tells_of_every_node_is_for_operators(
        self, planted: Tree, api: Api, path: str
    ) -> None:
        url = f"/checkpoints/{planted.checkpoint}{path}"

        assert api.request("GET", url, claim=planted["a1"]).status_code == 403
        assert api.request("GET", url).status_code == 200

    @pytest.mark.parametrize("path", ["/core-memory", "/core-memory/sections/identity", "/context"])
    def test_core_memory_and_context_are_for_every_node_of_the_checkpoint(
        self, planted: Tree, grow: Grow, api: Api, path: str
    ) -> None:
        url = f"/checkpoints/{planted.checkpoint}{path}"

        assert api.request("GET", url, claim=planted["b"]).status_code == 200
        assert api.request("GET", url, claim=grow()["b"]).status_code == 403

    def test_setting_core_memory_shows_no_other_checkpoints(
        self, planted: Tree, grow: Grow, api: Api
    ) -> None:
        other = grow()
        answer(api.put_core_memory(other.checkpoint, persona="theirs"))
        url = f"/checkpoints/{other.checkpoint}/core-memory"

        refused = api.request("PUT", url, claim=planted["a1"], json={"persona": "mine"})

        assert refused.status_code == 403
        assert answer(api.core_memory(other.checkpoint))["persona"] == "theirs"

    def test_creating_a_node_that_is_there_shows_no_sibling(self, planted: Tree, api: Api) -> None:
        answer(api.patch_node(planted["a2"], eval_summary="a sibling's direction"))
        url = f"/checkpoints/{planted.checkpoint}/nodes"
        sibling, child = {"name": "a2", "parent": "a"}, {"name": "child", "parent": "a1"}

        assert api.request("POST", url, claim=planted["a1"], json=sibling).status_code == 403
        for status in (201, 200):
            made = api.request("POST", url, claim=planted["a1"], json=child)
            assert made.status_code == status
        assert api.request("POST", url, json=sibling).status_code == 200


# What an operator alone does


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", ""),
        ("GET", "/backup"),
        ("POST", "/restore"),
        ("POST", "/resume"),
        ("POST", "/snapshot"),
        ("POST", "/reindex"),
        ("POST", "/reconcile"),
        ("POST", "/heartbeat"),
    ],
)
def test_no_claim_does_anything_to_a_whole_checkpoint(
    planted: Tree, api: Api, method: str, path: str
) -> None:
    url = f"/checkpoints/{planted.checkpoint}{path}"
    headers = {"Content-Type": "application/gzip"} if path in {"/restore", "/resume"} else {}

    refused = api.request(method, url, claim=planted["a1"], headers=headers)

    assert refused.json()["type"] == "/problems/scope-violation"
    assert refused.status_code == 403
    assert set(planted.search("a1", KEY, limit=100)) == says("root", "a")
    last = answer(api.access_log(planted.checkpoint, limit=2))["items"][-1]
    assert (last["reader"], last["refusal"]) == (planted["a1"], "scope-violation")


@pytest.mark.parametrize("other", ["root", "a2", "b"])
def test_a_claim_gets_no_token_of_another_node(planted: Tree, api: Api, other: str) -> None:
    refused = api.request("POST", f"/nodes/{planted[other]}/token", claim=planted["a1"])

    assert refused.json()["type"] == "/problems/cow-violation"
    [last] = answer(api.access_log(planted.checkpoint, limit=1))["items"]
    assert (last["operation"], last["reader"]) == ("token", planted["a1"])
    assert (last["node"], last["refusal"]) == (planted[other], "cow-violation")


def test_a_claim_gets_a_token_of_its_own_node(planted: Tree, api: Api) -> None:
    given = answer(api.request("POST", f"/nodes/{planted['a1']}/token", claim=planted["a1"]))

    assert given["node"] == planted["a1"]
    [last] = answer(api.access_log(planted.checkpoint, limit=1))["items"]
    assert (last["operation"], last["refusal"]) == ("token", None)


def test_a_claim_makes_nodes_in_its_own_checkpoint_alone(
    planted: Tree, grow: Grow, api: Api
) -> None:
    elsewhere = grow().checkpoint
    new = {"name": "new", "parent": "root"}

    refused = api.request("POST", f"/checkpoints/{elsewhere}/nodes", json=new, claim=planted["a1"])

    assert refused.json()["type"] == "/problems/scope-violation"
    assert api.request("GET", f"/nodes/{elsewhere}.new").status_code == 404
    made = f"/checkpoints/{planted.checkpoint}/nodes"
    assert api.request("POST", made, json=new, claim=planted["a1"]).status_code == 201
