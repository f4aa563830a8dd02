"""Notes of a snapshot are held to what a write of a note would store, where they say it at all."""

from typing import Any

import pytest

from tests.snapshot.files import entry, header, packed, sealed, without
from tests.support.client import Api, Json, answer
from tests.support.tree import unique_checkpoint

LONG_NAME = "n" * 80

BROKEN = [
    ("reference", "topic", "pets"),
    ("reference", "topic", ["people"]),
    ("reference", "name", "../x"),
    ("reference", "name", ".."),
    ("reference", "name", "two\nlines"),
    ("reference", "name", "a" * 500),
    ("reference", "name", "a-2" * 60),
    ("reference", "name", "e\u0301"),
    ("reference", "name", ""),
    ("reference", "name", 7),
    ("reference", "name", None),
    ("reference", "date", "2026-13-45"),
    ("reference", "date", "2026-W01-1"),
    ("reference", "date", 20260101),
    ("reference", "supersedes", "x"),
    ("reference", "supersedes", [7]),
    ("reference", "supersedes", ["a/b"]),
    ("reference", "supersedes", {"x": 1}),
    ("daily_note", "date", "../x"),
    ("daily_note", "at", "noon"),
    ("daily_note", "at", "2026-01-01T09:30:00"),
    ("daily_note", "at", 1.0),
    ("daily_note", "heading", "two\nlines"),
    ("daily_note", "heading", ""),
    ("daily_note", "heading", 7),
]


def note(kind: str = "reference", **metadata: Any) -> Json:
    return entry(f"a {kind} of a door", None, kind=kind, metadata=metadata)


def of_another_tool(line: Json) -> Json:
    return without(line, "id", "sha256")


@pytest.mark.parametrize(("kind", "key", "value"), BROKEN)
def test_a_note_that_no_write_would_store_is_refused_by_line_and_key(
    api: Api, kind: str, key: str, value: object
) -> None:
    broken = note(kind, **{key: value})
    files = (
        sealed([header(), note(name="good", date="2026-01-01"), broken]),
        packed([of_another_tool(note()), "", of_another_tool(broken)]),
    )

    for file in files:
        checkpoint = unique_checkpoint()
        refused = api.restore(checkpoint, file)
        assert refused.status_code == 422, refused.text
        problem = refused.json()
        assert (problem["type"], problem["line"]) == ("/problems/snapshot-refused", 3)
        assert f"its metadata.{key}: " in problem["detail"]
        assert api.get_checkpoint(checkpoint).status_code == 404


def test_a_note_that_supersedes_itself_is_refused(api: Api) -> None:
    line = note()
    line["metadata"] = {"supersedes": [line["id"]]}

    refused = api.restore(unique_checkpoint(), sealed([header(), line]))

    assert (refused.status_code, refused.json()["line"]) == (422, 2)


def test_keys_that_a_note_may_have_beside_are_anybodys(api: Api) -> None:
    checkpoint = unique_checkpoint()
    lines = [note("reference", at="noon", x=1), note("daily_note", name="../x", topic=7)]

    done = answer(api.restore(checkpoint, sealed([header(), *lines])))

    assert done["restored"]["entries"] == 2


def test_entries_of_nodes_may_have_the_keys_of_notes(api: Api) -> None:
    metadata = {"topic": "pets", "name": "../x", "date": "today", "supersedes": "x", "at": 7}
    step = entry("think", None, metadata=metadata)

    done = answer(api.restore(unique_checkpoint(), sealed([header(), step])))

    assert done["restored"]["entries"] == 1


def test_notes_that_share_the_longest_name_travel(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    answer(api.checkpoint(home))
    for summary in ("Blue.", "Red."):
        answer(api.write_note(home, title=LONG_NAME, summary=summary))

    answer(api.restore(other, api.backup(home).content))

    names = [found["name"] for found in answer(api.notes(other))["items"]]
    assert names == [LONG_NAME, f"{LONG_NAME}-2"]
