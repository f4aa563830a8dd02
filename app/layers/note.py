"""A note: one Markdown text about a topic, and what its parts say."""

import datetime as dt
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

from app.layers.markdown.blocks import statements
from app.layers.markdown.cut import cut
from app.layers.markdown.facts import fact, plain
from app.layers.markdown.lines import newline_of
from app.layers.markdown.shields import shielded
from app.layers.sections import Sections, body_text, render, section_text
from app.layers.words import has_words
from app.lineage.errors import InvalidInput

SUMMARY, DETAILS, TAGS = "Summary", "Details", "Tags"
PARTS = (SUMMARY, DETAILS, TAGS)
HEADING = re.compile(r"(.*?)[ \t]+[\u2014\u2013-][ \t]+([0-9]{4}-[0-9]{2}-[0-9]{2})")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MAX_SUMMARY = 200
MAX_TITLE = 200
MAX_NAME = 80
# A file system takes 255 bytes, an ending and a number beside the name included.
MAX_NAME_BYTES = 200
# Where a note's summary went; not a fact of its own.
CROSS = re.compile(r"Promoted to core: .+")
# What could lead elsewhere, or not be a file's name everywhere.
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f/\\%:*?\"<>|]")
NOT_OF_SLUGS = re.compile(r"[\W_]+")


class Topic(StrEnum):
    """What a note is about."""

    PEOPLE = "people"
    PROJECTS = "projects"
    DECISIONS = "decisions"
    LEARNINGS = "learnings"
    REFERENCE = "reference"


@dataclass(frozen=True)  # no slots: what is read of the text is kept
class Note:
    """A note as its text says it; `name` is unique within its topic.

    A text that somebody wrote in another form is a note as well: its title is its first heading or
    its name, its summary its first statement, and all of it are its details.
    """

    topic: Topic
    name: str
    text: str
    title: str
    date: dt.date
    summary: str
    details: str
    tags: tuple[str, ...]

    @classmethod
    def read(cls, topic: Topic, name: str, text: str, *, otherwise: dt.date) -> Self:
        """Read a note's text; a note without a date is of `otherwise`."""
        sections = Sections.read(text, PARTS)
        bodies = {title: section_text(body) for title, body in sections.bodies.items()}
        title, date = _heading(sections.first_heading)
        whole = DETAILS not in bodies and SUMMARY not in bodies
        details = section_text(sections.rest) if whole else bodies.get(DETAILS, "")
        said = [block.text for block in statements(bodies.get(SUMMARY) or details)]
        # A summary is what stands there, even where it looks like a heading or a comment.
        summary = next(iter(said), bodies.get(SUMMARY, ""))
        return cls(
            topic=topic,
            name=name,
            text=text,
            title=title or name,
            date=date or otherwise,
            summary=cut(plain(summary), MAX_SUMMARY),
            details=details,
            tags=tuple(tag for tag in map(str.strip, bodies.get(TAGS, "").split(",")) if tag),
        )

    @classmethod
    def write(
        cls,
        topic: Topic,
        name: str,
        *,
        title: str,
        date: dt.date,
        summary: str,
        details: str,
        tags: Sequence[str],
    ) -> Self:
        """Write a new note; InvalidInput for a title, a summary or a tag that is not one line."""
        title, summary = title.strip(), summary.strip()
        _check_line(title, "title", longest=MAX_TITLE)
        _check_line(summary, "summary", longest=MAX_SUMMARY)
        if not has_words(summary):
            raise InvalidInput("A summary says something in words.", place=("body", "summary"))
        kept = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
        for tag in kept:
            _check_line(tag, "tags", longest=MAX_TITLE)
            if "," in tag:
                raise InvalidInput("A comma parts two tags.", place=("body", "tags"))
        parts = {SUMMARY: summary, DETAILS: details, TAGS: ", ".join(kept)}
        text = render(f"{title} \N{EM DASH} {date.isoformat()}", parts)
        return cls.read(topic, name, text, otherwise=date)

    @property
    def ref(self) -> str:
        """What names the note in core memory and in calls: `topic/name`."""
        return f"{self.topic.value}/{self.name}"

    @cached_property
    def takes_facts(self) -> bool:
        """Whether the text has details to add to; one of another form stays as it was written."""
        return DETAILS in Sections.read(self.text, PARTS).bodies

    @cached_property
    def own_details(self) -> str:
        """What stands below the heading of the details; empty in a text of another form."""
        body = Sections.read(self.text, PARTS).bodies.get(DETAILS, "")
        return section_text(body).replace("\r\n", "\n")

    @cached_property
    def statements(self) -> list[str]:
        """What the note says, block by block, wherever in its text; its cross-references apart."""
        sections = Sections.read(self.text, PARTS)
        rest = section_text(sections.rest)
        # Where there are no parts, the rest is what the details are.
        texts = (rest, self.details) if sections.bodies.keys() & {SUMMARY, DETAILS} else (rest,)
        said = [block.text for text in texts for block in statements(text)]
        return [text for text in said if not CROSS.fullmatch(fact(text))]

    @cached_property
    def facts(self) -> list[str]:
        """The facts that the note keeps, each once: its statements, or its summary without any."""
        return list(dict.fromkeys(map(fact, self.statements))) or [
            *filter(None, [self.summary_fact])
        ]

    @cached_property
    def summary_fact(self) -> str:
        """The summary as a fact."""
        return fact(self.summary)

    def says(self, statement: str) -> bool:
        """Tell whether a fact is among those of the note, or is its summary."""
        return statement in self.facts or statement == self.summary_fact

    def with_parts(
        self,
        *,
        details: str | None = None,
        summary: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> Self:
        """Return the note with some parts changed, every other byte of its text as it was.

        What is to be added to a text of another form comes at its end, below headings of its own.
        """
        changed = {
            SUMMARY: summary,
            DETAILS: details,
            TAGS: None if tags is None else ", ".join(dict.fromkeys(tags)),
        }
        newline = newline_of(self.text)
        bodies = {
            title: _body(text, newline) for title, text in changed.items() if text is not None
        }
        text = str(Sections.read(self.text, PARTS).with_bodies(bodies))
        if text.endswith(newline * 2) and not self.text.endswith(newline * 2):
            text = text.removesuffix(newline)
        return type(self).read(self.topic, self.name, text, otherwise=self.date)


def read_topic(text: str) -> Topic:
    """Read a topic's name; InvalidInput where it is none."""
    try:
        return Topic(text)
    except ValueError:
        topics = ", ".join(topic.value for topic in Topic)
        raise InvalidInput(f"A topic is one of {topics}.", place=("body", "topic")) from None


def check_name(name: str) -> str:
    """Return a note's name in its normal form (NFC); InvalidInput where no note may be called so.

    It has to be a file's name on any system, and lead nowhere else.
    """
    name = unicodedata.normalize("NFC", name)
    if (
        not name
        or len(name) > MAX_NAME
        or len(name.encode(errors="replace")) > MAX_NAME_BYTES
        or FORBIDDEN.search(name)
        or name.startswith((".", " "))
        or name.endswith((".", " "))
        or not name.isprintable()
    ):
        raise InvalidInput(
            f"A note's name has at most {MAX_NAME} characters and {MAX_NAME_BYTES} bytes, none of "
            'them / \\ % : * ? " < > | or invisible, and begins and ends with no dot or '
            "space.",
            place=("body", "name"),
        )
    return name


def slug(title: str) -> str:
    """Return the name that a title gives a note: letters and digits, in lower case, and hyphens."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", title).casefold())
    name = NOT_OF_SLUGS.sub("-", text).strip("-")[:MAX_NAME]
    while len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        name = name[:-1]
    return name.strip("-") or "note"


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number behind it where notes of the topic have it already."""
    used = {other.casefold() for other in taken}
    if name.casefold() not in used:
        return name
    number = 2
    while f"{name}-{number}".casefold() in used:
        number += 1
    return f"{name}-{number}"


def read_date(text: str, *, field: str = "date") -> dt.date:
    """Read YYYY-MM-DD and nothing else; InvalidInput where no calendar has the day."""
    try:
        if DATE.fullmatch(text):
            return dt.date.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidInput("A date is a day of the calendar, YYYY-MM-DD.", place=("body", field))


def _heading(words: str) -> tuple[str, dt.date | None]:
    found = HEADING.fullmatch(words)
    if found is None:
        return words, None
    try:
        return found[1], dt.date.fromisoformat(found[2])
    except ValueError:
        return words, None


def _body(text: str, newline: str) -> str:
    """Return what stands between a heading and the next one."""
    body = shielded(body_text(text)).replace("\r\n", "\n")
    return f"\n{body}\n\n".replace("\n", newline) if body else newline


def _check_line(text: str, field: str, *, longest: int) -> None:
    if not text or len(text) > longest or len(text.splitlines()) > 1:
        raise InvalidInput(f"It is one line of 1 to {longest} characters.", place=("body", field))
