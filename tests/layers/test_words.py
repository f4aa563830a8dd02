"""Words are counted one way, and nothing passes as fewer than it is."""

import pytest
from hypothesis import given

from app.layers.core import Section, core_words, render_core
from app.layers.words import RUN_LENGTH, count_words
from tests.layers.texts import texts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \t\n\u00a0", 0),
        ("one two", 2),
        ("don't state-of-the-art", 2),
        ("3e-4 1,024 50%", 3),
        ("- item\n1. first\n", 3),
        ("# Heading", 1),
        ("| --- | :-: |", 0),
        ("...  ***  ```", 0),
        ("\U0001f469\u200d\U0001f52c", 1),
        ("学習率を3e-4に", 6),
        ("学习率\uff0c很低。", 5),
        ("학습률을 낮춘다", 2),
        ("caf\u00e9 cafe\u0301", 2),
    ],
)
def test_a_text_counts_as_people_would_count_it(text: str, words: int) -> None:
    assert count_words(text) == words


def test_three_thousand_ideographs_are_three_thousand_words() -> None:
    assert count_words("学" * 3_000) == 3_000


@pytest.mark.parametrize(
    "between", ["\u00a0", "\t", "\u2014", " \u2014 ", "\u2013", "--", "|", "\u200b", "\u3000"]
)
def test_words_are_parted_by_any_space_dash_or_bar(between: str) -> None:
    assert count_words(between.join(["word"] * 1_001)) == 1_001


def test_a_table_counts_for_its_cells() -> None:
    rows = "\n".join(f"| row {number} | value |" for number in range(300))
    assert count_words(f"| a | b |\n| --- | --- |\n{rows}") == 902


def test_a_long_url_counts_for_its_length() -> None:
    url = "https://example.org/" + "a" * 4_980
    assert count_words(url) == len(url) / RUN_LENGTH + 1 - (len(url) % RUN_LENGTH) / RUN_LENGTH


def test_thai_counts_by_its_letters() -> None:
    # "The training rate is too high": 19 letters in one run, marks not counted.
    assert count_words("อัตราการเรียนรู้สูงเกินไป") == 4


@given(texts(), texts())
def test_what_two_texts_count_for_together_is_their_sum(first: str, second: str) -> None:
    assert count_words(f"{first}\n\n{second}") == count_words(first) + count_words(second)


@given(texts(), texts())
def test_core_memory_counts_alike_in_its_sections_and_in_markdown(first: str, second: str) -> None:
    sections = {Section.USER: first, Section.ACTIVE_CONTEXT: second}
    headings = count_words(render_core({}))
    assert count_words(render_core(sections)) == core_words(sections) + headings
