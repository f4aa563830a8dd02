"""Core memory as Markdown: what is not known keeps its bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.layers.core import CoreDocument, Section, append_line, render_core, replace_line
from app.layers.errors import LineMismatch
from app.layers.sections import body_text
from tests.layers.texts import texts

EMPTY = """\
# Core Memory

## Identity

## User

## Active Context

## Quick Reference
"""


def test_an_empty_core_memory_has_its_four_sections() -> None:
    assert render_core({}) == EMPTY


@given(st.dictionaries(st.sampled_from(Section), texts()))
def test_what_is_rendered_reads_as_what_it_was(sections: dict[Section, str]) -> None:
    assert CoreDocument.read(render_core(sections)).texts == {
        section: body_text(sections.get(section, "")) for section in Section
    }


@given(texts())
def test_any_file_is_read_and_written_byte_for_byte(text: str) -> None:
    document = CoreDocument.read(text)
    assert str(document) == text
    assert str(document.with_bodies(document.bodies)) == text


def test_an_edit_of_one_section_leaves_every_other_byte() -> None:
    before = "---\nx: 1\n---\npreamble\r\n# Core Memory\n\n"
    file = f"{before}##  user ##\nold\n\n## Mine\n- kept\n## USER\n"
    document = CoreDocument.read(file)

    assert document.bodies[Section.USER] == "old\n\n"
    assert str(document.with_bodies({Section.USER: "new\n"})) == file.replace("old\n\n", "new\n")


def test_a_section_that_is_missing_comes_at_the_end() -> None:
    document = CoreDocument.read("# Core Memory\n\n## User\n- a").with_bodies(
        {Section.ACTIVE_CONTEXT: "\n- b\n"}
    )

    assert str(document) == "# Core Memory\n\n## User\n- a\n\n## Active Context\n\n- b\n"


def test_words_outside_of_the_sections_count_but_the_heading_does_not() -> None:
    document = CoreDocument.read("two words\n# Core Memory\n## User\na b c\n## Mine\nd\n")

    assert document.other_words == 4  # "two words", "Mine" and "d"


def test_a_line_is_appended_with_the_line_ends_of_the_text() -> None:
    assert append_line("", "b") == "b"
    assert append_line("a", "b") == "a\nb"
    assert append_line("x\r\na", "b") == "x\r\na\r\nb"
    assert append_line("a\n", "b") == "a\nb"


def test_a_line_below_a_list_is_an_item_or_a_paragraph_of_its_own() -> None:
    assert append_line("- a", "- b") == "- a\n- b"
    assert append_line("- a", "b") == "- a\n\nb"


def test_a_line_that_is_there_is_not_appended_again() -> None:
    assert append_line("a\r\nb\r\nc", "b") == "a\r\nb\r\nc"


@pytest.mark.parametrize(
    "line", ["  - overfits", "ls"], ids=["below another item", "a line of code"]
)
def test_a_line_that_says_something_else_elsewhere_is_appended(line: str) -> None:
    text = "- model A\n  - overfits\n- model B\n\n```sh\nls\n```\n- model C"

    appended = append_line(text, line)

    assert appended.startswith(text)
    assert appended[len(text) :].split() == line.split()


def test_an_indented_line_belongs_to_the_item_above_it() -> None:
    assert append_line("- model A", "  - overfits") == "- model A\n  - overfits"


def test_one_line_is_replaced_and_its_end_stays() -> None:
    assert replace_line("a\r\nb\r\nc", "b", "B") == "a\r\nB\r\nc"


@pytest.mark.parametrize("text", ["", "a\nc", "b\nb", "bb", " b"])
def test_a_line_that_is_not_there_exactly_once_is_not_replaced(text: str) -> None:
    with pytest.raises(LineMismatch):
        replace_line(text, "b", "B")
