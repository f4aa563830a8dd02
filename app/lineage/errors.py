"""What can go wrong by the rules; each error carries data, and the API decides how to answer."""

import re
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

# A model's name and the length of its vectors.
Model: TypeAlias = tuple[str | None, int | None]

WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


class LineageError(Exception):
    """Base of all errors that a caller can mend or should be told about."""

    @classmethod
    def slug(cls) -> str:
        """Return the problem's stable name: `CowViolation` is `cow-violation`."""
        return WORD_START.sub("-", cls.__name__).lower()

    @property
    def detail(self) -> str:
        """One sentence for the caller: what was wrong and, where it helps, how to mend it."""
        return str(self)

    @property
    def extra(self) -> dict[str, Any]:
        """Further members of the problem document."""
        return {}


class UnknownCheckpoint(LineageError):
    """No checkpoint has this id."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(f"There is no checkpoint {checkpoint!r}.")
        self.checkpoint = checkpoint


class UnknownNode(LineageError):
    """No node has this id (or name)."""

    def __init__(self, node: str) -> None:
        super().__init__(f"There is no node {node!r}.")
        self.node = node


class UnknownPath(LineageError):
    """An id in the path is malformed, so nothing can be there."""


class CheckpointConflict(LineageError):
    """The id or the path is taken by another checkpoint."""


class NodeConflict(LineageError):
    """The node exists with another parent; a parent never changes."""

    def __init__(self, node: str, parent: str | None) -> None:
        super().__init__(
            f"Node {node!r} exists with parent {parent!r}; a node never changes its parent."
        )
        self.parent = parent

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"parent": self.parent}


class InvalidInput(LineageError):
    """A value breaks a rule; `place` says where, as a list of keys and indices."""

    def __init__(self, message: str, *, place: Sequence[str | int] = ("body",)) -> None:
        super().__init__(message)
        self.place = list(place)

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"errors": [{"loc": self.place, "msg": str(self)}]}


class TooLarge(LineageError):
    """A value is longer than its limit in bytes."""

    def __init__(self, what: str, *, limit: int, size: int | None = None) -> None:
        has = "" if size is None else f" and has {size}"
        super().__init__(f"{what} may have at most {limit} bytes{has}.")
        self.limit = limit

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"limit": self.limit}


class SnapshotRefused(LineageError):
    """A snapshot is not whole, or a line of it breaks a rule; `line` counts from 1."""

    def __init__(self, line: int | None, reason: str) -> None:
        where = "The snapshot" if line is None else f"Line {line} of the snapshot"
        super().__init__(f"{where} is refused: {reason}")
        self.line = line

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"line": self.line}


class SnapshotFailed(LineageError):
    """The disk will not have a snapshot, or will not give it back."""

    def __init__(self, reason: str | None, *, done: str = "written") -> None:
        super().__init__(f"The snapshot cannot be {done}: {reason or 'the disk refuses it'}.")
        self.retry_after_s = 30.0


class RestoreConflict(LineageError):
    """A restore that must find nothing found something."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(
            f"Checkpoint {checkpoint!r} holds nodes, entries or core memory: choose another "
            "on_conflict than 'fail'."
        )


class CurrentNodeRequired(LineageError):
    """A node write came without a claim."""

    def __init__(self, node: str) -> None:
        super().__init__(
            f"A write to {node!r} needs the header X-Current-Node: {node} (or a node token)."
        )


class AmbiguousClaim(LineageError):
    """A request claims more than one node."""


class ForbiddenToToken(LineageError):
    """A node token reaches only its own node, the trace and what its claim may read."""


class CowViolation(LineageError):
    """A write to a node by anyone but its current executor (copy-on-write)."""

    def __init__(self, node: str, executor: str) -> None:
        super().__init__(
            f"{executor!r} may not write to {node!r}: a node is written by its own executor only."
        )
        self.node, self.executor = node, executor

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"node": self.node, "current_node": self.executor}


class ScopeViolation(LineageError):
    """A read outside of the lineage; `outside` names what was asked for and is not in it."""

    def __init__(self, reader: str, outside: Collection[str]) -> None:
        names = ", ".join(repr(name) for name in sorted(outside))
        super().__init__(f"{names}: outside of what {reader!r} may read.")
        self.reader, self.outside = reader, sorted(outside)

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"outside": self.outside}


class StaleToken(LineageError):
    """A newer token was given out for the node."""

    def __init__(self, node: str) -> None:
        super().__init__(f"A newer token of {node!r} has overtaken this one.")


class NodeSealed(LineageError):
    """The node accepts no more writes."""

    def __init__(self, node: str) -> None:
        super().__init__(f"Node {node!r} is sealed and accepts no more writes.")


class Unauthenticated(LineageError):
    """The credential is missing or not known."""


class InvalidCursor(LineageError):
    """The cursor was not made by this list."""

    def __init__(self) -> None:
        super().__init__("This cursor does not belong to this list; start again without one.")


class IdempotencyMismatch(LineageError):
    """The idempotency key was used with another body."""

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was used with another body; use a new key.")


class VersionMismatch(LineageError):
    """The stored version is not the one named by If-Match."""

    def __init__(self, current: str) -> None:
        super().__init__("The stored version is another one; read it again and repeat.")
        self.current = current

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"etag": self.current}


class PreconditionRequired(LineageError):
    """An edit of something that others edit too came without If-Match."""

    def __init__(self, current: str) -> None:
        super().__init__(
            "Others edit this too: send If-Match with the ETag that you have read (or *)."
        )
        self.current = current

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"etag": self.current}


class ModelChanged(LineageError):
    """The checkpoint is indexed with another embedding model than the one configured."""

    def __init__(self, checkpoint: str, *, indexed: Model, configured: Model) -> None:
        super().__init__(
            f"Checkpoint {checkpoint!r} is indexed with {_model(indexed)}, configured is "
            f"{_model(configured)}. Run `letta-lineage reindex {checkpoint}` or POST "
            f"/checkpoints/{checkpoint}/reindex."
        )
        self.indexed, self.configured = indexed, configured

    @property
    def extra(self) -> dict[str, Any]:
        """Name what helps to mend it."""
        return {"indexed": _shown(self.indexed), "configured": _shown(self.configured)}


class ArchiveUnavailable(LineageError):
    """The archive (or its embedder) does not answer.

    `maybe_done` tells that what was asked may have been done all the same.
    """

    def __init__(
        self, reason: str, *, retry_after_s: float = 5.0, maybe_done: bool = False
    ) -> None:
        super().__init__(f"The archive cannot be searched now: {reason}")
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.maybe_done = maybe_done

    @classmethod
    def slug(cls) -> str:
        """Return one name for all kinds: what differs between them is the archive's own affair."""
        return "archive-unavailable"


class LedgerUnavailable(LineageError):
    """The database cannot do what was asked now."""

    def __init__(self, reason: str, *, retry_after_s: float = 2.0) -> None:
        super().__init__(f"The ledger is not available now: {reason}")
        self.reason, self.retry_after_s = reason, retry_after_s


def _model(model: Model) -> str:
    return f"{model[0]!r} ({model[1]} dimensions)"


def _shown(model: Model) -> dict[str, Any]:
    return {"model": model[0], "dimensions": model[1]}
