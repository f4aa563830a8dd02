"""A checkpoint that moves to where Letta knows nothing of it, or whose Letta was wiped."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartService
from tests.letta.seen import NODE_SIDE, TRACE_SIDE, lose, settled, texts
from tests.support.client import Api, Json, answer
from tests.support.letta import RealLetta
from tests.support.tree import Tree, grow_tree, unique_checkpoint

pytestmark = [
    pytest.mark.letta,
    pytest.mark.parametrize("database", ["postgresql"], indirect=True),
]
TEXTS = [f"{name} number {number}" for name in ("loss", "rate", "depth") for number in range(40)]


@pytest.fixture
def elsewhere(
    start_service: StartService, letta: RealLetta, letta_instance: str, letta_embeddings: str
) -> Iterator[Api]:
    """Another service with a database of its own, in front of Letta."""
    chosen: Json = {**letta.settings(letta_instance), "embeddings_url": letta_embeddings}
    with Api(start_service(**chosen).base_url) as api:
        yield api


@pytest.fixture
def snapshot(start_service: StartService) -> tuple[str, bytes, Json]:
    """A checkpoint's id, its snapshot from the embedded archive, and a search there."""
    with Api(start_service().base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        answer(api.write_batch(tree["root"], TEXTS))
        tree.write("b", "loss number 7 of the sibling")
        answer(api.trace_step(tree.checkpoint, "a step of the trace"))
        answer(api.put_core_memory(tree.checkpoint, persona="careful", context={"goal": 1}))
        found = answer(api.search(tree["a1"], "loss number 7", limit=20))
        return tree.checkpoint, api.backup(tree.checkpoint).content, found


def found_by(api: Api, checkpoint: str) -> Json:
    tree = Tree(api, checkpoint)
    return answer(api.search(f"{tree.checkpoint}.a1", "loss number 7", limit=20))


def test_what_is_resumed_in_front_of_letta_is_searched_as_before(
    elsewhere: Api, letta: RealLetta, snapshot: tuple[str, bytes, Json]
) -> None:
    checkpoint, packed, before = snapshot

    assert answer(elsewhere.resume(checkpoint, packed))["did"] == "restored"

    settled(elsewhere, checkpoint)
    after = found_by(elsewhere, checkpoint)
    assert [hit["entry_id"] for hit in after["results"]] == [
        hit["entry_id"] for hit in before["results"]
    ]
    assert texts(letta, checkpoint, NODE_SIDE) == [*TEXTS, "loss number 7 of the sibling"]
    assert texts(letta, checkpoint, TRACE_SIDE) == ["a step of the trace"]


def test_what_a_wiped_letta_lost_is_resumed_from_the_ledger(
    elsewhere: Api, letta: RealLetta, snapshot: tuple[str, bytes, Json]
) -> None:
    checkpoint, packed, before = snapshot
    answer(elsewhere.resume(checkpoint, packed))
    settled(elsewhere, checkpoint)
    lose(letta, checkpoint)

    assert answer(elsewhere.resume(checkpoint))["did"] == "reindexed"

    settled(elsewhere, checkpoint)
    assert sorted(texts(letta, checkpoint)) == sorted([*TEXTS, "loss number 7 of the sibling"])
    assert found_by(elsewhere, checkpoint)["results"] == before["results"]
    elsewhere.write(f"{checkpoint}.a2", "work goes on")
    assert answer(elsewhere.resume(checkpoint))["did"] == "nothing"
