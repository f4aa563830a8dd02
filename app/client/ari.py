"""The five calls of ari's memory skill, by their names, arguments and answers of today.

They use one client that is made when the first of them is called, and read the environment at each
call. Where the skill answered `{"ok": False, "error": …}`, they raise the errors of LineageMemory.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, TypedDict

from app.client.answers import Entry, Hit, Json
from app.client.worker import LineageMemory


class Added(TypedDict):
    """An entry was stored."""

    ok: Literal[True]
    id: str


class AriHit(TypedDict):
    """An entry that a search found; `node_id` is the node's name, as it was in the arguments."""

    entry_id: str
    node_id: str
    text: str
    metadata: Json
    score: float | None


class Results(TypedDict):
    """What a search found, best first."""

    results: list[AriHit]


class AriEntry(TypedDict):
    """One of a node's entries; `ts` is in seconds since 1970."""

    text: str
    metadata: Json
    ts: float


class Entries(TypedDict):
    """A node's entries, oldest first."""

    entries: list[AriEntry]


class Removed(TypedDict):
    """How many entries went."""

    removed: int


@cache
def default_memory() -> LineageMemory:
    """Return the client behind these calls; closing it is wanted at the process's end at most."""
    return LineageMemory()


def add_memory(node_id: str | None, text: str, metadata: Json | None = None) -> Added:
    """Store an entry on the current node, which `node_id` names again (None: whichever it is)."""
    return {"ok": True, "id": default_memory().add_memory(text, metadata, node_id).id}


def search_memory(query: str, ancestor_ids: Sequence[str] | None = None, limit: int = 5) -> Results:
    """Return the best entries of all ancestors, or of the nodes given: ancestors and oneself."""
    found = default_memory().search_memory(query, ancestor_ids, limit)
    return {"results": [_hit(hit) for hit in found.results]}


def get_node_memory(node_id: str | None = None) -> Entries:
    """Return what a node wrote: the current one, or one of its ancestors."""
    return {"entries": [_entry(entry) for entry in default_memory().get_node_memory(node_id)]}


def clear_node_memory(node_id: str | None = None) -> Removed:
    """Delete what the current node wrote."""
    return {"removed": default_memory().clear_node_memory(node_id)}


def get_experiment_context() -> dict[str, Any]:
    """Return the experiment's facts; `{}` until seeded."""
    return default_memory().get_experiment_context()


def _hit(hit: Hit) -> AriHit:
    return {
        "entry_id": hit.entry_id,
        "node_id": (hit.node or "").partition(".")[2],
        "text": hit.text,
        "metadata": hit.metadata,
        "score": hit.score,
    }


def _entry(entry: Entry) -> AriEntry:
    return {
        "text": entry.text,
        "metadata": entry.metadata,
        "ts": entry.created_at.timestamp(),
    }
