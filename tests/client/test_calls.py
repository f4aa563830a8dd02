"""Each call of a worker does over HTTP what it says, whether it blocks or awaits."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from app.client import CowViolation, LineageMemory, NodeConflict, ScopeViolation, UnknownNode, calls
from tests.client.conftest import NewWorker
from tests.support.client import answer
from tests.support.service import InProcessService
from tests.support.tree import Tree


@pytest.fixture
def on(new_worker: NewWorker, service: InProcessService, tree: Tree) -> "On":
    """Make workers that execute nodes of the tree."""
    return On(new_worker, service, tree)


class On:
    def __init__(self, new_worker: NewWorker, service: InProcessService, tree: Tree) -> None:
        self._new, self._service, self._tree = new_worker, service, tree

    def __call__(self, name: str) -> LineageMemory:
        return self._new(
            self._service.base_url, checkpoint=self._tree.checkpoint, current_node=name
        )


def texts(found: object) -> list[str]:
    return [item.text for item in found]  # type: ignore[attr-defined]


def test_a_memory_is_stored_on_the_current_node(on: On, tree: Tree) -> None:
    stored = on("a").add_memory("Rate 0.1 diverges.", {"type": "log", "step": 3})

    assert (stored.node, stored.text) == (tree["a"], "Rate 0.1 diverges.")
    assert stored.metadata == {"type": "log", "step": 3}
    assert stored.sha256 == hashlib.sha256(b"Rate 0.1 diverges.").hexdigest()
    assert abs(stored.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert tree.own("a") == ["Rate 0.1 diverges."]


def test_a_node_may_be_named_or_given_by_its_id(on: On, tree: Tree) -> None:
    on("a").add_memory("by name", node_id="a")
    on(tree["a"]).add_memory("by id", node_id=tree["a"])

    assert tree.own("a") == ["by name", "by id"]
    assert texts(on("a1").get_node_memory("a")) == texts(on("a1").get_node_memory(tree["a"]))


def test_a_write_to_another_node_is_refused(on: On, tree: Tree) -> None:
    with pytest.raises(CowViolation) as refused:
        on("a1").add_memory("mine", node_id="a")
    with pytest.raises(CowViolation):
        on("a1").clear_node_memory("a")

    assert refused.value.extra == {"node": tree["a"], "current_node": tree["a1"]}
    assert tree.own("a") == []


def test_a_search_finds_what_ancestors_wrote_and_no_one_else(on: On, tree: Tree) -> None:
    tree.write("root", "a blue door", metadata={"seen": True})
    tree.write("a", "a red door", metadata={"seen": False})
    tree.write("a1", "my own door")
    tree.write("a2", "a sibling's door")
    worker = on("a1")

    found = worker.search_memory("door")

    assert sorted(texts(found.results)) == ["a blue door", "a red door"]
    assert [hit.rank for hit in found.results] == [1, 2]
    assert all(hit.score is not None for hit in found.results)
    assert (list(found.scope), found.pending) == ([tree["root"], tree["a"]], 0)
    assert len(worker.search_memory("door", limit=1).results) == 1
    assert texts(worker.search_memory("door", metadata={"seen": True}).results) == ["a blue door"]
    assert len(worker.search_memory("door", include_self=True).results) == 3


def test_ancestors_that_are_given_narrow_a_search_and_never_widen_it(on: On, tree: Tree) -> None:
    tree.write("root", "a blue door")
    tree.write("a1", "my own door")
    worker = on("a1")

    assert texts(worker.search_memory("door", ["root"]).results) == ["a blue door"]
    assert worker.search_memory("door", [tree["a"]]).results == ()
    assert worker.search_memory("door", []).results == ()
    assert len(worker.search_memory("door", ["root", "a1"]).results) == 2
    with pytest.raises(ScopeViolation) as refused:
        worker.search_memory("door", ["root", "a2"])
    assert "a2" in str(refused.value.extra["outside"])


def test_a_read_of_a_sibling_is_refused_since_reads_carry_the_claim(on: On, tree: Tree) -> None:
    tree.write("a", "above")
    tree.write("a2", "beside")
    worker = on("a1")

    assert texts(worker.get_node_memory("a")) == ["above"]
    for read in (
        lambda: list(worker.get_node_memory("a2")),
        lambda: list(worker.get_inherited_memory("a2")),
        lambda: worker.search_memory("beside", node_id="a2"),
        lambda: worker.get_working_context("beside", node_id="a2"),
    ):
        with pytest.raises(ScopeViolation) as refused:
            read()
        assert refused.value.extra["outside"] == [tree["a2"]]


def test_lists_are_walked_through_all_their_pages(
    on: On, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PAGE", 2)
    written = [f"entry {number}" for number in range(5)]
    tree.write("a", *written)
    worker = on("a")
    for text in written:
        worker.add_trace_step(text)

    assert texts(worker.get_node_memory()) == written
    assert texts(on("a1").get_inherited_memory()) == written
    assert texts(worker.get_trace()) == written


def test_inherited_memory_is_filtered_by_the_values_of_its_metadata(on: On, tree: Tree) -> None:
    tree.write("root", "yes", metadata={"ok": True, "a key": "ü&="})
    tree.write("a", "no", metadata={"ok": False})

    assert texts(on("a1").get_inherited_memory(metadata={"ok": True})) == ["yes"]
    assert texts(on("a1").get_inherited_memory(metadata={"a key": "ü&="})) == ["yes"]
    assert texts(on("a1").get_inherited_memory(metadata={"ok": "maybe"})) == []


def test_clearing_removes_what_the_node_itself_wrote(on: On, tree: Tree) -> None:
    tree.write("root", "stays")
    tree.write("a", "one", "two")

    assert on("a").clear_node_memory() == 2

    assert (tree.own("a"), tree.own("root")) == ([], ["stays"])


def test_the_experiments_facts_are_empty_until_seeded(on: On, tree: Tree) -> None:
    assert on("a").get_experiment_context() == {}

    answer(tree.api.put_core_memory(tree.checkpoint, context={"goal": "loss"}))

    assert on("a").get_experiment_context() == {"goal": "loss"}


def test_the_trace_shows_the_steps_of_the_lineage_and_not_of_other_branches(
    on: On, tree: Tree
) -> None:
    step = on("a").add_trace_step("Thought: try a door", {"n": 1})
    on("b").add_trace_step("Thought: another door")

    assert (step.node, step.metadata) == (tree["a"], {"n": 1})
    assert texts(on("a1").get_trace()) == ["Thought: try a door"]
    assert texts(on("a1").search_trace("door").results) == ["Thought: try a door"]
    assert on("a1").search_trace("door", metadata={"n": 2}).results == ()


def test_a_worker_starts_with_every_conclusion_of_its_lineage(on: On, tree: Tree) -> None:
    conclusions = [f"conclusion {number}" for number in range(150)]
    batch = [{"text": text, "metadata": {"type": "result_summary"}} for text in conclusions]
    answer(tree.api.write_batch(tree["root"], batch))
    tree.write("a", "a note")
    answer(tree.api.put_core_memory(tree.checkpoint, persona="Careful.", context={"goal": "x"}))

    started = on("a1").get_working_context("note", 1)

    assert texts(started.inherited) == conclusions
    assert (started.node, started.persona, started.human) == (tree["a1"], "Careful.", "")
    assert (started.active_context, started.quick_reference) == ("", "")
    assert started.context == {"goal": "x"}
    assert started.search is not None
    assert texts(started.search.results) == ["a note"]
    assert on("a1").get_working_context().search is None


def test_a_session_is_core_memory_todays_notes_and_what_helps(on: On, tree: Tree) -> None:
    core = {"persona": "Careful.", "active_context": "- sweep runs", "context": {"goal": "x"}}
    answer(tree.api.request("PUT", f"/checkpoints/{tree.checkpoint}/core-memory", json=core))
    answer(tree.api.daily_note(tree.checkpoint, "The sweep began", heading="Morning"))
    answer(tree.api.write_note(tree.checkpoint, title="Rates", summary="Rate 0.1 diverges"))

    plain, asked = on("a1").session(), on("a1").session("which rate diverges", 1)

    assert (plain.core.persona, plain.core.active_context) == ("Careful.", "- sweep runs")
    assert (plain.core.words, plain.core.max_words, plain.core.over_budget) == (3, 1000, False)
    assert plain.core.context == {"goal": "x"}
    [daily] = plain.notes
    assert (daily.text, daily.heading, daily.date) == ("The sweep began", "Morning", plain.date)
    assert daily.at is not None
    assert daily.at.utcoffset() == timedelta()
    assert plain.archival is None
    assert asked.archival is not None
    [hit] = asked.archival.results
    assert (hit.rank, hit.note.ref, hit.note.summary) == (1, "learnings/rates", "Rate 0.1 diverges")


def test_notes_are_searched_by_any_node(on: On, tree: Tree) -> None:
    answer(tree.api.write_note(tree.checkpoint, title="Rates", summary="Rate 0.1 diverges"))
    answer(tree.api.write_note(tree.checkpoint, "people", title="Ada", summary="Ada likes rates"))

    found = on("b").search_archival("rates")

    assert sorted(hit.note.title for hit in found.results) == ["Ada", "Rates"]
    assert found.pending == 0
    [one] = on("b").search_archival("rates", topic="people").results
    assert (one.note.ref, one.note.tags) == ("people/ada", ())


def test_what_happened_is_found_within_the_lineage_and_in_daily_notes(on: On, tree: Tree) -> None:
    on("root").add_trace_step("Thought: try a blue door")
    on("a2").add_trace_step("Thought: a sibling's door")
    answer(tree.api.daily_note(tree.checkpoint, "The door was painted"))

    found = on("a1").search_recall("door")

    assert sorted((hit.collection, hit.text) for hit in found.results) == [
        ("daily_note", "The door was painted"),
        ("react_step", "Thought: try a blue door"),
    ]
    assert [hit.rank for hit in found.results] == [1, 2]
    assert len(on("a1").search_recall("door", 1).results) == 1


def test_a_session_needs_no_node(tree: Tree, new_worker: NewWorker) -> None:
    answer(tree.api.put_core_memory(tree.checkpoint, persona="Careful."))
    worker = new_worker(str(tree.api.http.base_url), checkpoint=tree.checkpoint)

    assert worker.session().core.persona == "Careful."
    assert worker.search_archival("anything").results == ()


def test_the_loop_that_grows_the_tree_creates_nodes_once(on: On, tree: Tree) -> None:
    made = on("a1").create_node("a11", "a1", eval_summary="Smaller.", metadata={"n": 1})

    assert (made.id, made.parent) == (f"{tree.checkpoint}.a11", tree["a1"])
    assert list(made.lineage) == [tree["root"], tree["a"], tree["a1"]]
    assert (made.eval_summary, made.sealed) == ("Smaller.", False)
    assert on("a1").create_node("a11", "a1") == made
    with pytest.raises(NodeConflict):
        on("a1").create_node("a11", "b")


def test_a_node_that_nobody_created_is_unknown(on: On) -> None:
    with pytest.raises(UnknownNode):
        on("nowhere").add_memory("text")
    with pytest.raises(UnknownNode):
        on("a").search_memory("text", node_id="nowhere")
