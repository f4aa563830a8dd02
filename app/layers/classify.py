"""Which topic a daily note belongs to: written rules, no language model.

In this order, and the first that fits decides:

1. The word in front of a colon at its beginning (`Decision: ...`, `**Lesson**: ...`).
2. How it begins (`Decided to ...`, `Learned that ...`, `@mira ...`).
3. The heading that it stands below.
4. What is left is a new fact, of the topic `reference`.
"""

import re

from app.layers.markdown.facts import plain
from app.layers.note import Topic

MARKERS = {
    Topic.DECISIONS: ("decision", "decisions", "decided", "決定", "決定事項", "方針"),
    Topic.LEARNINGS: (
        *("lesson", "lessons", "lesson learned", "lessons learned", "learned", "learning"),
        *("learnings", "insight", "insights", "til", "学び", "教訓", "気づき"),
    ),
    Topic.PEOPLE: ("person", "people", "who", "contact", "contacts", "人", "連絡先"),
    Topic.PROJECTS: ("project", "projects", "プロジェクト"),
    Topic.REFERENCE: ("fact", "facts", "note", "reference", "事実", "参考"),
}
BEGINNINGS = {
    Topic.DECISIONS: r"(?:we |i )?(?:have )?(?:decided|agreed|chose|chosen|settled on)\b",
    Topic.LEARNINGS: r"(?:we |i )?(?:have )?(?:learned|learnt|found out|realised|realized)\b",
    Topic.PEOPLE: r"@\w",
    Topic.PROJECTS: r"project\s+\w",
}
MARKED = re.compile(
    r"[*_\[]{0,3}(?P<word>[^:\uff1a*_\]\n]{1,40}?)[*_\]]{0,3}\s*[:\uff1a][*_]{0,2}(?!//)"
)
BEGINS = {topic: re.compile(form, re.IGNORECASE) for topic, form in BEGINNINGS.items()}
HASHTAG = re.compile(r"(?<![\w/#&])#(?P<tag>[^\W\d_][\w-]*)")


def topic_of(text: str, *, heading: str | None) -> Topic:
    """Return the topic of a daily note that stands below a heading, or below none."""
    said = plain(text)
    marked = MARKED.match(said)
    return (
        (_named(marked["word"]) if marked else None)
        or next((topic for topic, form in BEGINS.items() if form.match(said)), None)
        or (_named(heading) if heading else None)
        or Topic.REFERENCE
    )


def hashtags(text: str) -> list[str]:
    """Return the hashtags of a text in order, each once, without their marks."""
    return list(dict.fromkeys(found["tag"].casefold() for found in HASHTAG.finditer(text)))


def _named(words: str) -> Topic | None:
    name = words.strip().casefold()
    return next((topic for topic, names in MARKERS.items() if name in names), None)
