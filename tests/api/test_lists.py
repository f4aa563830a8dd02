"""Lists are whole: every page, every entry once, oldest first."""

import base64
from functools import partial

import httpx
import pytest

from app.api import cursors
from tests.conftest import Grow
from tests.support.client import Api, answer, walk
from tests.support.tree import Tree


def test_530_entries_are_530_by_whichever_read(tree: Tree, api: Api) -> None:
    texts = [f"entry {number}" for number in range(530)]
    answer(api.write_batch(tree["root"], texts))

    own = list(walk(lambda cursor: api.entries(tree["root"], cursor=cursor)))
    inherited = list(walk(lambda cursor: api.inherited(tree["a"], cursor=cursor, limit=77)))

    assert [entry["text"] for entry in own] == texts
    assert inherited == own
    assert answer(api.get_checkpoint(tree.checkpoint))["entries"] == 530
    assert answer(api.get_node(tree["root"]))["entry_count"] == 530


def test_an_entry_added_during_a_walk_comes_last_and_disturbs_nothing(tree: Tree, api: Api) -> None:
    texts = [f"entry {number}" for number in range(250)]
    answer(api.write_batch(tree["root"], texts))
    walked = []
    for position, entry in enumerate(
        walk(lambda cursor: api.entries(tree["root"], cursor=cursor, limit=10))
    ):
        walked.append(entry["text"])
        if position == 30:
            tree.write("root", "late")

    assert walked == [*texts, "late"]


def test_inherited_pages_cross_from_ancestor_to_ancestor(tree: Tree, api: Api) -> None:
    tree.write("root", *(f"root {n}" for n in range(5)))
    tree.write("a", *(f"a {n}" for n in range(5)))
    expected = [f"{name} {n}" for name in ("root", "a") for n in range(5)]

    for limit in (1, 3, 5, 10, 11):
        page = partial(_inherited_page, api, tree["a1"], limit)
        assert [entry["text"] for entry in walk(page)] == expected


def _inherited_page(api: Api, node: str, limit: int, cursor: str | None) -> httpx.Response:
    return api.inherited(node, cursor=cursor, limit=limit)


def test_a_filtered_list_pages_through_the_matching_entries_alone(tree: Tree, api: Api) -> None:
    entries = [{"text": f"{n}", "metadata": {"even": n % 2 == 0}} for n in range(40)]
    answer(api.write_batch(tree["root"], entries))
    even = {"even": "true"}

    items = walk(lambda cursor: api.inherited(tree["a"], metadata=even, cursor=cursor, limit=7))

    assert [entry["text"] for entry in items] == [f"{n}" for n in range(0, 40, 2)]


def test_checkpoints_and_nodes_page_too(grow: Grow, api: Api) -> None:
    made = [grow({}).checkpoint for _ in range(5)]
    listed = [item["id"] for item in walk(lambda cursor: api.checkpoints(cursor=cursor, limit=2))]
    assert [checkpoint for checkpoint in listed if checkpoint in made] == made

    tree = grow({"n0": {"n1": {"n2": {"n3": {}}}}})
    pages = walk(lambda cursor: api.nodes(tree.checkpoint, cursor=cursor, limit=3))
    assert [node["name"] for node in pages] == ["n0", "n1", "n2", "n3"]


def test_a_cursor_is_good_for_its_own_list_only(tree: Tree, api: Api) -> None:
    tree.write("root", "one", "two")
    tree.write("a", "one", "two")
    cursor = answer(api.entries(tree["root"], limit=1))["next_cursor"]
    assert cursor

    for refused in (
        api.entries(tree["a"], cursor=cursor),
        api.inherited(tree["a"], cursor=cursor),
        api.trace(tree.checkpoint, cursor=cursor),
        api.nodes(tree.checkpoint, cursor=cursor),
        api.checkpoints(cursor=cursor),
        api.access_log(tree.checkpoint, cursor=cursor),
    ):
        assert refused.status_code == 422
        assert refused.json()["type"] == "/problems/invalid-cursor"


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "made-up", "é", "=" * 8, "A" * 5_000, base64.b64encode(b"[0,0]").decode()],
)
def test_a_made_up_cursor_is_refused_and_is_not_page_one(tree: Tree, api: Api, cursor: str) -> None:
    refused = api.entries(tree["root"], cursor=cursor)

    assert refused.status_code == 422
    assert refused.json()["type"] == "/problems/invalid-cursor"


@pytest.mark.parametrize("position", [0, [0], [0, "x"], [2**70, 0], [-1, 0], [[], {}], None, {}])
def test_a_forged_position_of_another_shape_is_refused(
    tree: Tree, api: Api, position: object
) -> None:
    forged = cursors.encode([position], listing=f"memory {tree['root']}")
    bare = cursors.encode(position, listing=f"memory {tree['root']}")

    for cursor in filter(None, (forged, bare)):
        assert api.entries(tree["root"], cursor=cursor).status_code == 422


@pytest.mark.parametrize("limit", [0, 1001, -1])
def test_a_page_has_1_to_1000_items(tree: Tree, api: Api, limit: int) -> None:
    assert api.entries(tree["root"], limit=limit).status_code == 422
