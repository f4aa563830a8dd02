"""What happened, found as one list: the trace that a reader may see, and the daily notes."""

import pytest

from tests.support.client import Api, Json, answer
from tests.support.tree import Tree, unique_checkpoint


def texts(body: Json) -> list[str]:
    return [item["text"] for item in body["results"]]


@pytest.fixture
def happened(tree: Tree) -> Tree:
    for name in (None, *tree.names):
        claim = None if name is None else tree[name]
        answer(tree.api.trace_step(tree.checkpoint, f"a door, thought {name}", claim=claim))
    answer(tree.api.daily_note(tree.checkpoint, "the door of the day"))
    return tree


def test_it_is_found_in_both_and_each_hit_says_where(tree: Tree, api: Api) -> None:
    answer(api.trace_step(tree.checkpoint, "opened the blue door", claim=tree["a"]))
    answer(api.daily_note(tree.checkpoint, "the blue door is open", date="2026-06-08"))
    answer(api.trace_step(tree.checkpoint, "learning rates"))

    found = answer(api.search_recall(tree.checkpoint, "the blue door is open"))

    hits = found["results"]
    assert [(hit["collection"], hit["node"], hit["rank"]) for hit in hits] == [
        ("daily_note", None, 1),
        ("react_step", tree["a"], 2),
        ("react_step", None, 3),
    ]
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert hits[0]["metadata"]["date"] == "2026-06-08"
    assert (found["scope"], found["pending"]) == ([], 0)


def test_the_limit_is_of_both_together(happened: Tree, api: Api) -> None:
    everything = answer(api.search_recall(happened.checkpoint, "door", limit=100))["results"]
    few = answer(api.search_recall(happened.checkpoint, "door", limit=3))["results"]

    assert len(everything) == 7
    assert few == everything[:3]


@pytest.mark.parametrize(
    ("reader", "seen"), [("root", ["root"]), ("a1", ["root", "a", "a1"]), ("b", ["root", "b"])]
)
def test_a_claim_narrows_the_trace_and_not_the_days(
    happened: Tree, api: Api, reader: str, seen: list[str]
) -> None:
    claim = happened[reader]

    found = answer(api.search_recall(happened.checkpoint, "door", limit=100, claim=claim))

    expected = [f"a door, thought {name}" for name in (None, *seen)] + ["the door of the day"]
    assert sorted(texts(found)) == sorted(expected)
    assert found["scope"] == [happened[name] for name in seen]


def test_no_entry_of_a_node_and_no_note_is_in_it(tree: Tree, api: Api) -> None:
    tree.write("root", "a blue door of a node")
    answer(api.write_note(tree.checkpoint, title="Door", summary="A blue door of a note."))
    answer(api.daily_note(tree.checkpoint, "a blue door of a day"))

    found = answer(api.search_recall(tree.checkpoint, "a blue door", limit=100))

    assert texts(found) == ["a blue door of a day"]


def test_a_claim_of_elsewhere_reads_nothing(happened: Tree, api: Api) -> None:
    for claim in ("exp-elsewhere.root", f"{happened.checkpoint}.nobody", "x"):
        refused = api.search_recall(happened.checkpoint, "door", claim=claim)
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/scope-violation")


def test_bad_searches_are_refused(tree: Tree, api: Api) -> None:
    assert api.search_recall(tree.checkpoint, " ").status_code == 422
    assert api.search_recall(tree.checkpoint, "x", limit=0).status_code == 422
    assert api.search_recall(tree.checkpoint, "x", limit=101).status_code == 422
    assert api.search_recall(tree.checkpoint, "x" * 16_385).status_code == 413
    assert api.search_recall(unique_checkpoint(), "x").status_code == 404


def test_a_search_is_in_the_access_log_with_what_it_found(happened: Tree, api: Api) -> None:
    found = answer(api.search_recall(happened.checkpoint, "door", limit=2, claim=happened["b"]))

    record = answer(api.access_log(happened.checkpoint))["items"][0]

    assert (record["operation"], record["reader"], record["query"]) == (
        "recall_search",
        happened["b"],
        "door",
    )
    assert [(each["id"], each["node"]) for each in record["entries"]] == [
        (hit["entry_id"], hit["node"]) for hit in found["results"]
    ]
