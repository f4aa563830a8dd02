"""Core memory as people read it: four sections, in JSON and in Markdown the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.layers.errors import LineMismatch
from app.layers.markdown.blocks import Kind, blocks
from app.layers.markdown.fences import set_aside
from app.layers.markdown.lines import lines_of, newline_of
from app.layers.sections import Sections, render, section_text
from app.layers.words import count_words

HEADING = "Core Memory"
DEFAULT_MAX_WORDS = 1_000


class Section(StrEnum):
    """A section of core memory, in the order in which they are shown."""

    IDENTITY = "identity"
    USER = "user"
    ACTIVE_CONTEXT = "active-context"
    QUICK_REFERENCE = "quick-reference"

    @property
    def title(self) -> str:  # type: ignore[override]  # the words of its heading, not str.title()
        """The words of its heading."""
        return " ".join(word.capitalize() for word in self.value.split("-"))

    @property
    def block(self) -> str:
        """The label of the block that holds it."""
        return BLOCKS[self]


BLOCKS = {
    Section.IDENTITY: "persona",
    Section.USER: "human",
    Section.ACTIVE_CONTEXT: "active_context",
    Section.QUICK_REFERENCE: "quick_reference",
}
BY_TITLE = {section.title: section for section in Section}


def render_core(texts: Mapping[Section, str]) -> str:
    """Return core memory as Markdown; a section left out is empty."""
    return render(HEADING, {section.title: texts.get(section, "") for section in Section})


def core_words(texts: Mapping[Section, str]) -> int:
    """Return how many words the sections count for; their headings do not."""
    return sum(count_words(text) for text in texts.values())


def said_by(bodies: Mapping[Section, str]) -> dict[Section, str]:
    """Return what the sections of a file say, given the bodies that stand below their headings."""
    return {section: section_text(body) for section, body in bodies.items()}


@dataclass(frozen=True, slots=True)
class CoreDocument:
    """A `core.md` as somebody wrote it; what no section holds stays where it is."""

    document: Sections

    @classmethod
    def read(cls, text: str) -> "CoreDocument":
        """Read a file's text."""
        return cls(Sections.read(text, BY_TITLE))

    def __str__(self) -> str:
        return str(self.document)

    @property
    def bodies(self) -> dict[Section, str]:
        """The text below each heading, byte for byte; a section that is not there is empty."""
        found = self.document.bodies
        return {section: found.get(section.title, "") for section in Section}

    @property
    def texts(self) -> dict[Section, str]:
        """What each section says, as the service holds it."""
        return said_by(self.bodies)

    @property
    def other_words(self) -> int:
        """How many words are in no section; the document's own heading does not count."""
        parts = [part for part in self.document.parts if part.title is None]
        rest = sum(count_words(part.head) + count_words(section_text(part.body)) for part in parts)
        heading = self.document.first_heading
        return rest - count_words(heading) if heading.casefold() == HEADING.casefold() else rest

    def with_bodies(self, bodies: Mapping[Section, str]) -> "CoreDocument":
        """Return the document with other text below these headings."""
        return CoreDocument(
            self.document.with_bodies({section.title: body for section, body in bodies.items()})
        )


def append_line(text: str, line: str) -> str:
    """Return a section's text with a line at its end; one that is there already changes nothing.

    An indented one is always appended: what it says depends on what it stands below.
    """
    if not text.strip():
        return line
    indented = line[:1].isspace()
    if not indented and line in _lines_at_the_margin(text):
        return text
    newline = newline_of(text)
    ended = text if text.endswith("\n") else f"{text}{newline}"
    # Without a blank line it would belong to the list item above it, as an indented one is to do.
    in_list = blocks(ended)[-1].kind is Kind.ITEM and not indented
    apart = in_list and len(blocks(ended + line)) == len(blocks(ended))
    return f"{ended}{newline if apart else ''}{line}"


def _lines_at_the_margin(text: str) -> list[str]:
    """Return the lines that say something by themselves: those of fences and comments do not."""
    lines = lines_of(text)
    return [
        line.rstrip("\r\n")
        for line, aside in zip(lines, set_aside(lines), strict=True)
        if not aside and not line[:1].isspace()
    ]


def replace_line(text: str, old: str, new: str) -> str:
    """Return a section's text with one line in the place of another.

    LineMismatch unless exactly one line is `old`.
    """
    lines = lines_of(text)
    places = [at for at, line in enumerate(lines) if line.rstrip("\r\n") == old]
    if len(places) != 1:
        raise LineMismatch(len(places))
    end = lines[places[0]][len(old) :]
    lines[places[0]] = f"{new}{end}"
    return "".join(lines)
