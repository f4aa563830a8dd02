"""Core memory: the blocks that are always in context."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.lineage.json_rules import check_object, compact
from app.lineage.texts import check_size

PERSONA, HUMAN, CONTEXT = "persona", "human", "ari_context"


@dataclass(frozen=True, slots=True)
class CoreMemory:
    """The blocks, empty until set, and their version, which counts their changes."""

    persona: str
    human: str
    context: Mapping[str, Any]
    version: int

    @property
    def etag(self) -> str:
        """The version as an entity tag."""
        return f'"{self.version}"'


@dataclass(frozen=True, slots=True)
class CoreChange:
    """The blocks to set; None leaves one as it is, and `context` is replaced whole."""

    persona: str | None
    human: str | None
    context: Mapping[str, Any] | None

    def blocks(self, *, max_bytes: int) -> dict[str, str]:
        """Return the blocks to store by label; TooLarge or InvalidInput where one may not be."""
        texts = {PERSONA: self.persona, HUMAN: self.human}
        blocks = {label: text for label, text in texts.items() if text is not None}
        for label, text in blocks.items():
            check_size(text, max_bytes=max_bytes, what=label)
        if self.context is not None:
            check_object(self.context, place=("body", "context"), max_bytes=max_bytes)
            blocks[CONTEXT] = compact(self.context)
        return blocks
