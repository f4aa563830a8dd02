"""Notes in the archives of their own: Letta's own search finds those that count, and no other."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartService
from tests.letta.seen import settled, texts
from tests.support.client import Api, Json, answer
from tests.support.http_proxy import HttpFaultProxy, Lost, Request
from tests.support.letta import RealLetta
from tests.support.tree import Tree, unique_checkpoint
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.letta,
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
]
on_letta = pytest.mark.parametrize("archive", ["letta"], indirect=True)

NOTES, DAYS = "ari_reference", "ari_daily"


def found_by_letta(letta: RealLetta, checkpoint: str, query: str, prefix: str = NOTES) -> list[str]:
    """Return the texts that Letta's own archival search finds, best first."""
    (agent,) = letta.agents(checkpoint, prefix)
    response = letta.http.get(
        f"/v1/agents/{agent['id']}/archival-memory/search", params={"query": query, "top_k": 100}
    )
    response.raise_for_status()
    return [result["content"] for result in response.json()["results"]]


def holds(letta: RealLetta, checkpoint: str, *expected: str) -> None:
    """Wait until the archive of notes holds these texts and no other."""
    wait_until(
        lambda: sorted(texts(letta, checkpoint, NOTES)) == sorted(expected),
        describe=lambda: f"{expected} alone: {texts(letta, checkpoint, NOTES)}",
        timeout=90,
    )


def note(api: Api, checkpoint: str, summary: str) -> Json:
    return answer(api.write_note(checkpoint, title="Door", summary=summary))


def corrected(api: Api, checkpoint: str, note_id: str, summary: str) -> Json:
    return answer(api.correct_note(checkpoint, note_id, title="Door", summary=summary))


@on_letta
def test_a_note_is_found_by_lettas_own_search_and_a_superseded_one_no_longer(
    tree: Tree, api: Api, letta: RealLetta
) -> None:
    old = note(api, tree.checkpoint, "The blue door opens.")
    other = answer(api.write_note(tree.checkpoint, title="Rates", summary="Learning rates."))
    assert old["indexed"]
    query = "which door opens"
    assert found_by_letta(letta, tree.checkpoint, query) == [old["text"], other["text"]]

    new = corrected(api, tree.checkpoint, old["id"], "The red door opens.")

    holds(letta, tree.checkpoint, new["text"], other["text"])
    assert found_by_letta(letta, tree.checkpoint, query) == [new["text"], other["text"]]
    hits = answer(api.search_notes(tree.checkpoint, query))["results"]
    assert [hit["id"] for hit in hits] == [new["id"], other["id"]]
    assert answer(api.get_note(tree.checkpoint, old["id"]))["text"] == old["text"]


@on_letta
def test_daily_notes_have_an_archive_of_their_own(tree: Tree, api: Api, letta: RealLetta) -> None:
    answer(api.daily_note(tree.checkpoint, "went through the blue door"))
    answer(api.trace_step(tree.checkpoint, "opened the blue door"))
    written = note(api, tree.checkpoint, "The blue door opens.")
    tree.write("root", "a blue door")

    found = found_by_letta(letta, tree.checkpoint, "blue door", DAYS)
    recalled = answer(api.search_recall(tree.checkpoint, "blue door"))["results"]

    assert found == ["went through the blue door"]
    assert found_by_letta(letta, tree.checkpoint, "blue door") == [written["text"]]
    assert sorted(hit["collection"] for hit in recalled) == ["daily_note", "react_step"]


@on_letta
def test_nothing_is_out_of_place_after_a_correction_and_what_is_left_over_is_an_orphan(
    tree: Tree, api: Api, letta: RealLetta
) -> None:
    old = note(api, tree.checkpoint, "The blue door opens.")
    (passage,) = letta.passages(tree.checkpoint, NOTES)
    new = corrected(api, tree.checkpoint, old["id"], "The red door opens.")
    holds(letta, tree.checkpoint, new["text"])
    path = f"/checkpoints/{tree.checkpoint}/reconcile"
    found = answer(api.request("POST", path))
    nothing: Json = {"missing": [], "differing": [], "orphans": [], "doubles": []}
    assert found == {"checked": 1, **nothing, "dry_run": False}

    (archive,) = letta.archives(tree.checkpoint, NOTES)
    again = {key: passage[key] for key in ("text", "metadata", "created_at")}
    response = letta.http.post(f"/v1/archives/{archive['id']}/passages", json=again)
    response.raise_for_status()
    found = answer(api.request("POST", path))

    assert found == {
        "checked": 1,
        **nothing,
        "orphans": [response.json()["id"]],
        "dry_run": False,
    }
    holds(letta, tree.checkpoint, new["text"])


@on_letta
def test_a_reindex_takes_the_notes_that_count_alone(tree: Tree, api: Api, letta: RealLetta) -> None:
    old = note(api, tree.checkpoint, "The blue door opens.")
    new = corrected(api, tree.checkpoint, old["id"], "The red door opens.")

    answer(api.reindex(tree.checkpoint))
    settled(api, tree.checkpoint)

    def kept() -> bool:
        return len(letta.archives(tree.checkpoint, NOTES)) == 1

    wait_until(kept, describe="the former archive is gone", timeout=60)
    holds(letta, tree.checkpoint, new["text"])


@pytest.fixture
def behind(start_behind: StartService) -> Iterator[Api]:
    """A service whose way to Letta can be cut."""
    with Api(start_behind().base_url) as api:
        yield api


def test_a_note_corrected_while_letta_is_away_never_gets_there(
    behind: Api, way: HttpFaultProxy, letta: RealLetta
) -> None:
    checkpoint = unique_checkpoint()
    answer(behind.checkpoint(checkpoint))
    first = note(behind, checkpoint, "The first door opens.")
    settled(behind, checkpoint)
    way.refuse()
    old = note(behind, checkpoint, "The blue door opens.")
    new = corrected(behind, checkpoint, old["id"], "The red door opens.")
    assert (old["indexed"], new["indexed"]) == (False, False)
    assert answer(behind.get_checkpoint(checkpoint))["pending"] == 1

    way.restore()
    settled(behind, checkpoint)

    holds(letta, checkpoint, first["text"], new["text"])


def test_one_that_was_on_its_way_is_removed_after_all(
    behind: Api, way: HttpFaultProxy, letta: RealLetta
) -> None:
    checkpoint = unique_checkpoint()
    answer(behind.checkpoint(checkpoint))
    first = note(behind, checkpoint, "The first door opens.")
    settled(behind, checkpoint)

    def hold_the_answer(request: Request) -> Lost | None:
        return Lost.HELD if b"blue door" in request.content else None

    way.meddle(hold_the_answer)
    old = note(behind, checkpoint, "The blue door opens.")
    assert not old["indexed"]
    wait_until(
        lambda: old["text"] in texts(letta, checkpoint, NOTES),
        describe="Letta has it, and the service does not know",
    )

    new = corrected(behind, checkpoint, old["id"], "The red door opens.")
    way.cut()
    way.restore()

    holds(letta, checkpoint, first["text"], new["text"])
    settled(behind, checkpoint)
    hits = answer(behind.search_notes(checkpoint, "door"))["results"]
    assert {hit["id"] for hit in hits} == {first["id"], new["id"]}
