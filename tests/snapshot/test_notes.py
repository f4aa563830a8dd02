"""Notes of a checkpoint: carried from the first format on, and seen by no node."""

from collections.abc import Iterable

import pytest

from tests.snapshot.files import changed, entry, header, node, records, sealed
from tests.snapshot.sample import await_index
from tests.support.client import Api, Json, answer
from tests.support.tree import unique_checkpoint

KINDS = ("reference", "daily_note")


def notes() -> list[dict[str, object]]:
    return [entry(f"a note of kind {kind}", None, kind=kind) for kind in KINDS]


def test_notes_come_back_in_the_next_backup(api: Api) -> None:
    checkpoint = unique_checkpoint()

    done = answer(api.restore(checkpoint, sealed([header(checkpoint), *notes()])))

    assert done["restored"]["entries"] == 2
    await_index(api, checkpoint)
    kept = [line for line in records(api.backup(checkpoint).content) if line["kind"] in KINDS]
    assert [(line["kind"], line["text"]) for line in kept] == [
        (note["kind"], note["text"]) for note in notes()
    ]


def test_notes_are_found_in_no_node_and_in_no_trace(api: Api) -> None:
    checkpoint = unique_checkpoint()
    lines = [header(checkpoint), node("root"), node("leaf", "root"), *notes()]
    answer(api.restore(checkpoint, sealed(lines)))
    await_index(api, checkpoint)

    found = answer(api.search(f"{checkpoint}.leaf", "a note of kind", include_self=True))
    traced = answer(api.search_trace(checkpoint, "a note of kind"))

    assert found["results"] == traced["results"] == []
    assert answer(api.trace(checkpoint))["items"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_of_a_node_is_refused(api: Api, kind: str) -> None:
    checkpoint = unique_checkpoint()
    lines = [header(checkpoint), node("root"), entry("a note", "root", kind=kind)]

    refused = api.restore(checkpoint, sealed(lines))

    assert (refused.status_code, refused.json()["line"]) == (422, 3)
    assert api.get_checkpoint(checkpoint).status_code == 404


def written(api: Api, checkpoint: str) -> tuple[str, str, str]:
    """Write a note and correct it twice; return the ids, oldest first."""
    first = answer(api.write_note(checkpoint, title="Door", summary="Blue."))["id"]
    ids = [first]
    for colour in ("Red.", "Green."):
        corrected = api.correct_note(checkpoint, first, title="Door", summary=colour)
        ids.append(answer(corrected)["id"])
    return ids[0], ids[1], ids[2]


def counting(api: Api, checkpoint: str) -> list[str]:
    """Return the ids of the notes that count, once what counts is all that was to be indexed."""
    await_index(api, checkpoint)
    listed = [note["id"] for note in answer(api.notes(checkpoint))["items"]]
    found = answer(api.search_notes(checkpoint, "door", limit=100))["results"]
    assert sorted(listed) == sorted(hit["id"] for hit in found)
    return listed


def chain(api: Api, checkpoint: str, ids: Iterable[str]) -> list[str | None]:
    return [answer(api.get_note(checkpoint, note))["superseded_by"] for note in ids]


def test_superseded_notes_travel_and_stay_superseded(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    answer(api.checkpoint(home))
    old, middle, new = written(api, home)
    answer(api.daily_note(home, "went well", date="2026-06-08", heading="Doors"))
    snapshot = api.backup(home).content

    answer(api.restore(other, snapshot))

    assert counting(api, other) == [new]
    assert chain(api, other, (old, middle, new)) == [middle, new, None]
    assert answer(api.daily_notes(other)) == answer(api.daily_notes(home))
    lines = records(api.backup(other).content)
    assert lines[1:-1] == records(snapshot)[1:-1]
    answer(api.restore(home, api.backup(other).content, on_conflict="overwrite"))
    answer(api.restore(home, snapshot, on_conflict="overwrite"))
    assert api.backup(home).content == snapshot


@pytest.mark.parametrize("mode", ["skip", "merge", "overwrite"])
def test_a_snapshot_restored_again_changes_nothing(api: Api, mode: str) -> None:
    checkpoint = unique_checkpoint()
    answer(api.checkpoint(checkpoint))
    ids = written(api, checkpoint)
    snapshot = api.backup(checkpoint).content

    for _ in range(2):
        answer(api.restore(checkpoint, snapshot, on_conflict=mode))

    assert counting(api, checkpoint) == [ids[2]]
    assert chain(api, checkpoint, ids) == [ids[1], ids[2], None]
    assert api.backup(checkpoint).content == snapshot


@pytest.mark.parametrize("mode", ["skip", "merge"])
def test_an_older_snapshot_does_not_bring_back_what_was_corrected_since(
    api: Api, mode: str
) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    answer(api.checkpoint(home))
    note = answer(api.write_note(home, title="Door", summary="Blue."))["id"]
    older = api.backup(home).content
    new = answer(api.correct_note(home, note, title="Door", summary="Red."))["id"]

    def without_the_first(lines: list[Json]) -> None:
        lines[:] = [line for line in lines if line.get("id") != note]

    answer(api.restore(other, changed(api.backup(home).content, without_the_first)))
    answer(api.restore(home, older, on_conflict=mode))
    answer(api.restore(other, older, on_conflict=mode))

    assert counting(api, home) == counting(api, other) == [new]
    assert chain(api, other, (note,)) == [new]


@pytest.mark.parametrize("mode", ["skip", "merge"])
def test_a_newer_snapshot_supersedes_what_is_there(api: Api, mode: str) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    answer(api.checkpoint(home))
    note = answer(api.write_note(home, title="Door", summary="Blue."))["id"]
    answer(api.restore(other, api.backup(home).content))
    assert counting(api, other) == [note]
    new = answer(api.correct_note(home, note, title="Door", summary="Red."))["id"]

    answer(api.restore(other, api.backup(home).content, on_conflict=mode))

    assert counting(api, other) == [new]


@pytest.mark.parametrize("mode", ["skip", "merge"])
def test_of_two_corrections_the_one_that_is_there_stays_and_none_is_lost(
    api: Api, mode: str
) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    answer(api.checkpoint(home))
    note = answer(api.write_note(home, title="Door", summary="Blue."))["id"]
    answer(api.restore(other, api.backup(home).content))
    theirs = answer(api.correct_note(home, note, title="Door", summary="Red."))["id"]
    ours = answer(api.correct_note(other, note, title="Door", summary="Green."))["id"]

    answer(api.restore(other, api.backup(home).content, on_conflict=mode))

    assert sorted(counting(api, other)) == sorted([ours, theirs])
    assert chain(api, other, (note,)) == [ours]


class TestANoteWhoseIdIsTaken:
    """`x` is another note here than in the file, in which `y` supersedes it."""

    FILE = sealed(
        [
            header(),
            entry("of the file", None, kind="reference", id="x", ts=10.0),
            entry("its correction", None, kind="reference", id="y", ts=11.0)
            | {"metadata": {"supersedes": ["x"]}},
        ]
    )

    @pytest.fixture
    def checkpoint(self, api: Api) -> str:
        name = unique_checkpoint()
        ours = entry("door of ours", None, kind="reference", id="x", ts=9.0)
        answer(api.restore(name, sealed([header(name), ours])))
        return name

    def test_comes_in_under_another_id_and_is_superseded_there(
        self, api: Api, checkpoint: str
    ) -> None:
        for added in (2, 0):
            done = answer(api.restore(checkpoint, self.FILE, on_conflict="merge"))
            assert done["restored"]["entries"] == added

        assert counting(api, checkpoint) == ["x", "y"]
        (renamed,) = answer(api.get_note(checkpoint, "y"))["supersedes"]
        assert answer(api.get_note(checkpoint, renamed))["text"] == "of the file"
        assert chain(api, checkpoint, (renamed, "x")) == ["y", None]
        other = unique_checkpoint()
        answer(api.restore(other, api.backup(checkpoint).content))
        assert counting(api, other) == ["x", "y"]
        assert chain(api, other, (renamed, "x")) == ["y", None]

    def test_is_left_out_and_ours_is_not_superseded_in_its_place(
        self, api: Api, checkpoint: str
    ) -> None:
        for added in (1, 0):
            done = answer(api.restore(checkpoint, self.FILE, on_conflict="skip"))
            assert (done["restored"]["entries"], done["conflicts"]) == (added, 1)

        assert counting(api, checkpoint) == ["x", "y"]
        assert answer(api.get_note(checkpoint, "y"))["supersedes"] == []


def test_a_note_of_another_tool_is_a_note_of_reference_under_its_id(api: Api) -> None:
    checkpoint = unique_checkpoint()
    answer(api.restore(checkpoint, sealed([header(checkpoint), *notes()])))
    await_index(api, checkpoint)

    (note,) = answer(api.notes(checkpoint))["items"]
    (day,) = answer(api.daily_notes(checkpoint))["items"]

    assert (note["topic"], note["name"], note["date"]) == ("reference", note["id"], "2023-11-14")
    assert answer(api.notes(checkpoint, topic="reference"))["items"] == [note]
    assert (day["date"], day["at"], day["heading"]) == ("2023-11-14", None, None)


@pytest.mark.parametrize("mode", ["skip", "merge"])
def test_a_note_known_by_its_content_is_superseded_by_its_id_here(api: Api, mode: str) -> None:
    checkpoint = unique_checkpoint()

    def of(first: str) -> bytes:
        old = entry("old fact", None, kind="reference", id=first, ts=2.0)
        new = entry("new fact", None, kind="reference", id="n2", ts=3.0)
        return sealed([header(), old, new | {"metadata": {"supersedes": [first]}}])

    answer(api.restore(checkpoint, of("renamed")))

    done = answer(api.restore(checkpoint, of("n1"), on_conflict=mode))

    assert (done["restored"]["entries"], done["skipped"], done["conflicts"]) == (0, 2, 0)
    assert counting(api, checkpoint) == ["n2"]
