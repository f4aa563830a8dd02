"""Checkpoints, nodes and trees."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import Grow
from tests.support.client import Api, answer
from tests.support.tree import Tree, unique_checkpoint


def test_racing_identical_creates_make_one_row_and_one_201(api: Api) -> None:
    checkpoint = unique_checkpoint()
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: api.checkpoint(checkpoint, name="x"), range(16)))
        nodes = list(pool.map(lambda _: api.node(checkpoint, "root"), range(16)))

    for answers in (made, nodes):
        assert sorted(response.status_code for response in answers) == [200] * 15 + [201]
        assert len({response.text for response in answers}) == 1


class TestACheckpointsId:
    def test_is_made_from_its_path(self, api: Api) -> None:
        path = f"/mnt/{unique_checkpoint()}"

        made = answer(api.checkpoint(path=f"{path}/"))

        digest = hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()
        assert made["id"] == digest[:12]
        assert made["path"] == path
        assert api.checkpoint(path=path).status_code == 200

    def test_is_random_without_any(self, api: Api) -> None:
        assert answer(api.checkpoint())["id"] != answer(api.checkpoint())["id"]

    def test_with_another_path_is_a_conflict(self, api: Api) -> None:
        checkpoint = unique_checkpoint()
        stored = answer(api.checkpoint(checkpoint, path=f"/a/{checkpoint}"))

        assert api.checkpoint(checkpoint, path=f"/b/{checkpoint}").status_code == 409
        assert api.checkpoint(f"{checkpoint}x", path=f"/a/{checkpoint}").status_code == 409
        assert answer(api.checkpoint(checkpoint, name="other")) == stored
        assert answer(api.checkpoint(path=f"/a/{checkpoint}")) == stored

    @pytest.mark.parametrize("name", ["", "A", "-a", "a.b", "a/b", "ä", "x" * 64, "a b", "a\n"])
    def test_of_another_form_is_refused(self, api: Api, name: str) -> None:
        assert api.request("POST", "/checkpoints", json={"id": name}).status_code == 422

    @pytest.mark.parametrize("path", ["a/b", "", "./x", "C:\\x"])
    def test_needs_an_absolute_path(self, api: Api, path: str) -> None:
        assert api.request("POST", "/checkpoints", json={"path": path}).status_code == 422


class TestAParent:
    def test_is_read_as_an_id_then_as_a_name(self, grow: Grow, api: Api) -> None:
        tree = grow({"root": {}})

        by_id = answer(api.node(tree.checkpoint, "x", tree["root"]))
        by_name = answer(api.node(tree.checkpoint, "y", "root"))

        assert by_id["parent"] == by_name["parent"] == tree["root"]
        assert by_id["lineage"] == [tree["root"]]

    def test_of_another_checkpoint_is_refused(self, grow: Grow, api: Api) -> None:
        tree, other = grow({"root": {}}), grow({"root": {}})

        assert api.node(tree.checkpoint, "x", other["root"]).status_code == 422

    @pytest.mark.parametrize("parent", ["nobody", "exp-nowhere.root", "..", "a b", "{own}.nobody"])
    def test_that_is_not_there_is_404(self, grow: Grow, api: Api, parent: str) -> None:
        tree = grow({"root": {}})

        refused = api.node(tree.checkpoint, "x", parent.format(own=tree.checkpoint))

        assert refused.status_code == 404
        assert refused.json()["type"] == "/problems/unknown-node"

    def test_never_changes(self, tree: Tree, api: Api) -> None:
        assert api.node(tree.checkpoint, "a1", "a").status_code == 200
        for parent in ("b", None):
            refused = api.node(tree.checkpoint, "a1", parent)
            assert refused.status_code == 409
            assert refused.json()["parent"] == tree["a"]


@pytest.mark.parametrize(
    "name", ["", ".a", "-a", "~a", "a b", "a/b", "x" * 201, "ä", "{own}.a", "a\n", "a\u0000"]
)
def test_a_nodes_name_of_another_form_is_refused(tree: Tree, api: Api, name: str) -> None:
    assert api.node(tree.checkpoint, name.format(own=tree.checkpoint)).status_code == 422


@pytest.mark.parametrize("name", ["a.b-c_d~e", "0", "x" * 200, "exp1.a"])
def test_a_nodes_id_is_built_from_checkpoint_and_name(tree: Tree, api: Api, name: str) -> None:
    made = answer(api.node(tree.checkpoint, name))

    assert made["id"] == f"{tree.checkpoint}.{name}"
    assert answer(api.get_node(made["id"])) == made


@pytest.mark.parametrize("path", ["/nodes/x", "/nodes/.x", "/nodes/A.b", "/nodes/a.%00"])
def test_a_malformed_id_in_a_path_is_404(api: Api, path: str) -> None:
    assert api.request("GET", path).status_code == 404
    assert api.request("GET", "/checkpoints/NOT-ONE").status_code == 404


def test_a_patch_sets_what_it_names_and_replaces_metadata_whole(tree: Tree, api: Api) -> None:
    answer(api.patch_node(tree["a"], eval_summary="one", metadata={"x": 1, "y": 2}))
    answer(api.patch_node(tree["a"], metadata={"z": 3}))
    node = answer(api.get_node(tree["a"]))
    assert (node["eval_summary"], node["metadata"]) == ("one", {"z": 3})

    body = {"eval_summary": None}
    cleared = api.request("PATCH", f"/nodes/{tree['a']}", claim=tree["a"], json=body)
    assert answer(cleared)["eval_summary"] is None


@pytest.mark.slow
def test_a_chain_of_1500_nodes_has_its_whole_lineage(grow: Grow, api: Api) -> None:
    tree = grow({"n0": {}})
    for number in range(1, 1500):
        answer(api.node(tree.checkpoint, f"n{number}", f"n{number - 1}"))
    answer(api.write(f"{tree.checkpoint}.n0", "the oldest door"))
    deepest = f"{tree.checkpoint}.n1499"

    assert answer(api.get_node(deepest))["lineage"] == [
        f"{tree.checkpoint}.n{number}" for number in range(1499)
    ]
    assert answer(api.search(deepest, "door"))["results"][0]["text"] == "the oldest door"
    assert len(answer(api.tree(tree.checkpoint))["nodes"]) == 1500
    assert api.purge(tree.checkpoint).status_code == 204


def test_the_tree_lists_parents_before_children_branch_after_branch(tree: Tree, api: Api) -> None:
    tree.write("a", "one", "two")
    answer(api.seal(tree["a"]))

    nodes = answer(api.tree(tree.checkpoint))["nodes"]

    assert [node["name"] for node in nodes] == ["root", "a", "a1", "a2", "b"]
    assert nodes[0]["children"] == [tree["a"], tree["b"]]
    assert (nodes[1]["entry_count"], nodes[1]["sealed"], nodes[1]["depth"]) == (2, True, 1)


def test_a_mermaid_tree_lets_no_text_become_syntax(grow: Grow, api: Api) -> None:
    tree = grow({"root": {"a.b~c": {}}})
    answer(api.patch_node(tree["root"], eval_summary='"] --> evil["<b>x</b>; end\n`tick`'))

    drawn = api.tree(tree.checkpoint, format="mermaid").text

    lines = drawn.splitlines()
    assert lines[0] == "flowchart TD"
    assert len([line for line in lines if "-->" in line]) == 1
    assert drawn.count('["') == drawn.count('"]') == 2
    assert "<b>" not in drawn
    assert "evil" in drawn


def test_a_purged_checkpoint_comes_back_empty_in_every_respect(tree: Tree, api: Api) -> None:
    tree.write("root", "a blue door")
    answer(api.trace_step(tree.checkpoint, "a thought", claim=tree["root"]))
    answer(api.put_core_memory(tree.checkpoint, persona="x", context={"goal": 1}))
    answer(api.seal(tree["root"]))
    assert tree.search("a", "door") == ["a blue door"]

    assert api.purge(tree.checkpoint).status_code == 204
    assert api.get_checkpoint(tree.checkpoint).status_code == 404
    assert api.search(tree["a"], "door").status_code == 404
    assert api.purge(tree.checkpoint).status_code == 404
    answer(api.checkpoint(tree.checkpoint))
    answer(api.node(tree.checkpoint, "root"))
    answer(api.node(tree.checkpoint, "a", "root"))

    assert tree.search("a", "door") == []
    assert tree.own("root") == tree.inherited("a") == []
    assert answer(api.trace(tree.checkpoint))["items"] == []
    assert answer(api.search_trace(tree.checkpoint, "thought"))["results"] == []
    assert answer(api.context(tree.checkpoint)) == {}
    assert answer(api.get_node(tree["root"]))["sealed"] is False
    counts = answer(api.get_checkpoint(tree.checkpoint))
    assert (counts["nodes"], counts["entries"]) == (2, 0)
