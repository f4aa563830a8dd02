"""Core memory: the blocks that are always in context."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.lineage.json_rules import check_object, compact
from app.lineage.texts import check_size

PERSONA, HUMAN, CONTEXT = "persona", "human", "ari_context"
ACTIVE_CONTEXT, QUICK_REFERENCE = "active_context", "quick_reference"
EMPTY_TEXTS = {PERSONA: "", HUMAN: "", ACTIVE_CONTEXT: "", QUICK_REFERENCE: ""}
EMPTY_BLOCKS = EMPTY_TEXTS | {CONTEXT: "{}"}


@dataclass(frozen=True, slots=True)
class CoreMemory:
    """The texts by label, empty until set, the facts, and versions, which count changes.

    `versions` holds those of the blocks that were ever set, each the one that it was set in.
    """

    texts: Mapping[str, str]
    context: Mapping[str, Any]
    version: int
    versions: Mapping[str, int]

    @property
    def etag(self) -> str:
        """The version as an entity tag."""
        return f'"{self.version}"'

    @property
    def markdown_etag(self) -> str:
        """The entity tag of the same version in Markdown: other bytes, so another tag."""
        return f'"{self.version}-markdown"'


@dataclass(frozen=True, slots=True)
class CoreChange:
    """The texts to set by label, others stay; `context` is replaced whole, None leaves it."""

    texts: Mapping[str, str]
    context: Mapping[str, Any] | None = None

    def blocks(self, *, max_bytes: int) -> dict[str, str]:
        """Return the blocks to store by label; TooLarge or InvalidInput where one may not be."""
        blocks = dict(self.texts)
        for label, text in blocks.items():
            check_size(text, max_bytes=max_bytes, what=label)
        if self.context is not None:
            check_object(self.context, place=("body", "context"), max_bytes=max_bytes)
            blocks[CONTEXT] = compact(self.context)
        return blocks

    def said(self) -> dict[str, str]:
        """Return what the blocks say, the facts a line each, by the name that callers use."""
        facts = {} if self.context is None else {"context": "\n".join(_lines(self.context))}
        return dict(self.texts) | facts


def _lines(context: Mapping[str, Any]) -> list[str]:
    """Return each scalar behind its key, without recursion: what is read here is not checked."""
    lines: list[str] = []
    waiting: list[tuple[str, Any]] = list(context.items())
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend(value.items())
        elif isinstance(value, list):
            waiting.extend((key, inner) for inner in value)
        else:
            lines.append(f"{key}: {value}")
    return lines
