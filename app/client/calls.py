"""The calls of a worker as values: what is sent, and how its answer is read.

They are built here without any I/O, so that the sync and the async client cannot differ.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from app.client.answers import Entry, Found, Json, Node, Page, WorkingContext
from app.client.environment import CURRENT_NODE, CheckpointPath, NotConfigured, global_id
from app.client.layer_answers import NotesFound, Recalled, Session
from app.client.spelling import body_of, path_of

T = TypeVar("T")

PAGE = 1_000
CONCLUSIONS = {"type": "result_summary"}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One call. `params` and `body` are as sent, `read` makes the result of the JSON answered."""

    method: str
    path: str
    read: Callable[[Any], T]
    claim: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    key: str | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers: the same for every attempt, or a repeat would be stored twice."""
        headers = {"Content-Type": "application/json"} if self.body is not None else {}
        if self.claim is not None:
            headers["X-Current-Node"] = self.claim
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers

    def content(self) -> bytes | None:
        """Return the body; TypeError for what JSON has no form for."""
        return None if self.body is None else body_of(self.body)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one worker, whose current node is claimed on each, reads too."""

    checkpoint: str
    current_node: str | None

    def add_memory(self, text: str, metadata: Json | None, node_id: str | None) -> Call[Entry]:
        """Write an entry. Where the node is not the current one, the service refuses."""
        return self._create(f"{self._node(node_id)}/memory", _entry(text, metadata))

    def node_page(self, node_id: str | None, cursor: str | None) -> Call[Page]:
        """List a node's own entries."""
        return self._page(f"{self._node(node_id)}/memory", cursor)

    def inherited_page(
        self, node_id: str | None, cursor: str | None, metadata: Json | None
    ) -> Call[Page]:
        """List the entries of a node's lineage that match."""
        filters = {f"metadata.{name}": _spelt(value) for name, value in (metadata or {}).items()}
        return self._page(f"{self._node(node_id)}/memory/inherited", cursor, filters)

    def clear_node_memory(self, node_id: str | None) -> Call[int]:
        """Delete a node's own entries."""
        path = f"{self._node(node_id)}/memory"
        return Call("DELETE", path, _removed, self.claim)

    def search_memory(
        self,
        query: str | None,
        ancestor_ids: Sequence[str] | None,
        limit: int,
        *,
        include_self: bool,
        metadata: Json | None,
        node_id: str | None,
    ) -> Call[Found]:
        """Search a node's lineage; the node itself too where it is among those asked for."""
        node, wanted = self._target(node_id), list(ancestor_ids or ())
        named = node in [global_id(each, checkpoint=self.checkpoint) for each in wanted]
        body = {
            "query": query,
            "limit": limit,
            "include_self": include_self or named,
            "ancestor_ids": None if ancestor_ids is None else wanted,
            "filter": dict(metadata or {}),
        }
        path = f"{self._node(node)}/memory/search"
        return Call("POST", path, Found.read, self.claim, body=body)

    def working_context(
        self, query: str | None, limit: int, node_id: str | None
    ) -> Call[tuple[WorkingContext, str | None]]:
        """Load what a worker starts with, and the cursor of the conclusions that did not fit."""
        params = {"limit": str(limit)} | ({} if query is None else {"query": query})
        path = f"{self._node(node_id)}/working-context"
        return Call("GET", path, _started, self.claim, params)

    def experiment_context(self) -> Call[dict[str, Any]]:
        """Read the experiment's facts, which no node is needed for."""
        return Call("GET", f"{self._checkpoint}/context", _facts, self._claim_if_any)

    def add_trace_step(self, text: str, metadata: Json | None) -> Call[Entry]:
        """Write a step of the current node to the trace."""
        return self._create(f"{self._checkpoint}/trace", _entry(text, metadata))

    def trace_page(self, cursor: str | None) -> Call[Page]:
        """List the steps of the lineage and of no node."""
        return self._page(f"{self._checkpoint}/trace", cursor)

    def search_trace(self, query: str, limit: int, metadata: Json | None) -> Call[Found]:
        """Search the steps of the lineage and of no node."""
        body = {"query": query, "limit": limit, "filter": dict(metadata or {})}
        path = f"{self._checkpoint}/trace/search"
        return Call("POST", path, Found.read, self.claim, body=body)

    def session(self, query: str | None, limit: int) -> Call[Session]:
        """Load what a session starts with, which is the same for every node."""
        params = {"limit": str(limit)} | ({} if query is None else {"query": query})
        path = f"{self._checkpoint}/session"
        return Call("GET", path, Session.read, self._claim_if_any, params)

    def search_archival(self, query: str, limit: int, topic: str | None) -> Call[NotesFound]:
        """Search the notes, which are the same for every node."""
        body = {"query": query, "limit": limit, "topic": topic}
        path = f"{self._checkpoint}/archival/search"
        return Call("POST", path, NotesFound.read, self._claim_if_any, body=body)

    def search_recall(self, query: str, limit: int) -> Call[Recalled]:
        """Search the steps of the lineage and of no node, and the daily notes."""
        body = {"query": query, "limit": limit}
        path = f"{self._checkpoint}/recall/search"
        return Call("POST", path, Recalled.read, self.claim, body=body)

    def create_node(
        self, name: str, parent: str | None, eval_summary: str | None, metadata: Json | None
    ) -> Call[Node]:
        """Make a node; it is the tree's business, not the current node's, so nothing is claimed."""
        body = {
            "name": name,
            "parent": parent,
            "eval_summary": eval_summary,
            "metadata": dict(metadata or {}),
        }
        return Call("POST", f"{self._checkpoint}/nodes", Node.read, body=body, key=_fresh_key())

    @property
    def claim(self) -> str:
        """The current node's global id; NotConfigured without one."""
        if self.current_node is None:
            raise NotConfigured(
                f"{CURRENT_NODE} is not set: it is the node that this worker executes. "
                "Set it, or pass `current_node`."
            )
        return global_id(self.current_node, checkpoint=self.checkpoint)

    @property
    def _claim_if_any(self) -> str | None:
        return None if self.current_node is None else self.claim

    @property
    def _checkpoint(self) -> str:
        return path_of("checkpoints", self.checkpoint)

    def _node(self, node_id: str | None) -> str:
        return path_of("nodes", self._target(node_id))

    def _target(self, node_id: str | None) -> str:
        node = self.claim if node_id is None else node_id
        return global_id(node, checkpoint=self.checkpoint)

    def _create(self, path: str, body: Json) -> Call[Entry]:
        return Call("POST", path, Entry.read, self.claim, body=body, key=_fresh_key())

    def _page(
        self, path: str, cursor: str | None, filters: Mapping[str, str] | None = None
    ) -> Call[Page]:
        params = {"limit": str(PAGE), **(filters or {})}
        if cursor is not None:
            params["cursor"] = cursor
        return Call("GET", path, Page.read, self.claim, params)


def find_checkpoint(known: CheckpointPath) -> Call[str]:
    """Ask for the id of a path, which makes the checkpoint where it is new."""
    body = {"path": known.path}
    return Call("POST", "/checkpoints", _id, body=body)


def _entry(text: str, metadata: Json | None) -> Json:
    return {"text": text, "metadata": dict(metadata or {})}


def _spelt(value: Any) -> str:
    """Spell a scalar as the query string has it: compact JSON, but strings bare."""
    return value if isinstance(value, str) else json.dumps(value)


def _started(answer: Json) -> tuple[WorkingContext, str | None]:
    return WorkingContext.read(answer), answer["next_cursor"]


def _facts(answer: Any) -> dict[str, Any]:
    return _as(dict, answer)


def _removed(answer: Json) -> int:
    return _as(int, answer["removed"])


def _id(answer: Json) -> str:
    return _as(str, answer["id"])


def _as(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _fresh_key() -> str:
    return uuid.uuid4().hex
