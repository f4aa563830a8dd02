"""What a session loads at its start: the same for the operator and for every node."""

import pytest

from tests.conftest import API_KEY
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint

MARKER = "quokka-4417"


def test_it_is_core_memory_todays_notes_and_what_helps_of_the_archive(tree: Tree, api: Api) -> None:
    answer(api.put_core_memory(tree.checkpoint, persona="Careful.", context={"goal": "low loss"}))
    note = answer(api.write_note(tree.checkpoint, title="Door", summary="The blue door opens."))
    answer(api.write_note(tree.checkpoint, title="Rates", summary="Learning rates."))
    today = answer(api.daily_note(tree.checkpoint, "went through the door"))
    answer(api.daily_note(tree.checkpoint, "long ago", date="2020-01-01"))

    session = answer(api.session(tree.checkpoint, "which door opens", limit=1))

    assert session["core_memory"] == answer(api.core_memory(tree.checkpoint))
    assert session["context"] == {"goal": "low loss"}
    assert (session["date"], session["notes"]) == (today["date"], [today])
    (hit,) = session["archival"]["results"]
    assert {key: hit[key] for key in note} == note
    assert (hit["rank"], session["archival"]["pending"]) == (1, 0)


def test_without_a_query_the_archive_is_not_searched(tree: Tree, api: Api) -> None:
    answer(api.write_note(tree.checkpoint, title="Door", summary="The blue door opens."))

    session = answer(api.session(tree.checkpoint))

    assert (session["archival"], session["notes"]) == (None, [])


def test_every_node_loads_the_same(tree: Tree, api: Api) -> None:
    answer(api.write_note(tree.checkpoint, title="Door", summary="The blue door opens."))
    answer(api.daily_note(tree.checkpoint, "went through the door"))
    expected = answer(api.session(tree.checkpoint, "door"))

    for name in tree.names:
        assert answer(api.session(tree.checkpoint, "door", claim=tree[name])) == expected


def test_nothing_of_a_node_and_nothing_of_the_trace_is_in_it(tree: Tree, api: Api) -> None:
    for name in tree.names:
        tree.write(name, f"{MARKER} of a node", metadata={"type": "result_summary"})
        answer(api.trace_step(tree.checkpoint, f"{MARKER} of a step", claim=tree[name]))
    answer(api.trace_step(tree.checkpoint, f"{MARKER} of a step of no node"))
    answer(api.write_note(tree.checkpoint, title="Door", summary="The blue door opens."))

    for claim in (None, *(tree[name] for name in tree.names)):
        loaded = api.session(tree.checkpoint, "door", limit=100, claim=claim)
        assert [hit["name"] for hit in answer(loaded)["archival"]["results"]] == ["door"]
        assert MARKER not in loaded.text
    assert MARKER not in api.notes(tree.checkpoint).text
    assert MARKER not in api.search_notes(tree.checkpoint, "a node", limit=100).text
    # The search for the marker works where it may be found.
    assert MARKER in api.search_recall(tree.checkpoint, "a step").text


def test_bad_sessions_are_refused(tree: Tree, api: Api) -> None:
    assert api.session(tree.checkpoint, " ").status_code == 422
    assert api.session(tree.checkpoint, "x", limit=0).status_code == 422
    assert api.session(tree.checkpoint, "x", limit=101).status_code == 422
    assert api.session(tree.checkpoint, "x" * 16_385).status_code == 413
    assert api.session(unique_checkpoint()).status_code == 404
    for claim in ("exp-elsewhere.root", f"{tree.checkpoint}.nobody", "x"):
        assert api.session(tree.checkpoint, claim=claim).status_code == 403


def test_what_it_showed_is_one_record_of_the_access_log(tree: Tree, api: Api) -> None:
    note = answer(api.write_note(tree.checkpoint, title="Door", summary="The blue door opens."))
    day = answer(api.daily_note(tree.checkpoint, "went through the door"))
    answer(api.session(tree.checkpoint, "door", claim=tree["a"]))

    record, *_ = records = answer(api.access_log(tree.checkpoint))["items"]

    assert [each["operation"] for each in records].count("session") == 1
    assert (record["operation"], record["reader"], record["query"]) == (
        "session",
        tree["a"],
        "door",
    )
    assert [each["id"] for each in record["entries"]] == [note["id"], day["id"]]


def test_only_the_best_of_what_it_and_searches_found_counts_as_found_often(
    tree: Tree, api: Api
) -> None:
    answer(api.write_note(tree.checkpoint, title="Rates", summary="Learning rates."))
    answer(api.write_note(tree.checkpoint, title="Door", summary="The blue door opens."))
    answer(api.daily_note(tree.checkpoint, "went through the door"))
    for _ in range(2):
        assert len(answer(api.session(tree.checkpoint, "blue door"))["archival"]["results"]) == 2
    assert len(answer(api.search_notes(tree.checkpoint, "blue door"))["results"]) == 2

    answer(api.move(tree.checkpoint, "promote"))

    core = answer(api.core_memory(tree.checkpoint))
    assert core["quick_reference"] == "- The blue door opens. (See archival: learnings/door)"


def test_one_that_found_nothing_of_the_archive_counts_for_nothing(tree: Tree, api: Api) -> None:
    answer(api.daily_note(tree.checkpoint, "went through the door"))
    for _ in range(3):
        assert answer(api.session(tree.checkpoint, "door"))["archival"]["results"] == []
    answer(api.write_note(tree.checkpoint, title="Door", summary="The blue door opens."))
    for _ in range(3):
        answer(api.session(tree.checkpoint))

    assert not answer(api.move(tree.checkpoint, "promote"))["changed"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_node_token_loads_it_and_searches_what_happened(
    keyed_service: InProcessService, keyed_api: Api
) -> None:
    tree = grow_tree(keyed_api, unique_checkpoint())
    answer(keyed_api.trace_step(tree.checkpoint, "a door", claim=tree["b"]))
    answer(keyed_api.daily_note(tree.checkpoint, "a door of the day"))
    token = answer(keyed_api.token(tree["a"]))["token"]
    assert token != API_KEY

    with Api(keyed_service.base_url, bearer=token) as worker:
        assert answer(worker.session(tree.checkpoint)) == answer(keyed_api.session(tree.checkpoint))
        recalled = answer(worker.search_recall(tree.checkpoint, "door"))["results"]
        assert [hit["text"] for hit in recalled] == ["a door of the day"]
        answer(keyed_api.token(tree["a"]))
        assert worker.session(tree.checkpoint).json()["type"] == "/problems/stale-token"
