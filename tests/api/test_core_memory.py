"""Core memory and context: the same for every node, empty until set."""

import httpx
import pytest

from tests.conftest import Grow, StartService
from tests.support.client import Api, Json, answer
from tests.support.tree import Tree, grow_tree, unique_checkpoint

TEXTS = {"persona": "", "human": "", "active_context": "", "quick_reference": ""}
UNSET = TEXTS | {"context": {}, "words": 0, "max_words": 1000, "over_budget": False}
# Put together here, so that nobody who scans the repository takes it for a real one.
SECRET = "ghp_" + "a1B2" * 9
MARKDOWN = {"Accept": "text/markdown"}


def test_it_is_empty_until_set(tree: Tree, api: Api) -> None:
    assert answer(api.core_memory(tree.checkpoint)) == UNSET
    assert answer(api.context(tree.checkpoint)) == {}


def test_a_block_left_out_stays_and_context_is_replaced_whole(tree: Tree, api: Api) -> None:
    answer(api.put_core_memory(tree.checkpoint, persona="careful", context={"goal": 1, "hw": 2}))
    answer(api.put_core_memory(tree.checkpoint, human="a team", context={"goal": 3}))

    expected = {"persona": "careful", "human": "a team", "context": {"goal": 3}, "words": 3}
    assert answer(api.core_memory(tree.checkpoint)) == UNSET | expected
    assert answer(api.context(tree.checkpoint)) == {"goal": 3}


@pytest.mark.parametrize("block", [*TEXTS, "context"])
def test_null_is_refused_and_changes_nothing(tree: Tree, api: Api, block: str) -> None:
    body: Json = {"persona": "x", "human": "y", "context": {}, block: None}

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


def test_the_four_texts_are_counted_and_the_facts_are_not(start_service: StartService) -> None:
    many = " ".join(["word"] * 44)

    with Api(start_service(core_max_words=50).base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        just_under = answer(
            api.put_core_memory(
                tree.checkpoint,
                persona="one two",
                human="東京",
                active_context="- a\n- b",
                quick_reference=many,
            )
        )
        over = answer(api.put_core_memory(tree.checkpoint, quick_reference=f"{many} more"))
        facts = {"goal": "words that nobody counts"}
        told = answer(api.put_core_memory(tree.checkpoint, context=facts))

        assert told == over | {"context": facts}
        assert told == answer(api.working_context(tree["a"]))["core_memory"]
    budget = "words", "max_words", "over_budget"
    assert [just_under[name] for name in budget] == [50, 50, False]
    assert [over[name] for name in budget] == [51, 50, True]


def test_no_node_sets_core_memory_and_the_log_tells_of_it(tree: Tree, api: Api) -> None:
    refused = api.put_core_memory(tree.checkpoint, persona="for my siblings", claim=tree["a"])

    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/scope-violation")
    assert answer(api.core_memory(tree.checkpoint)) == UNSET
    logged = answer(api.access_log(tree.checkpoint))["items"][0]
    assert (logged["operation"], logged["reader"]) == ("core_write", tree["a"])
    assert logged["refusal"] == "scope-violation"


@pytest.mark.parametrize(
    ("block", "value"),
    [
        ("persona", SECRET),
        ("human", f"Ada\n\n- {SECRET}"),
        ("active_context", f"the token is `{SECRET}`"),
        ("quick_reference", "password: hunter2isnotsafe"),
        ("context", {"nested": [{"api_key": "0a1b2c3d4e5f"}]}),
        ("context", {"notes": ["fine", SECRET]}),
    ],
)
def test_a_likely_credential_is_refused_without_being_repeated(
    tree: Tree, api: Api, block: str, value: object
) -> None:
    path = f"/checkpoints/{tree.checkpoint}/core-memory"

    refused = api.request("PUT", path, json={"persona": "Careful.", block: value})

    assert refused.status_code == 422
    problem = refused.json()
    assert (problem["type"], problem["where"]) == ("/problems/credential-in-core", block)
    assert "`reference`" in problem["detail"]
    assert all(secret not in refused.text for secret in (SECRET, "hunter2", "0a1b2c3d4e5f"))
    assert answer(api.core_memory(tree.checkpoint)) == UNSET


class TestMarkdown:
    def test_is_the_four_sections_as_one_document(self, tree: Tree, api: Api) -> None:
        answer(
            api.put_core_memory(
                tree.checkpoint,
                persona="A careful experimenter.",
                active_context="- sweep runs\n- 東京 is next",
                context={"goal": "low loss"},
            )
        )

        shown = self.get(tree, MARKDOWN)

        assert shown.headers["Content-Type"] == "text/markdown; charset=utf-8"
        assert shown.content.decode() == (
            "# Core Memory\n\n## Identity\n\nA careful experimenter.\n\n## User\n\n"
            "## Active Context\n\n- sweep runs\n- 東京 is next\n\n## Quick Reference\n"
        )

    @pytest.mark.parametrize(
        ("accept", "markdown"),
        [
            ("text/markdown", True),
            ("text/*", True),
            ("TEXT/Markdown; charset=utf-8", True),
            ("text/markdown, */*;q=0.1", True),
            ("text/markdown, */*", True),
            ("application/json;q=0.5, text/markdown;q=0.6", True),
            ("application/json, text/markdown;q=0.9", False),
            ("text/markdown;q=0, */*", False),
            ("text/markdown;q=no", False),
            ("application/json, text/markdown", False),
            ("text/html, application/xhtml+xml, */*;q=0.8", False),
            ("text/plain", False),
            ("*/*", False),
            ("", False),
        ],
    )
    def test_is_for_those_who_ask_for_it_rather_than_for_json(
        self, tree: Tree, accept: str, *, markdown: bool
    ) -> None:
        shown = self.get(tree, {"Accept": accept})

        wanted = "text/markdown" if markdown else "application/json"
        assert shown.headers["Content-Type"].startswith(wanted)
        assert shown.headers["Vary"] == "Accept"

    def test_has_a_tag_of_its_own_that_an_edit_may_name(self, tree: Tree, api: Api) -> None:
        tags = [self.get(tree, headers).headers["ETag"] for headers in ({}, MARKDOWN)]

        assert len(set(tags)) == 2
        first = api.put_core_memory(tree.checkpoint, persona="x", if_match=tags[1])
        second = api.put_core_memory(tree.checkpoint, persona="y", if_match=tags[1])
        assert (first.status_code, second.status_code) == (200, 412)

    def test_is_for_nodes_of_the_checkpoint_alone(self, tree: Tree, grow: Grow, api: Api) -> None:
        url = f"/checkpoints/{tree.checkpoint}/core-memory"

        assert api.request("GET", url, headers=MARKDOWN, claim=tree["b"]).status_code == 200
        assert api.request("GET", url, headers=MARKDOWN, claim=grow()["b"]).status_code == 403

    @staticmethod
    def get(tree: Tree, headers: dict[str, str]) -> httpx.Response:
        url = f"/checkpoints/{tree.checkpoint}/core-memory"
        return tree.api.request("GET", url, headers=headers)


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
