"""What somebody did to Letta behind the service's back is found, and mended where it can be."""

from datetime import UTC, datetime

import httpx
import pytest

from tests.letta.seen import TRACE_SIDE, lose, settled, texts
from tests.support.client import Json, answer
from tests.support.letta import RealLetta
from tests.support.tree import Tree
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.letta,
    pytest.mark.parametrize("archive", ["letta"], indirect=True),
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
]

NOTHING: Json = {"missing": [], "differing": [], "orphans": [], "doubles": []}


def reconcile(tree: Tree, *, dry_run: bool = False) -> Json:
    """Reconcile and return what did not fit."""
    params = {"dry_run": "true"} if dry_run else {}
    path = f"/checkpoints/{tree.checkpoint}/reconcile"
    return answer(tree.api.request("POST", path, params=params))


def what(found: Json) -> Json:
    return {name: found[name] for name in NOTHING}


def passage(letta: RealLetta, tree: Tree, text: str) -> Json:
    """Return the one passage of a text."""
    [found] = [item for item in letta.passages(tree.checkpoint) if item["text"] == text]
    return found


def plant(letta: RealLetta, tree: Tree, text: str, *, metadata: Json) -> Json:
    """Put a passage of our own making into the archive, newer than all others."""
    instant = datetime.now(UTC).isoformat()
    new = {"text": text, "metadata": metadata, "created_at": instant}
    [stored] = letta.insert(tree.checkpoint, [new])
    return stored


def test_nothing_is_found_where_ledger_and_letta_agree(tree: Tree) -> None:
    tree.write("root", "one", "two")
    answer(tree.api.trace_step(tree.checkpoint, "a step"))

    found = reconcile(tree)

    assert what(found) == NOTHING
    assert (found["checked"], found["dry_run"]) == (3, False)


def test_nothing_is_found_of_a_checkpoint_without_entries(tree: Tree) -> None:
    assert what(reconcile(tree)) == NOTHING


def test_an_unknown_checkpoint_is_not_reconciled(tree: Tree) -> None:
    response = tree.api.request("POST", f"/checkpoints/{tree.checkpoint}-not/reconcile")

    assert response.status_code == httpx.codes.NOT_FOUND


def test_a_passage_that_is_gone_is_indexed_again(tree: Tree, letta: RealLetta) -> None:
    one, two = tree.write("root", "one", "two")
    letta.delete_passage(tree.checkpoint, passage(letta, tree, "one")["id"])

    assert what(reconcile(tree)) == NOTHING | {"missing": [one["id"]]}

    settled(tree.api, tree.checkpoint)
    assert sorted(texts(letta, tree.checkpoint)) == ["one", "two"]
    assert sorted(tree.search("a", "one")) == ["one", "two"]
    assert what(reconcile(tree)) == NOTHING
    assert two["indexed"]


def test_a_passage_of_the_trace_that_is_gone_is_indexed_again(tree: Tree, letta: RealLetta) -> None:
    step = answer(tree.api.trace_step(tree.checkpoint, "a step"))
    [archive] = letta.archives(tree.checkpoint, TRACE_SIDE)
    [there] = letta.passages(tree.checkpoint, TRACE_SIDE)
    letta.http.delete(f"/v1/archives/{archive['id']}/passages/{there['id']}").raise_for_status()

    assert what(reconcile(tree)) == NOTHING | {"missing": [step["id"]]}

    settled(tree.api, tree.checkpoint)
    assert texts(letta, tree.checkpoint, TRACE_SIDE) == ["a step"]


@pytest.mark.parametrize("metadata", [{"entry": "e-of-nobody"}, {}, {"entry": ["a"]}], ids=str)
def test_a_passage_of_no_entry_is_removed(tree: Tree, letta: RealLetta, metadata: Json) -> None:
    tree.write("root", "kept")
    orphan = plant(letta, tree, "of nobody", metadata=metadata)

    assert what(reconcile(tree)) == NOTHING | {"orphans": [orphan["id"]]}

    assert texts(letta, tree.checkpoint) == ["kept"]
    assert tree.search("a", "of nobody") == ["kept"]


def test_a_passage_that_was_sent_twice_is_removed_once(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "sent twice")
    first = passage(letta, tree, "sent twice")
    second = plant(letta, tree, "sent twice", metadata=first["metadata"])

    assert tree.search("a", "sent twice") == ["sent twice"]
    assert what(reconcile(tree)) == NOTHING | {"doubles": [second["id"]]}

    assert [item["id"] for item in letta.passages(tree.checkpoint)] == [first["id"]]


def test_of_two_passages_the_one_that_the_ledger_knows_stays(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "sent twice")
    known = passage(letta, tree, "sent twice")
    [earlier] = letta.insert(
        tree.checkpoint,
        [
            {
                "text": "sent twice",
                "metadata": known["metadata"],
                "created_at": "2020-01-01T00:00:00Z",
            }
        ],
    )

    assert what(reconcile(tree)) == NOTHING | {"doubles": [earlier["id"]]}

    assert [item["id"] for item in letta.passages(tree.checkpoint)] == [known["id"]]


def test_a_passage_with_another_text_is_reported_and_left_alone(
    tree: Tree, letta: RealLetta
) -> None:
    [entry] = tree.write("root", "as it was written")
    there = passage(letta, tree, "as it was written")
    plant(letta, tree, "as somebody changed it", metadata=there["metadata"])
    letta.delete_passage(tree.checkpoint, there["id"])

    assert what(reconcile(tree)) == NOTHING | {"differing": [entry["id"]]}

    assert texts(letta, tree.checkpoint) == ["as somebody changed it"]
    # The ledger's text is shown, whatever Letta has.
    assert tree.search("a", "as somebody changed it") == ["as it was written"]


def test_a_dry_run_tells_all_and_changes_nothing(tree: Tree, letta: RealLetta) -> None:
    gone, twice = tree.write("root", "gone", "sent twice")
    letta.delete_passage(tree.checkpoint, passage(letta, tree, "gone")["id"])
    orphan = plant(letta, tree, "of nobody", metadata={"entry": "e-of-nobody"})
    double = plant(letta, tree, "sent twice", metadata={"entry": twice["id"]})
    before = letta.passages(tree.checkpoint)
    wrong = {
        "missing": [gone["id"]],
        "differing": [],
        "orphans": [orphan["id"]],
        "doubles": [double["id"]],
    }

    found = reconcile(tree, dry_run=True)

    assert what(found) == wrong
    assert found["dry_run"]
    assert letta.passages(tree.checkpoint) == before
    assert answer(tree.api.get_checkpoint(tree.checkpoint))["pending"] == 0
    assert what(reconcile(tree, dry_run=True)) == wrong


def test_what_letta_lost_altogether_is_rebuilt(tree: Tree, letta: RealLetta) -> None:
    entries = tree.write("root", "one", "two")
    step = answer(tree.api.trace_step(tree.checkpoint, "a step"))
    answer(tree.api.put_core_memory(tree.checkpoint, persona="careful"))
    wait_until(
        lambda: letta.blocks(tree.checkpoint)["persona"] == "careful", describe="it is mirrored"
    )
    lose(letta, tree.checkpoint)

    found = reconcile(tree)

    assert sorted(found["missing"]) == sorted(item["id"] for item in [*entries, step])
    settled(tree.api, tree.checkpoint)
    assert texts(letta, tree.checkpoint) == ["one", "two"]
    assert texts(letta, tree.checkpoint, TRACE_SIDE) == ["a step"]
    assert tree.search("a", "two", limit=1) == ["two"]
    wait_until(
        lambda: letta.blocks(tree.checkpoint)["persona"] == "careful", describe="it is mirrored"
    )
    assert what(reconcile(tree)) == NOTHING


def test_an_archive_that_is_gone_while_its_agent_stays_is_rebuilt(
    tree: Tree, letta: RealLetta
) -> None:
    tree.write("root", "one", "two")
    [archive] = letta.archives(tree.checkpoint)
    letta.http.delete(f"/v1/archives/{archive['id']}").raise_for_status()

    assert len(reconcile(tree)["missing"]) == 2

    settled(tree.api, tree.checkpoint)
    assert texts(letta, tree.checkpoint) == ["one", "two"]
    assert what(reconcile(tree)) == NOTHING


def test_an_agent_that_is_gone_while_its_archive_stays_is_rebuilt(
    tree: Tree, letta: RealLetta
) -> None:
    tree.write("root", "one", "two")
    [agent] = letta.agents(tree.checkpoint)
    letta.http.delete(f"/v1/agents/{agent['id']}").raise_for_status()

    reconcile(tree)

    settled(tree.api, tree.checkpoint)
    assert sorted(texts(letta, tree.checkpoint)) == ["one", "two"]
    assert tree.search("a", "two", limit=1) == ["two"]
    assert what(reconcile(tree)) == NOTHING


def test_more_passages_than_a_page_are_walked_through(tree: Tree, letta: RealLetta) -> None:
    answer(tree.api.write_batch(tree["root"], [f"number {number}" for number in range(230)]))
    settled(tree.api, tree.checkpoint)
    letta.delete_passage(tree.checkpoint, passage(letta, tree, "number 3")["id"])
    letta.delete_passage(tree.checkpoint, passage(letta, tree, "number 217")["id"])

    found = reconcile(tree)

    assert found["checked"] == 230
    assert len(found["missing"]) == 2
    settled(tree.api, tree.checkpoint)
    assert what(reconcile(tree)) == NOTHING


def test_a_search_shows_the_best_although_letta_lost_its_passage(
    tree: Tree, letta: RealLetta
) -> None:
    tree.write("root", *[f"entry of the root, number {number}" for number in range(8)])
    lost = passage(letta, tree, "entry of the root, number 7")
    letta.delete_passage(tree.checkpoint, lost["id"])

    for limit in (1, 3, 8):
        assert tree.search("a", "entry of the root, number 7", limit=limit)[0] == lost["text"]
