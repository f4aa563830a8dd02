"""What moves between the layers of memory of one checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from app.client.answers import Json, each, fields_of
from app.client.connection import LONG_TIMEOUT, Connection
from app.client.reading import read_as
from app.client.spelling import path_of


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done (demoted, promoted, extracted, merged), or kept and why."""

    action: str
    text: str
    section: str | None
    ref: str | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer))


@dataclass(frozen=True, slots=True)
class Movement:
    """What a movement did, or in a dry run would do; `words` are core memory's afterwards."""

    steps: Sequence[Step]
    diff: str
    changed: bool
    dry_run: bool
    words: int
    max_words: int
    over_budget: bool

    @classmethod
    def read(cls, answer: Json) -> Self:
        """Read it from an answer."""
        return cls(**fields_of(cls, answer, steps=each(Step.read)))


class Movements:
    """The movements of one checkpoint; with `dry_run`, they only tell what they would change.

    They are not sent again where an answer got lost. Every call raises Refused and Unreachable.
    """

    def __init__(self, connection: Connection, checkpoint: str) -> None:
        self._connection = connection
        self._path = path_of("checkpoints", checkpoint)

    def demote(
        self,
        section: str,
        item: str,
        *,
        topic: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Movement:
        """Move an item of core to the archive, and leave a reference in its place."""
        named = {"section": section, "item": item, "topic": topic, "title": title}
        return self._move("demote", {**named, "tags": list(tags)}, dry_run=dry_run)

    def promote(
        self, note: str | None, *, section: str | None = None, dry_run: bool = False
    ) -> Movement:
        """Copy the key facts of a note, or of those that were found often, to core."""
        body = {"note": note} | ({} if section is None else {"section": section})
        return self._move("promote", body, dry_run=dry_run)

    def consolidate(self, *, days: int, dry_run: bool = False) -> Movement:
        """Take decisions, lessons and new facts of the last days' notes into the archive."""
        return self._move("consolidate", {"days": days}, dry_run=dry_run)

    def trim(self, *, max_words: int | None = None, dry_run: bool = False) -> Movement:
        """Demote items until core is within its limit, the service's where none is given."""
        return self._move("trim", {"max_words": max_words}, dry_run=dry_run)

    def heartbeat(
        self, *, days: int, max_words: int | None = None, dry_run: bool = False
    ) -> Movement:
        """Consolidate, promote what was found often, trim, and merge doubled notes."""
        body = {"days": days, "max_words": max_words}
        return self._move("heartbeat", body, dry_run=dry_run)

    def _move(self, movement: str, body: dict[str, Any], *, dry_run: bool) -> Movement:
        answer = self._connection.edit(
            "POST",
            f"{self._path}/{movement}",
            json=body,
            params={"dry_run": str(dry_run).lower()},
            timeout=LONG_TIMEOUT,
        )
        return read_as(Movement.read, answer, address=self._connection.address)
