"""What the service refuses, as errors to catch by name."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from app.client.connection import PROBLEM, Refused

MEMBERS = {"type", "title", "status", "detail", "request_id"}


class Problem(Refused):
    """The service refused; the message is the problem document's detail.

    Kinds that a worker may want to handle have a class of their own below. `document` is the whole.
    """

    def __init__(
        self, status: int, document: Mapping[str, Any], retry_after_s: float = 0.0
    ) -> None:
        super().__init__(status, document)
        self.retry_after_s = retry_after_s

    @property
    def slug(self) -> str:
        """The stable name of the problem, such as `scope-violation`; "" from a proxy."""
        return str(self.document.get("type", "")).removeprefix("/problems/")

    @property
    def title(self) -> str:
        """The kind of problem in words."""
        return str(self.document.get("title", ""))

    @property
    def detail(self) -> str:
        """What went wrong this time."""
        return str(self.document.get("detail", ""))

    @property
    def extra(self) -> Mapping[str, Any]:
        """What helps to mend it: `outside`, `errors`, `limit`, and the like."""
        return {name: value for name, value in self.document.items() if name not in MEMBERS}

    def __reduce__(self) -> tuple[Callable[..., "Problem"], tuple[Any, ...]]:
        # Pools of processes send errors home by pickle, which knows only the message otherwise.
        return type(self), (self.status, dict(self.document), self.retry_after_s)


class Unauthenticated(Problem):
    """The credential is missing or not known."""


class ScopeViolation(Problem):
    """Something outside of the node's lineage was asked for; `extra["outside"]` names it."""


class CowViolation(Problem):
    """A write to a node that is not the current one."""


class CurrentNodeRequired(Problem):
    """A write without a claim."""


class NodeSealed(Problem):
    """The node accepts no more writes."""


class StaleToken(Problem):
    """A newer token executes the node: this worker must stop."""


class UnknownNode(Problem):
    """No such node: the loop that grows the tree has not created it."""


class UnknownCheckpoint(Problem):
    """No such checkpoint."""


class NodeConflict(Problem):
    """The node is there with another parent."""


class InvalidInput(Problem):
    """The input breaks a rule; `extra["errors"]` says where and why."""


class TooLarge(Problem):
    """More bytes than `extra["limit"]`."""


class Unavailable(Problem):
    """The archive or the ledger did not answer until the deadline."""


KINDS: Mapping[str, type[Problem]] = {
    "unauthenticated": Unauthenticated,
    "scope-violation": ScopeViolation,
    "cow-violation": CowViolation,
    "current-node-required": CurrentNodeRequired,
    "node-sealed": NodeSealed,
    "stale-token": StaleToken,
    "unknown-node": UnknownNode,
    "unknown-checkpoint": UnknownCheckpoint,
    "node-conflict": NodeConflict,
    "invalid-input": InvalidInput,
    "too-large": TooLarge,
    "archive-unavailable": Unavailable,
    "ledger-unavailable": Unavailable,
}


def problem_of(response: httpx.Response) -> Problem:
    """Return the error that an answer stands for, a proxy's answer without a document too.

    ValueError where the document is no JSON.
    """
    document = _document(response)
    slug = str(document.get("type", "")).removeprefix("/problems/")
    kind = KINDS.get(slug, Problem)
    return kind(response.status_code, document, _retry_after_s(response.headers))


def _document(response: httpx.Response) -> Mapping[str, Any]:
    if response.headers.get("content-type", "").startswith(PROBLEM):
        document = response.json()
        if isinstance(document, dict):
            return document
    return {"detail": f"{response.status_code} {response.reason_phrase}"}


def _retry_after_s(headers: httpx.Headers) -> float:
    """Return how long to wait by `Retry-After`: seconds, or a date as proxies send it."""
    value = headers.get("retry-after", "")
    if value.isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:  # neither: as if it were not there
        return 0.0
    return max(0.0, (until.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds())
