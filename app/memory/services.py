"""What the use cases work with, put together once by the application."""

from dataclasses import dataclass

from app.archive.port import Archive
from app.db.ledger import Ledger
from app.embedding.port import Embedder
from app.memory.access_recorder import AccessRecorder
from app.memory.indexer import Indexer


@dataclass(frozen=True, slots=True)
class Limits:
    """The configured limits, in bytes and seconds."""

    max_text_bytes: int
    index_wait_s: float


@dataclass(frozen=True, slots=True)
class Services:
    """The ledger, the archive, the embedder and what runs beside them."""

    ledger: Ledger
    archive: Archive
    embedder: Embedder
    accesses: AccessRecorder
    indexer: Indexer
    limits: Limits
