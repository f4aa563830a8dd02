"""The access log's record: who read and wrote what."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.lineage.ids import NodeId


class Operation(StrEnum):
    """What was done, or refused."""

    WRITE = "write"
    CLEAR = "clear"
    SEAL = "seal"
    PATCH = "patch"
    TRACE_WRITE = "trace_write"
    CORE_WRITE = "core_write"
    READ = "read"
    READ_NODE = "read_node"
    INHERITED = "inherited"
    SEARCH = "search"
    WORKING_CONTEXT = "working_context"
    TRACE_READ = "trace_read"
    TRACE_SEARCH = "trace_search"
    CHECKPOINT_READ = "checkpoint_read"
    CHECKPOINT_WRITE = "checkpoint_write"
    TOKEN = "token"  # noqa: S105  (what is done, not a secret)
    NOTE_WRITE = "note_write"
    ARCHIVAL_READ = "archival_read"
    ARCHIVAL_SEARCH = "archival_search"
    DAILY_NOTE_WRITE = "daily_note_write"
    DAILY_NOTE_READ = "daily_note_read"
    RECALL_SEARCH = "recall_search"
    SESSION = "session"
    MOVEMENT = "movement"


@dataclass(frozen=True, slots=True)
class Touched:
    """An entry that a record tells of, and the node it comes from (None: a trace step of none)."""

    id: str
    node: str | None


@dataclass(frozen=True, slots=True)
class Access:
    """One record, before the ledger gives it its instant.

    `reader` is the claim as sent (None: an operator), `target` the node asked, `refusal` the slug
    of the problem where it was refused.
    """

    checkpoint: str
    operation: Operation
    reader: str | None
    target: NodeId | None
    query: str | None = None
    entries: tuple[Touched, ...] = ()
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """One record as the ledger holds it."""

    id: str
    at: datetime
    access: Access
