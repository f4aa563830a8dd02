"""An entry: one memory text with metadata, immutable once accepted."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

Metadata: TypeAlias = Mapping[str, Any]


class Collection(StrEnum):
    """What an entry is; a search stays within one collection."""

    NODE_SCOPE = "node_scope"
    REACT_STEP = "react_step"
    REFERENCE = "reference"
    DAILY_NOTE = "daily_note"


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry as a writer sends it."""

    text: str
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted entry, as the ledger holds it.

    `node` is a name, or None for a trace step that came without a claim. `seq` is its place in
    the checkpoint's ledger; listings go by (`created_at`, `seq`). `refused` is why the archive
    will not have it, `passage_id` what an archive elsewhere calls it. `superseded_by` is the id of
    the entry that took its place: it stays readable, but no search and no listing shows it.
    """

    id: str
    checkpoint: str
    collection: Collection
    node: str | None
    text: str
    metadata: Metadata
    created_at: datetime
    seq: int
    sha256: bytes
    indexed: bool
    refused: str | None
    passage_id: str | None = None
    superseded_by: str | None = None

    @property
    def pending(self) -> bool:
        """True while the archive still has to take the entry."""
        return not self.indexed and self.refused is None and self.superseded_by is None

    @property
    def node_id(self) -> str | None:
        """The node's global id."""
        return None if self.node is None else f"{self.checkpoint}.{self.node}"

    @property
    def order(self) -> tuple[datetime, int]:
        """The key by which entries are listed and ties of a search are broken: oldest first."""
        return (self.created_at, self.seq)


def text_digest(text: str) -> bytes:
    """Return the SHA-256 of the text's UTF-8 bytes, 32 bytes."""
    return hashlib.sha256(text.encode()).digest()


def node_digest(digests: Iterable[bytes]) -> str:
    """Return the SHA-256 over a node's raw entry digests in listing order, in hex."""
    whole = hashlib.sha256()
    for digest in digests:
        whole.update(digest)
    return whole.hexdigest()
