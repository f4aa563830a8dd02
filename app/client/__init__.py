"""A client of the service over HTTP; it imports nothing of the service itself.

Workers use LineageMemory or AsyncLineageMemory, or the five calls of ari's memory skill by their
names; the command line uses Service.
"""

from app.client.answers import Entry, Found, Hit, Node, WorkingContext
from app.client.ari import (
    add_memory,
    clear_node_memory,
    default_memory,
    get_experiment_context,
    get_node_memory,
    search_memory,
)
from app.client.async_worker import AsyncLineageMemory
from app.client.connection import Answer, NotTheService, Refused, Unreachable
from app.client.environment import NotConfigured
from app.client.errors import (
    CowViolation,
    CurrentNodeRequired,
    InvalidInput,
    NodeConflict,
    NodeSealed,
    Problem,
    ScopeViolation,
    StaleToken,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnknownCheckpoint,
    UnknownNode,
)
from app.client.layer_answers import (
    CoreMemory,
    DailyNote,
    Note,
    NoteHit,
    NotesFound,
    Recalled,
    RecallHit,
    Section,
    Session,
)
from app.client.layers import Layers
from app.client.movements import Movement, Movements
from app.client.service import Service
from app.client.spelling import BadSegment
from app.client.worker import LineageMemory

__all__ = [
    "Answer",
    "AsyncLineageMemory",
    "BadSegment",
    "CoreMemory",
    "CowViolation",
    "CurrentNodeRequired",
    "DailyNote",
    "Entry",
    "Found",
    "Hit",
    "InvalidInput",
    "Layers",
    "LineageMemory",
    "Movement",
    "Movements",
    "Node",
    "NodeConflict",
    "NodeSealed",
    "NotConfigured",
    "NotTheService",
    "Note",
    "NoteHit",
    "NotesFound",
    "Problem",
    "RecallHit",
    "Recalled",
    "Refused",
    "ScopeViolation",
    "Section",
    "Service",
    "Session",
    "StaleToken",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
    "UnknownCheckpoint",
    "UnknownNode",
    "Unreachable",
    "WorkingContext",
    "add_memory",
    "clear_node_memory",
    "default_memory",
    "get_experiment_context",
    "get_node_memory",
    "search_memory",
]
