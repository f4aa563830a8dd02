"""A hit is trusted by its ledger row: an archive that finds too much leaks nothing."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.archive.leaky import LeakyArchive
from tests.conftest import StartService
from tests.support.client import Api, answer
from tests.support.tree import Tree, grow_tree, unique_checkpoint


@pytest.fixture
def foreign() -> list[str]:
    """The ids that the archive finds beside the true ones."""
    return []


@pytest.fixture
def leaky(start_service: StartService, foreign: list[str]) -> Iterator[Tree]:
    service = start_service()
    state = service.app.state
    archive = LeakyArchive(state.services.archive, lambda: foreign)
    state.services = replace(state.services, archive=archive)
    with Api(service.base_url) as api:
        yield grow_tree(api, unique_checkpoint())


def test_entries_of_siblings_descendants_and_self_are_dropped(
    leaky: Tree, foreign: list[str]
) -> None:
    leaky.write("root", "the blue door")
    for name in ("a1", "a2", "b", "a"):
        foreign += [entry["id"] for entry in leaky.write(name, f"a leak of {name}")]

    assert leaky.search("a", "door", limit=100) == ["the blue door"]
    assert set(leaky.search("a1", "door", limit=100)) == {"the blue door", "a leak of a"}


def test_entries_of_another_checkpoint_the_trace_and_the_past_are_dropped(
    leaky: Tree, foreign: list[str]
) -> None:
    api = leaky.api
    other = grow_tree(api, unique_checkpoint())
    leaky.write("root", "the blue door")
    foreign += [entry["id"] for entry in other.write("root", "a leak of elsewhere")]
    step = answer(api.trace_step(leaky.checkpoint, "a leak of the trace", claim=leaky["root"]))
    foreign.append(step["id"])
    foreign += [entry["id"] for entry in leaky.write("b", "a leak of the past")]
    answer(api.clear(leaky["b"]))
    foreign.append("never-there")

    assert leaky.search("a", "door", limit=100) == ["the blue door"]


def test_a_hit_that_does_not_match_the_filter_is_dropped(leaky: Tree, foreign: list[str]) -> None:
    foreign += [entry["id"] for entry in leaky.write("root", "log", metadata={"type": "log"})]
    leaky.write("root", "decision", metadata={"type": "decision"})

    assert leaky.search("a", "x", metadata={"type": "decision"}) == ["decision"]


def test_a_search_of_the_trace_shows_no_node_entry_and_no_siblings_step(
    leaky: Tree, foreign: list[str]
) -> None:
    api = leaky.api
    answer(api.trace_step(leaky.checkpoint, "my thought", claim=leaky["a1"]))
    sibling = answer(api.trace_step(leaky.checkpoint, "a sibling's thought", claim=leaky["a2"]))
    foreign.append(sibling["id"])
    foreign += [entry["id"] for entry in leaky.write("a1", "an entry")]

    found = answer(api.search_trace(leaky.checkpoint, "thought", claim=leaky["a1"]))

    assert [hit["text"] for hit in found["results"]] == ["my thought"]
