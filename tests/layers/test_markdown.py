"""A text is taken apart without losing a byte, and a fact stays one wherever it is written."""

import pytest
from hypothesis import given

from app.layers.markdown.blocks import Kind, blocks, statements
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import as_item, fact, facts
from app.layers.markdown.shields import shielded, unshielded
from app.layers.sections import Sections, body_text, render, section_text
from tests.layers.texts import texts

TITLES = ("Summary", "Details", "Tags")


def kinds(text: str) -> list[tuple[Kind, str]]:
    return [(block.kind, block.text) for block in blocks(text)]


@given(texts())
def test_blocks_are_slices_in_order_with_nothing_but_blank_lines_between(text: str) -> None:
    at = 0
    for block in blocks(text):
        assert text[block.start : block.end] == block.text
        assert not text[at : block.start].replace("\ufeff", "").strip()
        assert block.text.strip()
        at = block.end
    assert not text[at:].replace("\ufeff", "").strip()


@given(texts())
def test_what_is_shielded_comes_back_byte_for_byte(text: str) -> None:
    assert unshielded(shielded(text)) == text


@given(texts())
def test_a_document_put_together_again_is_the_document(text: str) -> None:
    assert str(Sections.read(text, TITLES)) == text


@given(texts(), texts(), texts())
def test_sections_that_were_rendered_say_what_they_said(
    first: str, second: str, third: str
) -> None:
    said = dict(zip(TITLES, (first, second, third), strict=True))
    read = Sections.read(render("Heading", said), TITLES).bodies
    assert {title: section_text(body) for title, body in read.items()} == {
        title: body_text(text) for title, text in said.items()
    }


@given(texts())
def test_every_statement_is_the_same_fact_as_an_item_of_a_list(text: str) -> None:
    for block in statements(text):
        assert fact(as_item(block.text)) == fact(block.text)


@given(texts(), texts())
def test_items_written_one_below_the_other_are_the_facts_that_they_were(
    first: str, second: str
) -> None:
    said = statements(first) + statements(second)
    written = "".join(as_item(block.text) for block in said)
    assert facts(written) == list(dict.fromkeys(fact(block.text) for block in said))


@given(texts(), texts())
def test_items_stay_apart_in_a_section_of_a_document(text: str, other: str) -> None:
    said = statements(text)
    written = "".join(as_item(block.text) for block in said)
    body = Sections.read(render("H", {"Details": written, "Tags": other}), TITLES).bodies
    assert facts(section_text(body["Details"])) == facts(written)


def test_a_list_item_takes_along_what_is_indented_below_it() -> None:
    text = "- one\n  - inner\n\n  more\nlazy\n- two\n\nprose\n"
    assert kinds(text) == [
        (Kind.ITEM, "- one\n  - inner\n\n  more\nlazy\n"),
        (Kind.ITEM, "- two\n"),
        (Kind.PROSE, "prose\n"),
    ]


def test_a_fence_is_one_block_with_its_blank_lines_and_headings() -> None:
    text = "Run:\n```sh\n# a comment\n\nls\n```\nthen look\n\n# Next\n"
    assert kinds(text) == [
        (Kind.PROSE, "Run:\n```sh\n# a comment\n\nls\n```\nthen look\n"),
        (Kind.HEADING, "# Next\n"),
    ]


def test_a_fence_without_an_end_swallows_nothing() -> None:
    assert kinds("```\nleft open\n\n# Next\n") == [
        (Kind.PROSE, "```\nleft open\n"),
        (Kind.HEADING, "# Next\n"),
    ]


def test_front_matter_rules_and_comments_are_no_statements() -> None:
    text = "---\ntitle: x\n---\n<!-- a\nb -->\n\n***\n| --- |\n\nsaid\n"
    assert [block.text for block in statements(text)] == ["said\n"]


def test_white_space_makes_no_other_fact_but_within_code() -> None:
    assert fact("- a  b\r\n  c\r\n") == fact("* a b c") == "a b c"
    assert fact("```\na\n  b\n```") != fact("```\na\nb\n```")


@pytest.mark.parametrize(
    ("text", "length", "kept"),
    [
        ("short", 10, "short"),
        ("one two three", 9, "one two…"),
        ("学習率を下げると収束した", 6, "学習率を下…"),
        ("ae\u0301e\u0301e\u0301", 5, "ae\u0301…"),
        ("ab\U0001f469\u200d\U0001f52ccd", 5, "ab…"),
    ],
)
def test_a_cut_falls_between_words_or_characters(text: str, length: int, kept: str) -> None:
    assert cut(text, length) == kept


def test_a_rule_above_a_text_is_no_front_matter() -> None:
    text = "---\n- one\n\nowner: nobody\n\n---\n- two\n"

    assert facts(text) == ["one", "owner: nobody", "two"]
    assert facts(f"---\nowner: me\n---\n{text}") == ["one", "owner: nobody", "two"]


def test_a_fence_behind_a_byte_order_mark_is_one() -> None:
    assert [block.kind for block in blocks("\ufeff```\n# no heading\n```\n")] == [Kind.PROSE]


def test_a_heading_whose_line_has_no_end_gets_one_before_its_text() -> None:
    document = Sections.read("# Core\r\n## Tags", TITLES)

    assert str(document.with_bodies({"Tags": "a"})) == "# Core\r\n## Tags\r\na"
    assert str(document.with_bodies({"Tags": ""})) == "# Core\r\n## Tags"


def test_code_within_a_line_begins_no_fence() -> None:
    text = "- ```make test``` runs the tests\n- second\n\n## Tags\n\nx\n\n```sh\nls\n```\n"

    assert facts(text)[:2] == ["```make test``` runs the tests", "second"]
    assert Sections.read(text, TITLES).bodies == {"Tags": "\nx\n\n```sh\nls\n```\n"}


def test_a_heading_in_a_comment_begins_no_section() -> None:
    text = "<!-- Template:\n## Tags\nWrite here.\n-->\n\n## Tags\n\nx\n"

    assert Sections.read(text, TITLES).bodies == {"Tags": "\nx\n"}


@pytest.mark.parametrize(
    "text",
    ["<!-- ```\n-->\n## Tags\nx\n```\n", "```\n<!--\n```\n## Tags\nx\n-->\n"],
    ids=["fence in a comment", "comment in a fence"],
)
def test_of_a_fence_and_a_comment_the_one_that_begins_first_counts(text: str) -> None:
    assert "Tags" in Sections.read(text, TITLES).bodies


def test_a_text_without_a_last_line_end_gets_one_before_the_next_heading() -> None:
    document = Sections.read("## Tags\n## Details\n- x\n", ["Tags", "Details"])

    assert str(document.with_bodies({"Tags": "a"})) == "## Tags\na\n## Details\n- x\n"
