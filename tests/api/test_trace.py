"""The trace is flat: an operator sees all of it, a node that of its lineage and of no node."""

import pytest

from tests.support.client import Api, Json, answer, walk
from tests.support.tree import Tree


def texts(body: Json) -> list[str]:
    return [item["text"] for item in body["items" if "items" in body else "results"]]


@pytest.fixture
def traced(tree: Tree) -> Tree:
    for name in (None, *tree.names):
        claim = None if name is None else tree[name]
        answer(tree.api.trace_step(tree.checkpoint, f"thought of {name}", claim=claim))
    return tree


def test_without_a_claim_the_whole_trace_is_listed_and_searched(traced: Tree, api: Api) -> None:
    everything = [f"thought of {name}" for name in (None, *traced.names)]

    assert texts(answer(api.trace(traced.checkpoint))) == everything
    found = answer(api.search_trace(traced.checkpoint, "thought", limit=100))
    assert sorted(texts(found)) == sorted(everything)


@pytest.mark.parametrize(
    ("reader", "seen"),
    [("root", ["root"]), ("a1", ["root", "a", "a1"]), ("b", ["root", "b"])],
)
def test_with_a_claim_it_is_that_of_the_lineage_and_of_no_node(
    traced: Tree, api: Api, reader: str, seen: list[str]
) -> None:
    expected = [f"thought of {name}" for name in (None, *seen)]
    claim = traced[reader]

    assert texts(answer(api.trace(traced.checkpoint, claim=claim))) == expected
    found = answer(api.search_trace(traced.checkpoint, "thought", limit=100, claim=claim))
    assert sorted(texts(found)) == sorted(expected)


def test_a_step_has_its_claims_node_or_none(tree: Tree, api: Api) -> None:
    with_claim = answer(api.trace_step(tree.checkpoint, "one", claim=tree["a"]))
    without = answer(api.trace_step(tree.checkpoint, "two", metadata={"tool": "bash"}))

    assert (with_claim["node"], without["node"]) == (tree["a"], None)
    assert without["metadata"] == {"tool": "bash"}
    assert answer(api.trace(tree.checkpoint))["items"] == [with_claim, without]


def test_the_trace_pages(tree: Tree, api: Api) -> None:
    expected = [f"step {number}" for number in range(12)]
    for text in expected:
        answer(api.trace_step(tree.checkpoint, text))

    items = walk(lambda cursor: api.trace(tree.checkpoint, cursor=cursor, limit=5))

    assert [item["text"] for item in items] == expected


def test_a_search_of_the_trace_takes_a_filter(tree: Tree, api: Api) -> None:
    answer(api.trace_step(tree.checkpoint, "ran it", metadata={"tool": "bash"}))
    answer(api.trace_step(tree.checkpoint, "read it", metadata={"tool": "cat"}))

    found = answer(api.search_trace(tree.checkpoint, "it", metadata={"tool": "cat"}))

    assert texts(found) == ["read it"]


def test_a_claim_of_elsewhere_neither_writes_nor_reads_it(tree: Tree, api: Api) -> None:
    for claim in ("exp-elsewhere.root", f"{tree.checkpoint}.nobody", "x"):
        assert api.trace_step(tree.checkpoint, "x", claim=claim).status_code == 403
        assert api.trace(tree.checkpoint, claim=claim).status_code == 403
        assert api.search_trace(tree.checkpoint, "x", claim=claim).status_code == 403
    assert texts(answer(api.trace(tree.checkpoint))) == []


def test_trace_steps_are_no_node_entries(traced: Tree, api: Api) -> None:
    assert traced.own("a") == []
    assert traced.inherited("a1") == []
    assert answer(api.get_node(traced["a"]))["entry_count"] == 0
