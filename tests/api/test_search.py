"""A search returns the best of the scope, exactly, whatever else the checkpoint holds."""

import random

import pytest

from tests.archive.brute_force import by_brute_force
from tests.conftest import Grow
from tests.support.client import Api, Json, answer
from tests.support.tree import Tree

WORDS = [
    *("loss", "rate", "batch", "door", "learning", "blue", "validation", "gradient", "warm"),
    *("node", "dropout", "seed", "layer", "noise", "metric", "fox", "epoch", "schedule"),
    *("weight", "decay", "accuracy", "plateau", "diverge", "学習率", "損失"),
]


def sentences(count: int, *, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 30))) for _ in range(count)]


def ids(found: Json) -> list[str]:
    return [hit["entry_id"] for hit in found["results"]]


async def test_the_order_equals_a_brute_force_ranking_with_ties_oldest_first(
    tree: Tree, api: Api
) -> None:
    texts = sentences(60, seed=1)
    entries = []
    for position, text in enumerate(texts + texts[:20]):
        entries += tree.write(("root", "a")[position % 2], text)

    for query in ("learning rate schedule", "blue door", "損失", texts[0]):
        expected = await by_brute_force(query, entries)
        assert ids(answer(api.search(tree["a1"], query, limit=100))) == expected[:100]


def test_each_shorter_answer_is_a_prefix_of_each_longer_one_and_repeats_alike(
    tree: Tree, api: Api
) -> None:
    for position, text in enumerate(sentences(50, seed=2) + ["same text"] * 10):
        tree.write(("root", "a")[position % 2], text)

    longest = ids(answer(api.search(tree["a1"], "learning rate", limit=100)))

    assert len(longest) == 60
    for limit in (1, 2, 5, 20, 100):
        for _ in range(2):
            found = answer(api.search(tree["a1"], "learning rate", limit=limit))
            assert ids(found) == longest[:limit]
            assert [hit["rank"] for hit in found["results"]] == list(range(1, len(ids(found)) + 1))


def test_entries_of_a_sibling_that_fit_better_do_not_crowd_the_scope(tree: Tree, api: Api) -> None:
    query = "which learning rate makes the validation loss plateau"
    answer(api.write_batch(tree["b"], [f"{query} {number}" for number in range(300)]))
    tree.write("root", "a remark about rates")

    found = answer(api.search(tree["a"], query, limit=5))

    assert [hit["text"] for hit in found["results"]] == ["a remark about rates"]


def test_a_filter_applies_before_the_ranking(tree: Tree, api: Api) -> None:
    query = "learning rate"
    logs = [{"text": f"learning rate {n}", "metadata": {"type": "log"}} for n in range(200)]
    decisions = [{"text": f"fox {n}", "metadata": {"type": "decision"}} for n in range(3)]
    answer(api.write_batch(tree["root"], logs + decisions))

    found = answer(api.search(tree["a"], query, limit=3, metadata={"type": "decision"}))
    by_url = answer(api.search_by_get(tree["a"], query, limit=3, metadata={"type": "decision"}))

    assert {hit["text"] for hit in found["results"]} == {"fox 0", "fox 1", "fox 2"}
    assert by_url == found


@pytest.mark.parametrize(
    ("wanted", "matching"),
    [
        ({"v": 1}, {"int", "float"}),
        ({"v": 1.0}, {"int", "float"}),
        ({"v": True}, {"true"}),
        ({"v": "1"}, {"string"}),
        ({"v": None}, {"null"}),
        ({"v": 1, "w": 2}, set()),
        ({"w": None}, set()),
    ],
)
def test_a_filter_compares_as_json_does(tree: Tree, wanted: Json, matching: set[str]) -> None:
    values = {"int": 1, "float": 1.0, "true": True, "string": "1", "null": None, "list": [1]}
    for name, value in values.items():
        tree.write("root", name, metadata={"v": value})

    assert set(tree.search("a", "anything", limit=100, metadata=wanted)) == matching


@pytest.mark.parametrize(
    ("text", "matching"),
    [("1", {"int", "string"}), ("1.0", {"float"}), ("true", {"true"}), ("null", {"null"})],
)
def test_a_filter_in_a_url_matches_the_string_or_the_scalar_written_so(
    tree: Tree, api: Api, text: str, matching: set[str]
) -> None:
    values = {"int": 1, "float": 1.0, "true": True, "string": "1", "null": None, "list": [1]}
    for name, value in values.items():
        tree.write("root", name, metadata={"v.w": value})

    found = answer(api.search_by_get(tree["a"], "any", limit=100, metadata={"v.w": text}))
    listed = answer(api.inherited(tree["a"], metadata={"v.w": text}))

    assert {hit["text"] for hit in found["results"]} == matching
    assert {entry["text"] for entry in listed["items"]} == matching


def test_without_a_query_the_nodes_direction_is_searched(tree: Tree, api: Api) -> None:
    tree.write("root", "the fox sleeps", "a learning rate of 0.1 diverges")
    answer(api.patch_node(tree["a"], eval_summary="smaller learning rates"))

    found = answer(api.search(tree["a"], limit=1))

    assert found["results"][0]["text"] == "a learning rate of 0.1 diverges"
    refused = api.search(tree["b"])
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"] == ["body", "query"]


@pytest.mark.parametrize("query", ["???", "\U0001f98a", "learning rate", "\u200b"])
def test_odd_entries_take_nothing_from_the_normal_ones(grow: Grow, api: Api, query: str) -> None:
    with_odd, without = grow(), grow()
    normal = sentences(10, seed=3)
    odd = ["!!! ??? ...", "\U0001f98a", "a" * 30_000, "\u200b"]
    with_odd.write("root", *odd[:2], *normal, *odd[2:])
    without.write("root", *normal)

    found = answer(api.search(with_odd["a"], query, limit=100))

    assert len(found["results"]) == 14
    assert all(hit["score"] is None or 0 <= hit["score"] <= 1 for hit in found["results"])
    texts = [hit["text"] for hit in found["results"] if hit["text"] in normal]
    assert texts == without.search("a", query, limit=100)


@pytest.mark.parametrize("limit", [0, 101, -1])
def test_a_limit_outside_of_1_to_100_is_refused(tree: Tree, api: Api, limit: int) -> None:
    assert api.search(tree["a"], "x", limit=limit).status_code == 422
    assert api.search_by_get(tree["a"], "x", limit=limit).status_code == 422


def test_special_characters_of_a_url_reach_the_search_as_part_of_the_query(
    tree: Tree, api: Api
) -> None:
    tree.write("root", "loss &tags=x#% rises", "nothing of the kind")

    by_get = answer(api.search_by_get(tree["a"], "loss &tags=x#% rises"))

    assert by_get == answer(api.search(tree["a"], "loss &tags=x#% rises"))
    assert by_get["results"][0]["score"] == pytest.approx(1)


def test_long_queries_are_answered_up_to_the_limit_and_refused_beyond(tree: Tree, api: Api) -> None:
    tree.write("root", "a blue door")
    assert api.search(tree["a"], "x" * 8_000).status_code == 200
    assert api.search_by_get(tree["a"], "x" * 8_000).status_code == 200
    for refused in (api.search(tree["a"], "損" * 20_000), api.search(tree["a"], "x" * 16_385)):
        assert refused.status_code == 413
        assert refused.json()["limit"] == 16_384
