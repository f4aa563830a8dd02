"""Core memory and context: the same for every node, empty until set."""

import pytest

from tests.support.client import Api, answer
from tests.support.tree import Tree

UNSET = {"persona": "", "human": "", "context": {}}


def test_it_is_empty_until_set(tree: Tree, api: Api) -> None:
    assert answer(api.core_memory(tree.checkpoint)) == UNSET
    assert answer(api.context(tree.checkpoint)) == {}


def test_a_block_left_out_stays_and_context_is_replaced_whole(tree: Tree, api: Api) -> None:
    answer(api.put_core_memory(tree.checkpoint, persona="careful", context={"goal": 1, "hw": 2}))
    answer(api.put_core_memory(tree.checkpoint, human="a team", context={"goal": 3}))

    expected = {"persona": "careful", "human": "a team", "context": {"goal": 3}}
    assert answer(api.core_memory(tree.checkpoint)) == expected
    assert answer(api.context(tree.checkpoint)) == {"goal": 3}


@pytest.mark.parametrize("block", ["persona", "human", "context"])
def test_null_is_refused_and_changes_nothing(tree: Tree, api: Api, block: str) -> None:
    body = {"persona": "x", "human": "y", "context": {}} | {block: None}

    refused = api.request("PUT", f"/checkpoints/{tree.checkpoint}/core-memory", json=body)

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"] == ["body", block]
    assert answer(api.core_memory(tree.checkpoint)) == UNSET


def test_of_two_editors_with_one_etag_the_second_is_told(tree: Tree, api: Api) -> None:
    etag = api.core_memory(tree.checkpoint).headers["ETag"]

    first = api.put_core_memory(tree.checkpoint, persona="first", if_match=etag)
    second = api.put_core_memory(tree.checkpoint, persona="second", if_match=etag)

    assert (first.status_code, second.status_code) == (200, 412)
    assert second.json()["type"] == "/problems/version-mismatch"
    assert second.headers["ETag"] == first.headers["ETag"] != etag
    assert answer(api.core_memory(tree.checkpoint))["persona"] == "first"
    assert api.put_core_memory(tree.checkpoint, persona="x", if_match="*").status_code == 200


def test_a_block_over_the_limit_is_refused_before_anything_changes(tree: Tree, api: Api) -> None:
    refused = api.put_core_memory(tree.checkpoint, persona="x" * 32_769, human="y")

    assert (refused.status_code, refused.json()["limit"]) == (413, 32_768)
    assert answer(api.core_memory(tree.checkpoint)) == UNSET


def test_the_working_context_is_context_core_conclusions_and_hits_in_one_call(
    tree: Tree, api: Api
) -> None:
    answer(api.put_core_memory(tree.checkpoint, persona="careful", context={"goal": "low loss"}))
    tree.write("root", "loss 0.5", metadata={"type": "result_summary"})
    tree.write("root", "a plan", metadata={"type": "plan"})
    tree.write("a", "loss 0.4", metadata={"type": "result_summary"})
    tree.write("b", "loss 0.1", metadata={"type": "result_summary"})

    loaded = answer(api.working_context(tree["a1"], "loss", limit=1, claim=tree["a1"]))

    assert loaded["context"] == {"goal": "low loss"}
    assert loaded["core_memory"]["persona"] == "careful"
    assert [entry["text"] for entry in loaded["inherited"]] == ["loss 0.5", "loss 0.4"]
    assert len(loaded["search"]["results"]) == 1
    assert loaded["search"]["scope"] == [tree["root"], tree["a"]]


def test_a_working_context_without_query_or_direction_has_no_hits(tree: Tree, api: Api) -> None:
    assert answer(api.working_context(tree["a"]))["search"] is None

    answer(api.patch_node(tree["a"], eval_summary="doors"))
    tree.write("root", "a blue door")
    assert answer(api.working_context(tree["a"]))["search"]["results"]
