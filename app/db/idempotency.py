"""Answers kept for a repeated request, in the transaction of the write that they answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from app.db.instants import now_us
from app.db.tables import idempotent_answers
from app.lineage.errors import IdempotencyMismatch

KEPT_US = 24 * 3600 * 1_000_000

SELECT_ANSWERS = select(idempotent_answers).where(
    idempotent_answers.c.scope.in_(bindparam("scopes", expanding=True)),
    idempotent_answers.c.created_us > bindparam("since"),
)
INSERT_ANSWERS = insert(idempotent_answers)


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx answer: its status and its JSON body, byte for byte."""

    status: int
    body: str
    replayed: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A kept answer and the SHA-256 of the body that it answered."""

    body_sha256: bytes
    status: int
    body: str

    @classmethod
    def of(cls, row: Any) -> Self:
        """Read a row of `idempotent_answers`."""
        return cls(row["body_sha256"], row["status"], row["body"])


@dataclass(frozen=True, slots=True)
class Once:
    """A request with an Idempotency-Key.

    `scope` is the SHA-256 over credential, method, path and key, `body_sha256` that of the body;
    `render` makes status and JSON body of what the write stored.
    """

    scope: bytes
    body_sha256: bytes
    render: Callable[[Any], tuple[int, str]]

    def replay(self, stored: Stored) -> Answer:
        """Return the first answer again; another body under the key is IdempotencyMismatch."""
        if stored.body_sha256 != self.body_sha256:
            raise IdempotencyMismatch
        return Answer(stored.status, stored.body, replayed=True)

    def row(self, checkpoint: str, result: Any) -> dict[str, Any]:
        """Return the row that keeps the answer."""
        status, body = self.render(result)
        return {
            "checkpoint_id": checkpoint,
            "scope": self.scope,
            "body_sha256": self.body_sha256,
            "status": status,
            "body": body,
            "created_us": now_us(),
        }


def load(connection: Connection, scopes: Sequence[bytes]) -> dict[bytes, Stored]:
    """Return the kept answers by scope; those past their time are none."""
    if not scopes:
        return {}
    rows = connection.execute(
        SELECT_ANSWERS, {"scopes": list(scopes), "since": now_us() - KEPT_US}
    ).mappings()
    return {row["scope"]: Stored.of(row) for row in rows}


def keep(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Store answers; an expired one of the same scope makes room first."""
    scopes = [row["scope"] for row in rows]
    connection.execute(delete(idempotent_answers).where(idempotent_answers.c.scope.in_(scopes)))
    connection.execute(INSERT_ANSWERS, list(rows))


def amend(connection: Connection, row: dict[str, Any]) -> None:
    """Store another body for a kept answer that was not given yet."""
    kept = (idempotent_answers.c.checkpoint_id == row["checkpoint_id"]) & (
        idempotent_answers.c.scope == row["scope"]
    )
    connection.execute(update(idempotent_answers).where(kept).values(body=row["body"]))


def prune(connection: Connection) -> None:
    """Delete the answers past their time."""
    connection.execute(
        delete(idempotent_answers).where(idempotent_answers.c.created_us <= now_us() - KEPT_US)
    )
