"""Which topic a daily note belongs to."""

import pytest

from app.layers.classify import hashtags, topic_of
from app.layers.note import Topic


@pytest.mark.parametrize(
    ("text", "heading", "topic"),
    [
        ("- Decision: AdamW", None, Topic.DECISIONS),
        ("**Decision:** AdamW", None, Topic.DECISIONS),
        ("**Decision**: AdamW", None, Topic.DECISIONS),
        ("* DECISIONS: AdamW", None, Topic.DECISIONS),
        ("決定: 学習率を下げる", None, Topic.DECISIONS),
        ("決定\uff1a学習率を下げる", None, Topic.DECISIONS),
        ("We decided to stop", None, Topic.DECISIONS),
        ("- Lesson: warm up", None, Topic.LEARNINGS),
        ("learned that 0.1 diverges", None, Topic.LEARNINGS),
        ("学び: 0.1は発散する", None, Topic.LEARNINGS),
        ("@noor keeps the keys", None, Topic.PEOPLE),
        ("Project: Locatering", None, Topic.PROJECTS),
        ("loss is 0.31", None, Topic.REFERENCE),
        ("loss is 0.31", "Decisions", Topic.DECISIONS),
        ("loss is 0.31", "学び", Topic.LEARNINGS),
        ("loss is 0.31", "Monday", Topic.REFERENCE),
        ("Fact: loss is 0.31", "Decisions", Topic.REFERENCE),
        ("decision trees overfit", None, Topic.REFERENCE),
        ("project://x is a URL", None, Topic.REFERENCE),
        ("undecided: whether to stop", None, Topic.REFERENCE),
    ],
)
def test_the_first_rule_that_fits_decides(text: str, heading: str | None, topic: Topic) -> None:
    assert topic_of(text, heading=heading) is topic


def test_hashtags_are_words_behind_a_hash_and_nothing_else() -> None:
    assert hashtags("#LR and #lr, (#学習) but no issue #12, a#b, x/#y, # z") == ["lr", "学習"]
