"""Facts move between core memory, the archive and daily notes; none is lost, none is doubled."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.layers.words import count_words
from tests.support.client import Api, Json, answer, walk
from tests.support.tree import Tree, grow_tree, unique_checkpoint

MOVEMENTS = ("demote", "promote", "consolidate", "trim", "heartbeat")
ITEM = "Locatering: the sweep at 3e-4 converges"
MARKER = "zebra-of-one-branch"


@pytest.fixture
def keyed_tree(keyed_api: Api) -> Tree:
    return grow_tree(keyed_api, unique_checkpoint())


def wanted(movement: str) -> Json:
    return {"section": "active-context", "item": ITEM} if movement == "demote" else {}


def notes(api: Api, checkpoint: str) -> list[Json]:
    def page(cursor: str | None) -> Any:
        params = {} if cursor is None else {"cursor": cursor}
        return api.request("GET", f"/checkpoints/{checkpoint}/archival", params=params)

    return list(walk(page))


def everything(api: Api, checkpoint: str) -> Iterator[str]:
    """Return all that every node can see of a checkpoint's layers, as text."""
    yield api.core_memory(checkpoint).text
    yield api.request("GET", f"/checkpoints/{checkpoint}/archival").text
    yield api.request("GET", f"/checkpoints/{checkpoint}/notes").text
    yield api.request("GET", f"/checkpoints/{checkpoint}/session", params={"query": MARKER}).text


def find_often(api: Api, checkpoint: str, query: str) -> None:
    for _ in range(3):
        path = f"/checkpoints/{checkpoint}/archival/search"
        assert answer(api.request("POST", path, json={"query": query, "limit": 1}))["results"]


class TestDemote:
    def test_leaves_a_reference_and_a_note_that_says_what_the_item_said(
        self, api: Api, checkpoint: str
    ) -> None:
        answer(api.put_core_memory(checkpoint, active_context=f"- {ITEM}\n- stays"))

        done = answer(
            api.move(
                checkpoint,
                "demote",
                section="active-context",
                item=ITEM,
                topic="projects",
                title="Locatering",
            )
        )

        text = answer(api.core_section(checkpoint, "active-context"))["text"]
        assert text == "- See archival: projects/locatering\n- stays"
        (note,) = notes(api, checkpoint)
        assert (note["ref"], note["details"]) == ("projects/locatering", f"- {ITEM}")
        assert done["steps"] == [
            {
                "action": "demoted",
                "text": ITEM,
                "section": "active-context",
                "ref": "projects/locatering",
            }
        ]

    def test_refuses_an_item_that_is_not_there_and_changes_nothing(
        self, api: Api, checkpoint: str
    ) -> None:
        refused = api.move(checkpoint, "demote", section="user", item="nothing")

        assert (refused.status_code, refused.json()["type"]) == (404, "/problems/unknown-item")
        assert notes(api, checkpoint) == []

    def test_refuses_a_title_that_is_no_line(self, api: Api, checkpoint: str) -> None:
        answer(api.put_core_memory(checkpoint, human=f"- {ITEM}"))
        refused = api.move(checkpoint, "demote", section="user", item=ITEM, title="two\nlines")

        assert refused.status_code == 422
        assert answer(api.core_section(checkpoint, "user"))["text"] == f"- {ITEM}"


class TestPromote:
    def test_copies_the_summary_and_the_note_stays_with_a_cross_reference(
        self, api: Api, checkpoint: str
    ) -> None:
        written = answer(api.write_note(checkpoint, title="Rate", summary=ITEM, name="rate"))

        answer(api.move(checkpoint, "promote", note=written["id"], section="active-context"))

        core = answer(api.core_memory(checkpoint))
        assert core["active_context"] == f"- {ITEM} (See archival: learnings/rate)"
        (note,) = notes(api, checkpoint)
        assert note["supersedes"] == [written["id"]]
        assert "Promoted to core: Active Context" in note["details"]

    def test_without_a_note_takes_those_that_were_found_three_times(
        self, api: Api, checkpoint: str
    ) -> None:
        answer(api.write_note(checkpoint, title="Rate", summary=ITEM))
        answer(api.write_note(checkpoint, title="Door", summary="The blue door opens"))
        find_often(api, checkpoint, "which sweep converges")

        answer(api.move(checkpoint, "promote"))

        text = answer(api.core_memory(checkpoint))["quick_reference"]
        assert text == f"- {ITEM} (See archival: learnings/rate)"

    def test_refuses_a_summary_with_a_credential_and_names_no_secret(
        self, api: Api, checkpoint: str
    ) -> None:
        secret = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz"
        answer(api.write_note(checkpoint, "reference", title="Key", summary=f"key {secret}"))

        refused = api.move(checkpoint, "promote", note="reference/key")

        assert (refused.status_code, refused.json()["type"]) == (
            422,
            "/problems/credential-in-core",
        )
        assert secret not in refused.text
        assert secret not in api.core_memory(checkpoint).text

    def test_without_a_note_says_which_it_keeps_out_for_a_credential(
        self, api: Api, checkpoint: str
    ) -> None:
        secret = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz"
        answer(api.write_note(checkpoint, "reference", title="Key", summary=f"key {secret}"))
        find_often(api, checkpoint, "key")

        done = answer(api.move(checkpoint, "promote"))

        assert [(step["action"], step["ref"]) for step in done["steps"]] == [
            ("kept", "reference/key")
        ]
        assert not done["changed"]

    def test_takes_the_note_that_counts_in_the_place_of_the_one_named(
        self, api: Api, checkpoint: str
    ) -> None:
        old = answer(api.write_note(checkpoint, title="Rate", summary="Too high"))["id"]
        answer(api.correct_note(checkpoint, old, title="Rate", summary=ITEM, if_match="*"))

        answer(api.move(checkpoint, "promote", note=old))

        text = answer(api.core_memory(checkpoint))["quick_reference"]
        assert text == f"- {ITEM} (See archival: learnings/rate)"

    def test_of_a_note_that_is_not_there_is_refused(self, api: Api, checkpoint: str) -> None:
        assert api.move(checkpoint, "promote", note="projects/nothing").status_code == 404


class TestConsolidate:
    def test_extracts_decisions_and_lessons_by_topic_and_a_second_call_adds_nothing(
        self, api: Api, checkpoint: str
    ) -> None:
        for text in ("Decision: AdamW from now on", "Lesson: warm-up first", "Loss is 0.31 #lr"):
            answer(api.request("POST", f"/checkpoints/{checkpoint}/notes", json={"text": text}))

        answer(api.move(checkpoint, "consolidate"))
        again = answer(api.move(checkpoint, "consolidate"))

        assert sorted((note["topic"], note["details"]) for note in notes(api, checkpoint)) == [
            ("decisions", "- Decision: AdamW from now on"),
            ("learnings", "- Lesson: warm-up first"),
            ("reference", "- Loss is 0.31 #lr"),
        ]
        assert (again["changed"], again["steps"], again["diff"]) == (False, [], "")

    def test_takes_nothing_that_core_memory_says(self, api: Api, checkpoint: str) -> None:
        answer(api.put_core_memory(checkpoint, quick_reference=f"- {ITEM}"))
        answer(api.request("POST", f"/checkpoints/{checkpoint}/notes", json={"text": ITEM}))

        assert not answer(api.move(checkpoint, "consolidate"))["changed"]

    def test_looks_no_further_back_than_asked(self, api: Api, checkpoint: str) -> None:
        old = {"text": "Decision: long ago", "date": "2020-01-01"}
        answer(api.request("POST", f"/checkpoints/{checkpoint}/notes", json=old))

        assert not answer(api.move(checkpoint, "consolidate", days=30))["changed"]


class TestTrim:
    def test_brings_core_memory_within_its_limit_and_says_so(
        self, api: Api, checkpoint: str
    ) -> None:
        items = [f"- fact number {number} of many words" for number in range(40)]
        answer(api.put_core_memory(checkpoint, persona="Mira", active_context="\n".join(items)))

        done = answer(api.move(checkpoint, "trim", max_words=60))

        core = answer(api.core_memory(checkpoint))
        assert (done["words"], done["over_budget"]) == (core["words"], False)
        assert core["words"] <= 60
        (note,) = notes(api, checkpoint)
        kept = set(core["active_context"].split("\n")) | set(note["details"].split("\n"))
        assert set(items) <= kept

    def test_of_a_core_memory_within_its_limit_writes_nothing(
        self, api: Api, checkpoint: str
    ) -> None:
        before = answer(api.put_core_memory(checkpoint, human="- short"))

        assert not answer(api.move(checkpoint, "trim"))["changed"]
        assert answer(api.core_memory(checkpoint)) == before

    def test_says_when_what_may_go_is_not_enough(self, api: Api, checkpoint: str) -> None:
        answer(api.put_core_memory(checkpoint, persona="one two three four five"))

        done = answer(api.move(checkpoint, "trim", max_words=3))

        assert (done["words"], done["over_budget"], done["changed"]) == (5, True, False)
        assert [step["action"] for step in done["steps"]] == ["kept"]


class TestHeartbeat:
    def test_does_all_of_it_with_one_report_and_settles(self, api: Api, checkpoint: str) -> None:
        items = [f"- fact number {number} of many words" for number in range(40)]
        answer(api.put_core_memory(checkpoint, active_context="\n".join(items)))
        answer(api.request("POST", f"/checkpoints/{checkpoint}/notes", json={"text": ITEM}))
        for name in ("one", "two"):
            answer(
                api.write_note(
                    checkpoint, title="Same", summary=f"The {name}", details=f"- {name}", name=name
                )
            )
        find_often(api, checkpoint, "the one")

        done = answer(api.move(checkpoint, "heartbeat", max_words=60))
        settled = list(everything(api, checkpoint))[:3]
        again = answer(api.move(checkpoint, "heartbeat", max_words=60))

        assert {step["action"] for step in done["steps"]} == {
            "extracted",
            "promoted",
            "demoted",
            "merged",
        }
        assert not again["changed"]
        assert list(everything(api, checkpoint))[:3] == settled

    def test_promotes_what_it_merges_away_in_the_same_go(self, api: Api, checkpoint: str) -> None:
        for name, detail in (("one", "- a"), ("two", "- b")):
            answer(
                api.write_note(checkpoint, title="Run", summary="run", details=detail, name=name)
            )
        for _ in range(3):
            path = f"/checkpoints/{checkpoint}/archival/search"
            answer(api.request("POST", path, json={"query": "run b", "limit": 1}))

        done = answer(api.move(checkpoint, "heartbeat"))

        assert {step["action"] for step in done["steps"]} == {"promoted", "merged"}
        (note,) = notes(api, checkpoint)
        text = answer(api.core_memory(checkpoint))["quick_reference"]
        assert text == f"- run (See archival: {note['ref']})"

    def test_counts_words_as_everything_else_does(self, api: Api, checkpoint: str) -> None:
        text = "\u5b66\u7fd2\u7387 is 3e-4\u2014really"
        answer(api.put_core_memory(checkpoint, persona=text))

        assert answer(api.move(checkpoint, "heartbeat"))["words"] == count_words(text) == 6


class TestADryRun:
    @pytest.mark.parametrize("movement", MOVEMENTS)
    def test_tells_exactly_what_would_change_and_changes_nothing(
        self, api: Api, checkpoint: str, movement: str
    ) -> None:
        answer(api.put_core_memory(checkpoint, active_context=f"- {ITEM}\n- other words here"))
        answer(api.write_note(checkpoint, title="Rate", summary="Rates are low"))
        answer(api.request("POST", f"/checkpoints/{checkpoint}/notes", json={"text": "Loss 0.3"}))
        find_often(api, checkpoint, "rates")
        asked = wanted(movement) | ({"max_words": 5} if movement in {"trim", "heartbeat"} else {})
        before = list(everything(api, checkpoint))[:3]

        told = answer(api.move(checkpoint, movement, dry_run=True, **asked))
        unchanged = list(everything(api, checkpoint))[:3]
        done = answer(api.move(checkpoint, movement, **asked))

        assert unchanged == before
        assert told["changed"]
        assert told["diff"].startswith(("--- a/memory/core.md", "--- /dev/null"))
        assert told | {"dry_run": False} == done


class TestWhoMayMove:
    @pytest.mark.parametrize("movement", MOVEMENTS)
    def test_no_node_may_since_its_siblings_would_read_it(self, tree: Tree, movement: str) -> None:
        answer(tree.api.put_core_memory(tree.checkpoint, active_context=f"- {ITEM}"))

        refused = tree.api.move(tree.checkpoint, movement, claim=tree["a1"], **wanted(movement))

        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/scope-violation")
        assert notes(tree.api, tree.checkpoint) == []

    @pytest.mark.parametrize("movement", MOVEMENTS)
    def test_no_node_token_reaches_it(self, keyed_tree: Tree, movement: str) -> None:
        token = answer(keyed_tree.api.token(keyed_tree["root"]))["token"]
        with keyed_tree.api.with_bearer(token) as worker:
            refused = worker.move(keyed_tree.checkpoint, movement, **wanted(movement))

        assert refused.status_code == 403

    @pytest.mark.parametrize("movement", MOVEMENTS)
    def test_an_unknown_checkpoint_is_not_found(self, api: Api, movement: str) -> None:
        assert api.move(unique_checkpoint(), movement, **wanted(movement)).status_code == 404


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_a_movement_takes_no_idempotency_key_since_its_answer_is_not_kept(
    api: Api, checkpoint: str, movement: str
) -> None:
    path = f"/checkpoints/{checkpoint}/{movement}"
    assert api.request("POST", path, key="once", json=wanted(movement)).status_code == 422


class TestBranches:
    def test_what_nodes_and_the_trace_say_is_in_no_layer_before_or_after_any_movement(
        self, tree: Tree
    ) -> None:
        api, checkpoint = tree.api, tree.checkpoint
        answer(api.write(tree["a1"], f"Decision: {MARKER} of a node"))
        answer(api.trace_step(checkpoint, f"Lesson: {MARKER} of the trace"))
        answer(api.put_core_memory(checkpoint, active_context=f"- {ITEM}\n- more"))
        answer(api.request("POST", f"/checkpoints/{checkpoint}/notes", json={"text": "A fact"}))
        hits = answer(api.search(tree["a1"], MARKER, include_self=True))["results"]
        assert any(MARKER in hit["text"] for hit in hits)  # the positive control

        for movement in MOVEMENTS:
            asked = wanted(movement) | ({"max_words": 4} if movement == "heartbeat" else {})
            moved = answer(api.move(checkpoint, movement, **asked))
            seen = "".join(everything(api, checkpoint)) + str(moved)
            # The query of the session call is not in its answer.
            assert MARKER not in seen, movement


def test_movements_at_the_same_time_lose_nothing(api: Api, checkpoint: str) -> None:
    items = [f"- fact number {number} of many words" for number in range(30)]
    answer(api.put_core_memory(checkpoint, active_context="\n".join(items)))
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(
            pool.map(
                lambda item: (
                    api.move(checkpoint, "demote", section="active-context", item=item).status_code
                ),
                items[:12],
            )
        )

    assert outcomes == [200] * 12
    core = answer(api.core_memory(checkpoint))["active_context"].split("\n")
    archived = [note["details"] for note in notes(api, checkpoint)]
    assert sorted(archived) == sorted(items[:12])
    assert [item for item in items if item in core] == items[12:]


def test_a_movement_that_others_overtake_each_time_is_done_while_they_wait(
    api: Api, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(api.put_core_memory(checkpoint, active_context=f"- {ITEM}"))
    # As if core memory or the notes had changed after each look.
    monkeypatch.setattr("app.memory.moving.is_still", lambda *_: False)

    answer(api.move(checkpoint, "demote", section="active-context", item=ITEM, title="Rate"))

    (note,) = notes(api, checkpoint)
    assert (note["details"], note["indexed"]) == (f"- {ITEM}", True)
    text = answer(api.core_section(checkpoint, "active-context"))["text"]
    assert text == f"- See archival: {note['ref']}"
