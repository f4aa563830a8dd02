"""A Markdown document with `##` sections: found, read and changed without touching the rest."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.layers.markdown.fences import set_aside
from app.layers.markdown.lines import BOM, lines_of, newline_of
from app.layers.markdown.shields import shielded, unshielded

# A section begins at the margin: an indented heading belongs to the text that it is in.
BEGINS = re.compile(r"(#{1,2})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\r?\n?")


@dataclass(frozen=True, slots=True)
class Part:
    """A heading line (empty before the first one) and all up to the next, byte for byte.

    `title` is the heading's words where it is one of the document's sections, else None.
    """

    title: str | None
    head: str
    body: str


@dataclass(frozen=True, slots=True)
class Sections:
    """A document in parts; put together they are the document."""

    parts: Sequence[Part]

    @classmethod
    def read(cls, text: str, titles: Iterable[str]) -> "Sections":
        """Read a document that knows these titles, in any case; a second one of a name is text."""
        known = {title.casefold(): title for title in titles}
        parts = [Part(None, "", "")]
        for line, heading in _headings(text):
            if heading is None:
                last = parts[-1]
                parts[-1] = replace(last, body=last.body + line)
                continue
            level, words = heading
            title = known.pop(words.casefold(), None) if level == len("##") else None
            parts.append(Part(title, line, ""))
        return cls(parts)

    def __str__(self) -> str:
        return "".join(part.head + part.body for part in self.parts)

    @property
    def bodies(self) -> dict[str, str]:
        """The bodies of the sections that are there, by title, byte for byte."""
        return {part.title: part.body for part in self.parts if part.title is not None}

    @property
    def rest(self) -> str:
        """All that belongs to no section."""
        return "".join(part.head + part.body for part in self.parts if part.title is None)

    @property
    def first_heading(self) -> str:
        """The words of the first heading of level 1, empty where there is none."""
        for part in self.parts:
            found = BEGINS.fullmatch(part.head)
            if found and len(found[1]) == 1:
                return found[2]
        return ""

    def with_bodies(self, bodies: Mapping[str, str]) -> "Sections":
        """Return the document with other bodies; a section that is missing comes at its end."""
        newline = newline_of(str(self))
        parts = [
            part if part.title is None else _with_body(part, bodies.get(part.title), newline)
            for part in self.parts
        ]
        parts = [*(_with_end(part, newline) for part in parts[:-1]), parts[-1]]
        there = {part.title for part in parts}
        for title, body in bodies.items():
            if title not in there and body.strip():
                parts = [*_ended(parts, newline), Part(title, f"## {title}{newline}", body)]
        return Sections(parts)


def render(heading: str, sections: Mapping[str, str]) -> str:
    """Return a document of these sections, each text between empty lines."""
    written = [f"# {heading}\n"]
    for title, text in sections.items():
        written.append(f"\n## {title}\n")
        if body := body_text(text):
            written.append(f"\n{shielded(body)}\n")
    return "".join(written)


def body_text(body: str) -> str:
    """Return a body without the blank lines around it."""
    lines = lines_of(body)
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "".join(lines).rstrip("\r\n")


def section_text(body: str) -> str:
    """Return what a body says: without blank lines around it and without shields."""
    return unshielded(body_text(body))


def _headings(text: str) -> Iterator[tuple[str, tuple[int, str] | None]]:
    """Yield each line, with level and words where it is a heading, in no fence and no comment."""
    lines = lines_of(text)
    for line, aside in zip(lines, set_aside(lines), strict=True):
        found = None if aside else BEGINS.fullmatch(line.removeprefix(BOM))
        yield line, (len(found[1]), found[2]) if found else None


def _with_body(part: Part, body: str | None, newline: str) -> Part:
    """Return a part with another body, below a heading whose line may not have ended yet."""
    if body is None or body == part.body:
        return part
    head = part.head if part.head.endswith("\n") else part.head + newline
    return replace(part, head=head, body=body)


def _with_end(part: Part, newline: str) -> Part:
    """Return a part whose last line ends, for a heading stands below it."""
    text = part.head + part.body
    return replace(part, body=part.body + newline) if text and not text.endswith("\n") else part


def _ended(parts: Sequence[Part], newline: str) -> list[Part]:
    """Return parts that end with an empty line."""
    *before, last = parts
    text = last.head + last.body
    if not text:
        return [*before, last]
    missing = "" if text.endswith("\n") else newline
    gap = "" if text.endswith(("\n\n", "\n\r\n")) else newline
    return [*before, replace(last, body=last.body + missing + gap)]
