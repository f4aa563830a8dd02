"""A note is a Markdown text; its parts are read from it, and its name leads nowhere else."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.layers.note import Note, Topic, check_name, free_name, read_date, slug
from app.layers.sections import body_text
from app.lineage.errors import InvalidInput
from tests.layers.texts import texts

TODAY = dt.date(2026, 6, 9)


def written(details: str, *, title: str = "Rate", summary: str = "It is low") -> Note:
    return Note.write(
        Topic.LEARNINGS,
        "rate",
        title=title,
        date=TODAY,
        summary=summary,
        details=details,
        tags=["a", " b ", "a"],
    )


@given(texts())
def test_a_note_says_what_was_written_into_it(details: str) -> None:
    note = written(details)

    assert (note.title, note.date, note.summary) == ("Rate", TODAY, "It is low")
    assert note.details == body_text(details)
    assert note.tags == ("a", "b")


@given(texts())
def test_any_text_is_a_note(text: str) -> None:
    note = Note.read(Topic.PEOPLE, "mira", text, otherwise=TODAY)

    assert note.text == text
    assert note.title
    assert all(note.says(statement) for statement in note.facts)


def test_a_text_of_another_form_is_all_details() -> None:
    note = Note.read(
        Topic.PEOPLE, "mira", "# Mira\n\nRuns the lab.\n\n- likes tea\n", otherwise=TODAY
    )

    assert (note.title, note.summary) == ("Mira", "Runs the lab.")
    assert note.facts == ["Runs the lab.", "likes tea"]
    assert not note.takes_facts


@pytest.mark.parametrize("dash", ["\u2014", "\u2013", "-"])
def test_the_day_stands_behind_a_dash_in_the_heading(dash: str) -> None:
    note = Note.read(Topic.PEOPLE, "x", f"# A - b {dash} 2026-01-02\n", otherwise=TODAY)

    assert (note.title, note.date) == ("A - b", dt.date(2026, 1, 2))


def test_an_impossible_day_is_part_of_the_title() -> None:
    note = Note.read(Topic.PEOPLE, "x", "# A \u2014 2026-13-45\n", otherwise=TODAY)

    assert (note.title, note.date) == ("A \u2014 2026-13-45", TODAY)


@pytest.mark.parametrize(
    "parts",
    [
        {"title": ""},
        {"title": "two\nlines"},
        {"summary": " "},
        {"summary": "***"},
        {"summary": "x" * 201},
    ],
)
def test_a_title_and_a_summary_are_one_line(parts: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        written("", **parts)


@pytest.mark.parametrize("summary", ["## Details", "<!-- c -->", "- a", "\\# x", "| a |"])
def test_a_summary_reads_as_what_was_written(summary: str) -> None:
    assert written("- d", summary=summary).summary == summary.removeprefix("- ")


def test_a_tag_holds_no_comma() -> None:
    with pytest.raises(InvalidInput):
        Note.write(Topic.PEOPLE, "x", title="x", date=TODAY, summary="x", details="", tags=["a,b"])


@given(texts(), st.sampled_from(["\n", "\r\n"]))
def test_other_details_change_no_other_byte(details: str, line_end: str) -> None:
    text = written("- old").text + "\n## Mine\n\nkept  \n"
    text = text.replace("\n", line_end)
    note = Note.read(Topic.LEARNINGS, "rate", text, otherwise=TODAY)
    changed = note.with_parts(details=details).text

    before, after = text.split("- old")
    assert changed.startswith(before.removesuffix("\n").removesuffix("\r"))
    assert changed.endswith(after.lstrip("\r\n"))


OUTWARD = ("../../outside", "/etc/hosts", "a/../../b", "..%2f..%2fx", "..\\..\\x", "a\nb", "", ".")
ODD = (
    "..",
    ".x",
    "x.",
    " x",
    "a:b",
    "a\x00b",
    "x" * 81,
    "\U0001f469" * 80,
    "a\u202eb",
    'a"b',
    "a|b",
)


@pytest.mark.parametrize("name", OUTWARD + ODD)
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_name(name)


@pytest.mark.parametrize(
    "name", ["locatering", "LocaTering notes", "学習率", "2026-11-30", "a.b-c_d"]
)
def test_a_name_may_be_what_people_call_their_files(name: str) -> None:
    assert check_name(name) == name


def test_a_name_is_kept_in_its_composed_form() -> None:
    assert check_name("cafe\u0301") == "caf\u00e9"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Learning Rate: 3e-4!", "learning-rate-3e-4"),
        ("研究 ノート", "研究-ノート"),
        ("../../etc", "etc"),
        ("***", "note"),
        ("x" * 300, "x" * 80),
    ],
)
def test_a_title_makes_a_name(title: str, name: str) -> None:
    assert slug(title) == check_name(slug(title)) == name


@given(st.text(max_size=200))
def test_whatever_the_title_the_name_is_one(title: str) -> None:
    assert check_name(slug(title)) == slug(title)


def test_a_taken_name_gets_a_number() -> None:
    assert free_name("x", ["X", "x-2"]) == "x-3"


@pytest.mark.parametrize(
    "day", ["2026-13-45", "../2026-01-01", "2026-1-1", "20260101", "\uff12026-01-01"]
)
def test_a_day_is_one_of_the_calendar(day: str) -> None:
    with pytest.raises(InvalidInput):
        read_date(day)
