"""What is given to a call stays one part of its path, and one value of its body."""

import json
from collections.abc import Callable

import pytest

from app.client import BadSegment, Refused, Service
from app.client.spelling import body_of, path_of
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree

CALLS: dict[str, Callable[[Service, str], object]] = {
    "tree": lambda service, given: service.tree(given),
    "checkpoint": lambda service, given: service.get_checkpoint(given),
    "search": lambda service, given: service.search(f"{given}.a", "x"),
    "movement": lambda service, given: service.movements(given).trim(),
    "core": lambda service, given: service.layers(given).core(),
}


def test_each_part_of_a_path_is_percent_encoded() -> None:
    spelt = path_of("checkpoints", "a/../b?c#d%2e é", "tree")

    assert spelt == "/checkpoints/a%2F..%2Fb%3Fc%23d%252e%20%C3%A9/tree"


@pytest.mark.parametrize("segment", ["", ".", "..", "a\udcff"])
def test_a_part_that_a_path_cannot_hold_is_told(segment: str) -> None:
    with pytest.raises(BadSegment, match="is no id"):
        path_of("checkpoints", segment)


def test_a_body_carries_what_the_service_is_to_judge() -> None:
    assert json.loads(body_of({"text": "é\udcff"})) == {"text": "é\udcff"}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_id_leads_to_another_checkpoint(
    call: Callable[[Service, str], object], service: InProcessService, tree: Tree
) -> None:
    with Service(service.base_url) as there, pytest.raises(Refused) as refused:
        call(there, f"elsewhere/../{tree.checkpoint}")

    assert refused.value.status == 404


@pytest.mark.parametrize("note", ["..", "../core-memory"])
def test_no_note_leads_to_something_else(note: str, service: InProcessService, tree: Tree) -> None:
    with Service(service.base_url) as there, pytest.raises((BadSegment, Refused)):
        there.layers(tree.checkpoint).note(note)


def test_half_a_surrogate_pair_is_refused_by_the_service(
    service: InProcessService, api: Api, tree: Tree
) -> None:
    with Service(service.base_url) as there, pytest.raises(Refused) as refused:
        there.write_batch(tree["a"], [{"text": "q\udcff", "metadata": {}}], key="k")

    assert refused.value.status == 422
    assert answer(api.get_node(tree["a"]))["entry_count"] == 0
