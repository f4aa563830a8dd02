"""The access log's rows."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, bindparam, delete, insert, select, tuple_
from sqlalchemy.exc import DBAPIError

from app.db.events import AccessesLost
from app.db.instants import from_us, now_us
from app.db.tables import access_log, checkpoints
from app.db.transaction import Transaction
from app.lineage.access import Access, AccessRecord, Operation, Touched
from app.lineage.ids import NodeId
from app.randomness import random_id

# One deletion's length: a longer one would hold up the writes that wait behind it.
PRUNE_ROWS = 2_000

FINDING = (Operation.ARCHIVAL_SEARCH, Operation.SESSION)

INSERT_RECORDS = insert(access_log)
SELECT_PRESENT = select(checkpoints.c.id, checkpoints.c.incarnation).where(
    checkpoints.c.id.in_(bindparam("ids", expanding=True))
)

Position: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class SeenAccess:
    """An access on its way to the log: of which incarnation of its checkpoint, and when."""

    incarnation: str
    at_us: int
    access: Access


def record_with_write(tx: Transaction, accesses: Sequence[Access]) -> None:
    """Record a write in its own transaction; a log that cannot be written does not fail it."""
    _insert(tx, [_row(now_us(), access) for access in accesses])


def record_seen(tx: Transaction, seen: Sequence[SeenAccess]) -> None:
    """Record reads of a while ago, but for those of checkpoints that are gone since."""
    ids = list({item.access.checkpoint for item in seen})
    present = {tuple(row) for row in tx.connection.execute(SELECT_PRESENT, {"ids": ids})}
    _insert(
        tx,
        [
            _row(item.at_us, item.access)
            for item in seen
            if (item.access.checkpoint, item.incarnation) in present
        ],
    )


def _insert(tx: Transaction, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    try:
        with tx.connection.begin_nested():
            tx.connection.execute(INSERT_RECORDS, rows)
    except DBAPIError as error:
        # Where the whole transaction is lost, so is the write, and it must not seem done.
        if error.connection_invalidated or not tx.connection.in_transaction():
            raise
        tx.events.append(AccessesLost(len(rows)))


def page(
    connection: Connection, checkpoint: str, *, limit: int, before: Position | None
) -> Iterator[AccessRecord]:
    """Yield a checkpoint's records, newest first, from behind a position."""
    place = tuple_(access_log.c.at_us, access_log.c.id)
    query = select(access_log).where(access_log.c.checkpoint_id == checkpoint)
    if before is not None:
        query = query.where(place < before)
    query = query.order_by(access_log.c.at_us.desc(), access_log.c.id.desc()).limit(limit)
    return map(_to_record, connection.execute(query).mappings())


def finds(connection: Connection, checkpoint: str, *, since_us: int) -> dict[str, int]:
    """Count how many searches of the archive and sessions found each note best since an instant.

    In a small archive a search finds every note, so only its best hit counts: the first entry of
    its record. That of a session which found no note is a daily note, or none.
    """
    query = select(access_log.c.entries).where(
        access_log.c.checkpoint_id == checkpoint,
        access_log.c.at_us >= since_us,
        access_log.c.operation.in_([operation.value for operation in FINDING]),
    )
    found: Counter[str] = Counter()
    for entries in connection.execute(query).scalars():
        found.update(entry for entry, _ in json.loads(entries)[:1])
    return dict(found)


def prune(connection: Connection, *, older_than_us: int, keep_rows: int) -> int:
    """Delete some of the records that are too old or too many; return how many."""
    cap = select(access_log.c.at_us).order_by(access_log.c.at_us.desc()).offset(keep_rows).limit(1)
    over = connection.execute(cap).scalar()
    until = max(older_than_us, over or 0)
    oldest = (
        select(access_log.c.checkpoint_id, access_log.c.at_us, access_log.c.id)
        .where(access_log.c.at_us <= until)
        .order_by(access_log.c.at_us)
        .limit(PRUNE_ROWS)
    )
    key = tuple_(access_log.c.checkpoint_id, access_log.c.at_us, access_log.c.id)
    return connection.execute(delete(access_log).where(key.in_(oldest))).rowcount


def _row(at_us: int, access: Access) -> dict[str, Any]:
    return {
        "checkpoint_id": access.checkpoint,
        "at_us": at_us,
        "id": random_id(),
        "operation": access.operation.value,
        "reader": access.reader,
        "target": None if access.target is None else str(access.target),
        "query": access.query,
        "entries": json.dumps([[touched.id, touched.node] for touched in access.entries]),
        "refusal": access.refusal,
    }


def _to_record(row: Any) -> AccessRecord:
    touched: Iterable[list[Any]] = json.loads(row["entries"])
    return AccessRecord(
        id=row["id"],
        at=from_us(row["at_us"]),
        access=Access(
            checkpoint=row["checkpoint_id"],
            operation=Operation(row["operation"]),
            reader=row["reader"],
            target=None if row["target"] is None else NodeId.parse(row["target"]),
            query=row["query"],
            entries=tuple(Touched(entry, node) for entry, node in touched),
            refusal=row["refusal"],
        ),
    )
