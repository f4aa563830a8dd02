"""A small client for the tests, one method for each call of the HTTP contract.

Every method returns the plain response, so that a test can ask for any part of it; `answer` turns
the response of a call that must succeed into its JSON. An argument that is None is not sent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, Final, Self

import httpx

Json = dict[str, Any]

CURRENT_NODE = "X-Current-Node"
GZIP = "application/gzip"


class _Own(Enum):
    NODE = "the node in the path"


OWN: Final = _Own.NODE
"""The claim of a worker that behaves: it executes the node that it writes to."""

Claim = str | None | _Own
"""Which node the request says it executes; None sends no such header."""


def answer(response: httpx.Response) -> Json:
    """Return the JSON of a successful response; AssertionError with the body otherwise."""
    request = response.request
    assert response.is_success, (
        f"{request.method} {request.url} answered {response.status_code}: {response.text}"
    )
    body = response.json()
    assert isinstance(body, dict)
    return body


def walk(page: Callable[[str | None], httpx.Response]) -> Iterator[Any]:
    """Yield the items of a list page by page; `page` fetches the one at a cursor."""
    cursor: str | None = None
    while True:
        body = answer(page(cursor))
        yield from body["items"]
        cursor = body["next_cursor"]
        if cursor is None:
            return


class Api:
    """The service as its callers see it, with one set of credentials."""

    def __init__(self, base_url: str, *, bearer: str | None = None) -> None:
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        # The environment's proxies have no say, and a redirect is an answer to look at.
        self.http = httpx.Client(base_url=base_url, headers=headers, timeout=30, trust_env=False)

    def with_bearer(self, bearer: str | None) -> "Api":
        """Return a client of the same service with other credentials; close it as well."""
        return Api(str(self.http.base_url), bearer=bearer)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        claim: str | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        json: object = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Send any request, a wrong one too: `content` is a body sent as it is.

        `claim` is the current node, `key` the Idempotency-Key.
        """
        sent = dict(headers or {})
        if claim is not None:
            sent[CURRENT_NODE] = claim
        if key is not None:
            sent["Idempotency-Key"] = key
        return self.http.request(
            method, path, headers=sent, params=params, json=json, content=content
        )

    # Checkpoints

    def checkpoint(
        self,
        checkpoint: str | None = None,
        *,
        path: str | None = None,
        name: str | None = None,
        metadata: Json | None = None,
        key: str | None = None,
    ) -> httpx.Response:
        """Create a checkpoint."""
        body = _given(id=checkpoint, path=path, name=name, metadata=metadata)
        return self.request("POST", "/checkpoints", json=body, key=key)

    def checkpoints(self, *, cursor: str | None = None, limit: int | None = None) -> httpx.Response:
        return self.request("GET", "/checkpoints", params=_given(cursor=cursor, limit=limit))

    def get_checkpoint(self, checkpoint: str) -> httpx.Response:
        return self.request("GET", f"/checkpoints/{checkpoint}")

    def purge(self, checkpoint: str) -> httpx.Response:
        return self.request("DELETE", f"/checkpoints/{checkpoint}")

    def reindex(self, checkpoint: str) -> httpx.Response:
        return self.request("POST", f"/checkpoints/{checkpoint}/reindex")

    def tree(self, checkpoint: str, *, format: str | None = None) -> httpx.Response:  # noqa: A002
        """Ask for the tree; `format` is the contract's word for json or mermaid."""
        return self.request("GET", f"/checkpoints/{checkpoint}/tree", params=_given(format=format))

    def backup(self, checkpoint: str) -> httpx.Response:
        """Take a snapshot; its bytes are the answer's `content`."""
        return self.request("GET", f"/checkpoints/{checkpoint}/backup")

    def restore(
        self,
        checkpoint: str,
        packed: bytes | Iterator[bytes],
        *,
        on_conflict: str | None = None,
        media_type: str = GZIP,
    ) -> httpx.Response:
        """Send a packed snapshot; an iterator is sent in chunks, without its length."""
        return self.http.post(
            f"/checkpoints/{checkpoint}/restore",
            params=_given(on_conflict=on_conflict),
            headers={"Content-Type": media_type},
            content=packed,
        )

    def resume(self, checkpoint: str, packed: bytes | None = None) -> httpx.Response:
        """Resume from a packed snapshot, or from the one that the service keeps."""
        headers = {} if packed is None else {"Content-Type": GZIP}
        path = f"/checkpoints/{checkpoint}/resume"
        return self.request("POST", path, headers=headers, content=packed)

    def keep_snapshot(self, checkpoint: str) -> httpx.Response:
        """Write the snapshot file of a checkpoint now."""
        return self.request("POST", f"/checkpoints/{checkpoint}/snapshot")

    def access_log(
        self, checkpoint: str, *, cursor: str | None = None, limit: int | None = None
    ) -> httpx.Response:
        path = f"/checkpoints/{checkpoint}/access-log"
        return self.request("GET", path, params=_given(cursor=cursor, limit=limit))

    # Nodes

    def node(
        self,
        checkpoint: str,
        name: str,
        parent: str | None = None,
        *,
        eval_summary: str | None = None,
        metadata: Json | None = None,
        key: str | None = None,
    ) -> httpx.Response:
        """Create a node below `parent` (an id or a name), or a root."""
        body = _given(name=name, parent=parent, eval_summary=eval_summary, metadata=metadata)
        return self.request("POST", f"/checkpoints/{checkpoint}/nodes", json=body, key=key)

    def nodes(
        self, checkpoint: str, *, cursor: str | None = None, limit: int | None = None
    ) -> httpx.Response:
        path = f"/checkpoints/{checkpoint}/nodes"
        return self.request("GET", path, params=_given(cursor=cursor, limit=limit))

    def get_node(self, node: str, *, claim: str | None = None) -> httpx.Response:
        return self.request("GET", f"/nodes/{node}", claim=claim)

    def patch_node(
        self,
        node: str,
        *,
        eval_summary: str | None = None,
        metadata: Json | None = None,
        claim: Claim = OWN,
    ) -> httpx.Response:
        body = _given(eval_summary=eval_summary, metadata=metadata)
        return self.request("PATCH", f"/nodes/{node}", claim=_claimed(claim, node), json=body)

    def token(self, node: str) -> httpx.Response:
        return self.request("POST", f"/nodes/{node}/token")

    def seal(self, node: str, *, claim: Claim = OWN) -> httpx.Response:
        return self.request("POST", f"/nodes/{node}/seal", claim=_claimed(claim, node))

    # Node memory

    def write(
        self,
        node: str,
        text: str,
        *,
        metadata: Json | None = None,
        claim: Claim = OWN,
        key: str | None = None,
    ) -> httpx.Response:
        return self.request(
            "POST",
            f"/nodes/{node}/memory",
            claim=_claimed(claim, node),
            key=key,
            json=_given(text=text, metadata=metadata),
        )

    def write_batch(
        self,
        node: str,
        entries: Sequence[str | Json],
        *,
        claim: Claim = OWN,
        key: str | None = None,
    ) -> httpx.Response:
        """Write entries all or none; a bare text is an entry without metadata."""
        drafts = [{"text": entry} if isinstance(entry, str) else entry for entry in entries]
        return self.request(
            "POST",
            f"/nodes/{node}/memory/batch",
            claim=_claimed(claim, node),
            key=key,
            json={"entries": drafts},
        )

    def entries(
        self,
        node: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        """List the node's own entries."""
        params = _given(cursor=cursor, limit=limit)
        return self.request("GET", f"/nodes/{node}/memory", claim=claim, params=params)

    def inherited(
        self,
        node: str,
        *,
        metadata: Mapping[str, str] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        """List the entries of the lineage; `metadata` holds the filters as a URL spells them."""
        params = _given(cursor=cursor, limit=limit) | _metadata_filters(metadata)
        return self.request("GET", f"/nodes/{node}/memory/inherited", claim=claim, params=params)

    def clear(self, node: str, *, claim: Claim = OWN) -> httpx.Response:
        return self.request("DELETE", f"/nodes/{node}/memory", claim=_claimed(claim, node))

    def search(
        self,
        node: str,
        query: str | None = None,
        *,
        limit: int | None = None,
        include_self: bool | None = None,
        ancestor_ids: Sequence[str] | None = None,
        metadata: Json | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        """Search by POST; `metadata` is the `filter`."""
        body = _given(
            query=query,
            limit=limit,
            include_self=include_self,
            ancestor_ids=ancestor_ids,
            filter=metadata,
        )
        return self.request("POST", f"/nodes/{node}/memory/search", claim=claim, json=body)

    def search_by_get(
        self,
        node: str,
        query: str | None = None,
        *,
        limit: int | None = None,
        include_self: bool | None = None,
        ancestor_ids: Sequence[str] | None = None,
        metadata: Mapping[str, str] | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        """Search by GET; `metadata` holds the filters as a URL spells them."""
        params = _given(
            query=query, limit=limit, include_self=include_self, ancestor_ids=ancestor_ids
        ) | _metadata_filters(metadata)
        return self.request("GET", f"/nodes/{node}/memory/search", claim=claim, params=params)

    def working_context(
        self,
        node: str,
        query: str | None = None,
        *,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        params = _given(query=query, limit=limit)
        return self.request("GET", f"/nodes/{node}/working-context", claim=claim, params=params)

    # Trace and core memory

    def trace_step(
        self,
        checkpoint: str,
        text: str,
        *,
        metadata: Json | None = None,
        claim: str | None = None,
        key: str | None = None,
    ) -> httpx.Response:
        """Add a step to the trace; the claim is stored as its node."""
        body = _given(text=text, metadata=metadata)
        path = f"/checkpoints/{checkpoint}/trace"
        return self.request("POST", path, claim=claim, key=key, json=body)

    def trace(
        self,
        checkpoint: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        params = _given(cursor=cursor, limit=limit)
        return self.request("GET", f"/checkpoints/{checkpoint}/trace", claim=claim, params=params)

    def search_trace(
        self,
        checkpoint: str,
        query: str,
        *,
        limit: int | None = None,
        metadata: Json | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        body = _given(query=query, limit=limit, filter=metadata)
        path = f"/checkpoints/{checkpoint}/trace/search"
        return self.request("POST", path, claim=claim, json=body)

    def put_core_memory(
        self,
        checkpoint: str,
        *,
        persona: str | None = None,
        human: str | None = None,
        active_context: str | None = None,
        quick_reference: str | None = None,
        context: Json | None = None,
        if_match: str | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        body = _given(
            persona=persona,
            human=human,
            active_context=active_context,
            quick_reference=quick_reference,
            context=context,
        )
        path = f"/checkpoints/{checkpoint}/core-memory"
        headers = _if_match(if_match)
        return self.request("PUT", path, headers=headers, json=body, claim=claim)

    def core_memory(self, checkpoint: str, *, claim: str | None = None) -> httpx.Response:
        return self.request("GET", f"/checkpoints/{checkpoint}/core-memory", claim=claim)

    def core_section(
        self, checkpoint: str, section: str, *, claim: str | None = None
    ) -> httpx.Response:
        path = f"/checkpoints/{checkpoint}/core-memory/sections/{section}"
        return self.request("GET", path, claim=claim)

    def put_core_section(
        self,
        checkpoint: str,
        section: str,
        text: str,
        *,
        if_match: str | None,
        claim: str | None = None,
    ) -> httpx.Response:
        path = f"/checkpoints/{checkpoint}/core-memory/sections/{section}"
        headers = _if_match(if_match)
        return self.request("PUT", path, headers=headers, json={"text": text}, claim=claim)

    def edit_core_section(
        self,
        checkpoint: str,
        section: str,
        edit: Json,
        *,
        if_match: str | None,
        claim: str | None = None,
    ) -> httpx.Response:
        """Append or replace a line."""
        path = f"/checkpoints/{checkpoint}/core-memory/sections/{section}"
        headers = _if_match(if_match)
        return self.request("PATCH", path, headers=headers, json=edit, claim=claim)

    def context(self, checkpoint: str, *, claim: str | None = None) -> httpx.Response:
        return self.request("GET", f"/checkpoints/{checkpoint}/context", claim=claim)

    # Movements

    def move(
        self,
        checkpoint: str,
        movement: str,
        *,
        dry_run: bool | None = None,
        claim: str | None = None,
        **wanted: object,
    ) -> httpx.Response:
        """Call demote, promote, consolidate, trim or heartbeat; without `wanted`, with no body."""
        path = f"/checkpoints/{checkpoint}/{movement}"
        params = {} if dry_run is None else {"dry_run": str(dry_run).lower()}
        return self.request("POST", path, claim=claim, params=params, json=wanted or None)

    # Notes and what happened

    def write_note(
        self,
        checkpoint: str,
        topic: str = "learnings",
        *,
        claim: str | None = None,
        key: str | None = None,
        **content: object,
    ) -> httpx.Response:
        """Write a note: `title` and `summary` with other parts, or the whole `text`."""
        path = f"/checkpoints/{checkpoint}/archival"
        body = {"topic": topic, **content}
        return self.request("POST", path, claim=claim, key=key, json=body)

    def correct_note(
        self,
        checkpoint: str,
        note: str,
        *,
        if_match: str | None = "*",
        claim: str | None = None,
        **content: object,
    ) -> httpx.Response:
        path = f"/checkpoints/{checkpoint}/archival/{note}"
        headers = _if_match(if_match)
        return self.request("PUT", path, headers=headers, json=content, claim=claim)

    def get_note(self, checkpoint: str, note: str, *, claim: str | None = None) -> httpx.Response:
        return self.request("GET", f"/checkpoints/{checkpoint}/archival/{note}", claim=claim)

    def notes(
        self,
        checkpoint: str,
        *,
        topic: str | None = None,
        name: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        params = _given(topic=topic, name=name, cursor=cursor, limit=limit)
        path = f"/checkpoints/{checkpoint}/archival"
        return self.request("GET", path, params=params, claim=claim)

    def search_notes(
        self,
        checkpoint: str,
        query: str,
        *,
        limit: int | None = None,
        topic: str | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        body = _given(query=query, limit=limit, topic=topic)
        path = f"/checkpoints/{checkpoint}/archival/search"
        return self.request("POST", path, json=body, claim=claim)

    def daily_note(
        self,
        checkpoint: str,
        text: str,
        *,
        date: str | None = None,
        at: str | None = None,
        heading: str | None = None,
        claim: str | None = None,
        key: str | None = None,
    ) -> httpx.Response:
        """Write a daily note."""
        body = _given(text=text, date=date, at=at, heading=heading)
        path = f"/checkpoints/{checkpoint}/notes"
        return self.request("POST", path, claim=claim, key=key, json=body)

    def daily_notes(
        self,
        checkpoint: str,
        *,
        date: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        params = _given(date=date, cursor=cursor, limit=limit)
        return self.request("GET", f"/checkpoints/{checkpoint}/notes", params=params, claim=claim)

    def search_recall(
        self,
        checkpoint: str,
        query: str,
        *,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        body = _given(query=query, limit=limit)
        path = f"/checkpoints/{checkpoint}/recall/search"
        return self.request("POST", path, json=body, claim=claim)

    def session(
        self,
        checkpoint: str,
        query: str | None = None,
        *,
        limit: int | None = None,
        claim: str | None = None,
    ) -> httpx.Response:
        """Load what a session starts with."""
        params = _given(query=query, limit=limit)
        return self.request("GET", f"/checkpoints/{checkpoint}/session", params=params, claim=claim)

    # The service itself

    def healthz(self) -> httpx.Response:
        return self.request("GET", "/healthz")

    def readyz(self) -> httpx.Response:
        return self.request("GET", "/readyz")

    def metrics(self) -> httpx.Response:
        return self.request("GET", "/metrics")


def _if_match(etag: str | None) -> dict[str, str]:
    return {} if etag is None else {"If-Match": etag}


def _given(**values: object) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _metadata_filters(metadata: Mapping[str, str] | None) -> Json:
    return {f"metadata.{name}": value for name, value in (metadata or {}).items()}


def _claimed(claim: Claim, node: str) -> str | None:
    return node if isinstance(claim, _Own) else claim
