"""A day's file: what it says, and what is added at its end."""

import datetime as dt

import pytest
from hypothesis import example, given

from app.layers.daily import DayItem, as_note, read_day, read_note
from app.layers.day_file import add_to_day, render_day
from app.layers.markdown.blocks import statements
from app.layers.markdown.facts import fact
from tests.layers.texts import texts

DAY = dt.date(2026, 6, 9)


@given(texts())
def test_every_statement_of_a_file_is_an_item_of_its_day(text: str) -> None:
    said = [fact(block.text) for block in statements(text)]
    assert len(read_day(text, DAY)) == len(said)


@given(texts(), texts())
def test_what_is_added_is_there_once_below_its_heading_and_nothing_else_changes(
    text: str, other: str
) -> None:
    items = read_day(other, DAY)
    before = read_day(text, DAY)
    there = {item.fact for item in before}

    added = add_to_day(text, items, DAY)

    after = read_day(added, DAY)
    new = [(item.fact, item.heading) for item in items if item.fact not in there]
    came = [(item.fact, item.heading) for item in after if item.fact not in there]
    assert sorted(came, key=repr) == sorted(dict(reversed(new)).items(), key=repr)
    assert [item for item in after if item.fact in there] == before
    assert is_within(text, added) or not text.strip()
    assert add_to_day(added, items, DAY) == added


def is_within(text: str, longer: str) -> bool:
    """Tell whether a text came to be by taking lines out of a longer one."""
    rest = iter(longer.splitlines())
    return all(line in rest for line in text.splitlines())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# 2026-06-09\n\n## T\n\n- x\n", "# 2026-06-09\n\n- new\n\n## T\n\n- x\n"),
        ("# 2026-06-09\n- a\n\n## T\n- x", "# 2026-06-09\n- a\n- new\n\n## T\n- x"),
        ("# 2026-06-09\n## T\r\n- x", "# 2026-06-09\n\n- new\n\n## T\r\n- x"),
        ("## T\r\n- x\r\n", "- new\r\n\r\n## T\r\n- x\r\n"),
        ("\ufeff## T\n- x\n", "\ufeff- new\n\n## T\n- x\n"),
        ("---\na: b\n---\n# T\n- x\n", "---\na: b\n---\n\n- new\n\n# T\n- x\n"),
        ("# 2026-06-09 (Tue)\n\n- x\n", "# 2026-06-09 (Tue)\n\n- x\n- new\n"),
        ("## T\n- x\n# 2026-06-09\n- y\n", "## T\n- x\n# 2026-06-09\n- y\n- new\n"),
        ("# 2026-06-09\n\n  ## T\n- x\n", "# 2026-06-09\n\n  ## T\n- x\n\n# 2026-06-09\n\n- new\n"),
    ],
)
def test_a_note_without_a_heading_gets_none(before: str, after: str) -> None:
    assert add_to_day(before, [DayItem("new", DAY)], DAY) == after


@pytest.mark.parametrize("heading", ["Training", "C #", "#", "# x", "a  b", "`x` ##"])
def test_a_heading_is_read_as_it_was_given(heading: str) -> None:
    items = [DayItem("a", DAY, heading=heading), DayItem("b", DAY), DayItem("c", DAY, heading="Z")]

    found = read_day(add_to_day("# 2026-06-09\n\n## T\n\n- x\n", items, DAY), DAY)

    assert {(item.text, item.heading) for item in found} == {
        ("x", "T"),
        ("a", heading),
        ("b", None),
        ("c", "Z"),
    }


def test_a_thousand_items_are_added_in_one_go() -> None:
    items = [
        DayItem(f"note {number}", DAY, heading=(None, "T", "U")[number % 3])
        for number in range(1_000)
    ]

    found = read_day(add_to_day("## T\n- ``` a\n", items, DAY), DAY)

    assert len(found) == 1_001


def test_a_time_is_one_with_a_bullet_and_without() -> None:
    assert read_day("03:04+09:00 a\nb\n", DAY) == [DayItem("a\nb", DAY, "03:04+09:00")]


def test_a_clock_that_no_zone_shows_is_no_time() -> None:
    assert read_day("- 03:04+99:00 x\n", DAY) == [DayItem("03:04+99:00 x", DAY)]


@given(texts())
@example("- Lesson: warm up\n  - five hundred steps\n")
@example("- a\n\n  a second paragraph\n")
@example("- a\n\n      indented code\n")
@example("- a\n  # c\n")
@example("- # c\n")
@example("- 09:30+09:00 10:30+09:00 a\n  - b\n")
@example("10:30+09:00 a\nb\n")
@example("- <!-- a -->\n")
def test_an_item_kept_by_itself_is_that_one_fact(text: str) -> None:
    for item in read_day(text, DAY):
        assert [found.fact for found in read_note(as_note(item), DAY)] == [item.fact]


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("* one line", "one line"),
        ("- a\n  - b", "- a\n  - b"),
        ("- a\nlazy", "- a\n  lazy"),
        ("one\ntwo", "- one\n  two"),
    ],
)
def test_several_lines_are_kept_as_a_list_item(line: str, note: str) -> None:
    [item] = read_day(line, DAY)

    assert as_note(item) == note


@given(texts())
def test_a_note_kept_by_itself_says_the_same_in_a_file(text: str) -> None:
    items = read_note(text, DAY)

    written = read_day(render_day(items, DAY), DAY)

    assert {item.fact for item in written} == {item.fact for item in items}


def test_the_parts_of_a_note_have_its_time_and_heading_where_they_have_none_of_their_own() -> None:
    text = "a\n\n## People\n\n- 03:04+09:00 b\n"

    assert read_note(text, DAY, at="09:30Z", heading="T") == [
        DayItem("a", DAY, "09:30Z", "T"),
        DayItem("b", DAY, "03:04+09:00", "People"),
    ]


def test_a_note_that_is_a_heading_or_a_remark_alone_is_an_item() -> None:
    assert [item.text for item in read_note("# Decision: AdamW", DAY)] == ["# Decision: AdamW"]
    assert [item.text for item in read_note("<!-- AdamW -->", DAY)] == ["<!-- AdamW -->"]


def test_times_with_an_offset_and_headings_come_along() -> None:
    text = "# 2026-06-09\n\n## Decisions\n\n- 01:20+09:00 AdamW\n- 14:00 lunch\n"

    assert read_day(text, DAY) == [
        DayItem("AdamW", DAY, "01:20+09:00", "Decisions"),
        DayItem("14:00 lunch", DAY, None, "Decisions"),
    ]
    assert render_day(read_day(text, DAY), DAY) == text


def test_a_file_without_a_last_line_end_glues_nothing_together() -> None:
    assert add_to_day("# 2026-06-09\r\n\r\n- a", [DayItem("b", DAY)], DAY) == (
        "# 2026-06-09\r\n\r\n- a\r\n- b\r\n"
    )


def test_the_heading_of_the_day_is_written_once() -> None:
    once = add_to_day("", [DayItem("a", DAY)], DAY)

    assert add_to_day(once, [DayItem("b", DAY)], DAY) == "# 2026-06-09\n\n- a\n- b\n"
