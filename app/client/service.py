"""The service as its callers see it."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

import httpx
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

Answer: TypeAlias = dict[str, Any]

TIMEOUT_S = 60.0
# With waits that double up to 4 s: enough for a service that starts anew.
ATTEMPTS = 6
PASSING = {408, 429, 502, 503, 504}


class Unreachable(Exception):
    """Nothing answers at the address."""


class Refused(Exception):
    """The service answered with a problem document; the message is its detail."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        super().__init__(str(document.get("detail") or document))
        self.status = status
        self.document = document


class Service:
    """One service and one credential.

    Reads, and writes that carry an idempotency key, are repeated while the service is away: both
    have the same effect once or twice. Every call raises Refused and Unreachable.
    """

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        try:
            self._http = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_S)
        except httpx.InvalidURL as error:
            raise Unreachable(f"{url} is not a URL ({error}).") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def create_checkpoint(self, checkpoint: str, *, name: str | None = None) -> Answer:
        """Return the checkpoint, made if it was not there."""
        return self._send("POST", "/checkpoints", json={"id": checkpoint, "name": name})

    def get_checkpoint(self, checkpoint: str) -> Answer:
        """Return the checkpoint with its counts."""
        return self._send("GET", f"/checkpoints/{checkpoint}")

    def create_node(
        self,
        checkpoint: str,
        name: str,
        *,
        parent: str | None = None,
        eval_summary: str | None = None,
    ) -> Answer:
        """Return the node, made if it was not there."""
        body = {"name": name, "parent": parent, "eval_summary": eval_summary}
        return self._send("POST", f"/checkpoints/{checkpoint}/nodes", json=body)

    def write_batch(self, node: str, entries: Sequence[Answer], *, key: str) -> list[Answer]:
        """Store entries as the node's executor, once for each key; return them as accepted."""
        answer = self._send(
            "POST",
            f"/nodes/{node}/memory/batch",
            json={"entries": list(entries)},
            headers={"X-Current-Node": node, "Idempotency-Key": key},
        )
        items: list[Answer] = answer["items"]
        return items

    def search(
        self, node: str, query: str | None = None, *, limit: int = 5, include_self: bool = False
    ) -> Answer:
        """Search as the node's executor; without a query, by the node's direction."""
        body = {"query": query, "limit": limit, "include_self": include_self}
        headers = {"X-Current-Node": node}
        return self._send("POST", f"/nodes/{node}/memory/search", json=body, headers=headers)

    def inherited(self, node: str) -> list[Answer]:
        """Return the entries of the node's lineage, root first, every page of them."""
        items: list[Answer] = []
        params = {"limit": "1000"}
        while True:
            page = self._send(
                "GET",
                f"/nodes/{node}/memory/inherited",
                params=params,
                headers={"X-Current-Node": node},
            )
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            params["cursor"] = page["next_cursor"]

    def reindex(self, checkpoint: str) -> Answer:
        """Have every entry indexed anew; return the checkpoint, whose `pending` tells how far."""
        return self._send("POST", f"/checkpoints/{checkpoint}/reindex")

    def _send(self, method: str, path: str, **request: Any) -> Answer:
        attempts = Retrying(
            retry=retry_if_exception(_passes),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.25, max=4),
            reraise=True,
        )
        return attempts(self._send_once, method, path, **request)

    def _send_once(self, method: str, path: str, **request: Any) -> Answer:
        try:
            response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise Unreachable(
                f"{self._http.base_url} does not answer ({type(error).__name__})."
            ) from error
        if response.is_success:
            answer: Answer = response.json()
            return answer
        raise Refused(response.status_code, _document(response))


def _passes(error: BaseException) -> bool:
    """Tell whether a repeat may go well. Every call here has the same effect once or twice."""
    return isinstance(error, Unreachable) or (
        isinstance(error, Refused) and error.status in PASSING
    )


def _document(response: httpx.Response) -> Mapping[str, Any]:
    """Return the problem document, or what stands in its place where a proxy answered."""
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        document: Mapping[str, Any] = response.json()
        return document
    return {"detail": f"{response.status_code} {response.reason_phrase}"}
