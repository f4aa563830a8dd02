"""The hot write: the appends of one commit, done with one statement a kind for all of them.

Set-based on purpose. A statement of SQLAlchemy's costs about 0.1 ms of Python, so an append by
itself (checkpoint, node, repeated request; entry, counter, access record) would cost 0.7 ms, and
thirty that share their statements cost little more together. The statements are built once, and
both databases run the same ones.

The checkpoint's row is locked first, in the order of ids: all that changes a checkpoint comes one
after the other, whichever replica it comes from, so `changes` numbers it without gap or double.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from app.db import access_log, idempotency
from app.db.events import CheckpointChanged, EntryStored
from app.db.instants import from_us, now_us
from app.db.rows import to_entry, to_node
from app.db.tables import checkpoints, entries, nodes
from app.db.transaction import Transaction
from app.db.vectors import Vectors, to_bytes
from app.lineage.access import Access, Operation, Touched
from app.lineage.entry import Collection, Draft, Entry, text_digest
from app.lineage.errors import LineageError, ScopeViolation, UnknownCheckpoint, UnknownNode
from app.lineage.guard import Claim, Node, check_fresh, check_open, check_writer
from app.lineage.ids import NodeId

LOCK_CHECKPOINTS = (
    select(checkpoints)
    .where(checkpoints.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(checkpoints.c.id)
    .with_for_update(key_share=True)
)
SELECT_NODES = select(nodes).where(
    nodes.c.checkpoint_id == bindparam("checkpoint"),
    nodes.c.name.in_(bindparam("names", expanding=True)),
)
SELECT_STORED = select(entries).where(
    entries.c.checkpoint_id == bindparam("checkpoint"),
    entries.c.id.in_(bindparam("ids", expanding=True)),
)
ADVANCE = (
    update(checkpoints)
    .where(checkpoints.c.id == bindparam("checkpoint"))
    .values(
        changes=bindparam("to_changes"),
        last_entry_us=bindparam("to_last_entry_us"),
        model=bindparam("to_model"),
        dimensions=bindparam("to_dimensions"),
    )
)
INSERT_ENTRIES = insert(entries)
OPERATIONS = {
    Collection.NODE_SCOPE: Operation.WRITE,
    Collection.REACT_STEP: Operation.TRACE_WRITE,
    Collection.REFERENCE: Operation.NOTE_WRITE,
    Collection.DAILY_NOTE: Operation.DAILY_NOTE_WRITE,
}


@dataclass(frozen=True, slots=True)
class PreparedEntry:
    """A draft with the id it will have, its metadata as compact JSON and its text's digest."""

    id: str
    draft: Draft
    metadata_json: str
    sha256: bytes

    @classmethod
    def of(cls, entry_id: str, draft: Draft, metadata_json: str) -> "PreparedEntry":
        """Prepare a draft outside of the transaction."""
        return cls(entry_id, draft, metadata_json, text_digest(draft.text))


@dataclass(frozen=True, slots=True)
class Append:
    """One request's entries: all are stored, in order, or none.

    `node` is the node written to; None stores trace steps, whose node is the claim's, and notes,
    which come without a claim. `vectors` has a row an entry, made with `model`; None leaves the
    entries pending.
    """

    checkpoint: str
    collection: Collection
    node: NodeId | None
    claim: Claim | None
    entries: tuple[PreparedEntry, ...]
    vectors: Vectors | None
    model: str
    once: idempotency.Once | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append stored."""

    entries: tuple[Entry, ...]


def append_group(
    tx: Transaction, requests: Sequence[Append]
) -> list[Appended | idempotency.Answer | LineageError]:
    """Do the appends of one commit in order; each gets its entries, a stored answer or its error.

    An error of one (no such node, not its executor, sealed) changes nothing and spoils no other.
    """
    batch = _Batch.load(tx, requests)
    outcomes = [batch.outcome(request) for request in requests]
    batch.flush()
    return outcomes


@dataclass(slots=True)
class _Ledger:
    """A locked checkpoint's row while the batch grows."""

    row: dict[str, Any]
    used: bool = False

    @property
    def epoch(self) -> int:
        return int(self.row["index_epoch"])

    def next_seq(self) -> int:
        self.used = True
        self.row["changes"] += 1
        return int(self.row["changes"])

    def next_instant(self) -> int:
        """Never before, and never at, the entry before: a clock may step back."""
        self.row["last_entry_us"] = max(now_us(), self.row["last_entry_us"] + 1)
        return int(self.row["last_entry_us"])

    def takes(self, append: Append) -> bool:
        """Tell whether the vectors are of the checkpoint's model; the first ones set it."""
        if append.vectors is None:
            return False
        if self.row["model"] is None:
            self.row["model"] = append.model
            self.row["dimensions"] = append.vectors.shape[1]
        mine = (self.row["model"], self.row["dimensions"])
        return bool(mine == (append.model, append.vectors.shape[1]))


@dataclass(slots=True)
class _Batch:
    tx: Transaction
    ledgers: dict[str, _Ledger]
    nodes: dict[NodeId, Node]
    answers: dict[bytes, idempotency.Stored]
    stored: dict[str, Entry]
    entry_rows: list[dict[str, Any]] = field(default_factory=list)
    answer_rows: list[dict[str, Any]] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)

    @classmethod
    def load(cls, tx: Transaction, requests: Sequence[Append]) -> "_Batch":
        connection = tx.connection
        ids = {request.checkpoint for request in requests}
        rows = connection.execute(LOCK_CHECKPOINTS, {"ids": list(ids)}).mappings()
        ledgers = {row["id"]: _Ledger(dict(row)) for row in rows}
        return cls(
            tx,
            ledgers,
            _load_nodes(connection, filter(None, map(_written_node, requests))),
            idempotency.load(connection, [r.once.scope for r in requests if r.once]),
            _load_stored(connection, requests, ledgers) if tx.again else {},
        )

    def outcome(self, append: Append) -> Appended | idempotency.Answer | LineageError:
        try:
            return self._add(append)
        except LineageError as error:
            return error

    def _add(self, append: Append) -> Appended | idempotency.Answer:
        if (ledger := self.ledgers.get(append.checkpoint)) is None:
            raise UnknownCheckpoint(append.checkpoint)
        node = self._writer(append)
        if append.once and (stored := self.answers.get(append.once.scope)):
            return append.once.replay(stored)
        if append.entries[0].id in self.stored:
            return Appended(tuple(self.stored[entry.id] for entry in append.entries))
        if node is not None:
            check_open(node)
        added = self._store(append, ledger, node)
        self._answer(append, added)
        return added

    def _writer(self, append: Append) -> Node | None:
        """Return the node whose executor writes; refuse anyone else."""
        written = _written_node(append)
        if append.node is None and append.claim is not None:
            if written is None or written not in self.nodes:
                raise ScopeViolation(append.claim.node, [append.checkpoint])
            check_fresh(self.nodes[written], append.claim)
        if written is None:
            return None
        if (node := self.nodes.get(written)) is None:
            raise UnknownNode(str(written))
        if append.node is not None:
            check_writer(node, append.claim)
        return node

    def _store(self, append: Append, ledger: _Ledger, node: Node | None) -> Appended:
        first = ledger.row["model"] is None
        indexed = ledger.takes(append)
        if indexed and first:
            self.tx.events.append(CheckpointChanged(append.checkpoint))
        name = node.id.name if node else None
        added = []
        for position, prepared in enumerate(append.entries):
            vector = append.vectors[position] if indexed and append.vectors is not None else None
            seq, instant = ledger.next_seq(), ledger.next_instant()
            entry = Entry(
                id=prepared.id,
                checkpoint=append.checkpoint,
                collection=append.collection,
                node=name,
                text=prepared.draft.text,
                metadata=prepared.draft.metadata,
                created_at=from_us(instant),
                seq=seq,
                sha256=prepared.sha256,
                indexed=indexed,
                refused=None,
            )
            self.entry_rows.append(
                {
                    "checkpoint_id": append.checkpoint,
                    "id": prepared.id,
                    "collection": append.collection.value,
                    "node": name or "",
                    "text": prepared.draft.text,
                    "metadata": prepared.metadata_json,
                    "created_us": instant,
                    "seq": seq,
                    "change": seq,
                    "sha256": prepared.sha256,
                    "index_epoch": ledger.epoch if indexed else 0,
                    "refused": None,
                    "vector": None if vector is None else to_bytes(vector),
                }
            )
            self.tx.events.append(EntryStored(entry, vector))
            added.append(entry)
        self.accesses.append(_access(append, node, added))
        return Appended(tuple(added))

    def _answer(self, append: Append, added: Appended) -> None:
        """Keep the answer with the write, visible to a repeat in this same batch too."""
        if append.once:
            self.answer_rows.append(append.once.row(append.checkpoint, added.entries))
            self.answers[append.once.scope] = idempotency.Stored.of(self.answer_rows[-1])

    def flush(self) -> None:
        connection = self.tx.connection
        if not self.entry_rows:
            return
        advanced = [
            {
                "checkpoint": checkpoint,
                "to_changes": ledger.row["changes"],
                "to_last_entry_us": ledger.row["last_entry_us"],
                "to_model": ledger.row["model"],
                "to_dimensions": ledger.row["dimensions"],
            }
            for checkpoint, ledger in sorted(self.ledgers.items())
            if ledger.used
        ]
        connection.execute(ADVANCE, advanced)
        connection.execute(INSERT_ENTRIES, self.entry_rows)
        if self.answer_rows:
            idempotency.keep(connection, self.answer_rows)
        access_log.record_with_write(self.tx, self.accesses)


def _written_node(append: Append) -> NodeId | None:
    if append.node is not None:
        return append.node
    claimed = NodeId.parse(append.claim.node) if append.claim else None
    return claimed if claimed and claimed.checkpoint == append.checkpoint else None


def _access(append: Append, node: Node | None, added: Sequence[Entry]) -> Access:
    return Access(
        checkpoint=append.checkpoint,
        operation=OPERATIONS[append.collection],
        reader=append.claim.node if append.claim else None,
        target=node.id if node else None,
        entries=tuple(Touched(entry.id, entry.node_id) for entry in added),
    )


def _load_nodes(connection: Connection, wanted: Iterable[NodeId]) -> dict[NodeId, Node]:
    names: dict[str, set[str]] = {}
    for node in wanted:
        names.setdefault(node.checkpoint, set()).add(node.name)
    found: dict[NodeId, Node] = {}
    for checkpoint, some in names.items():
        rows = connection.execute(SELECT_NODES, {"checkpoint": checkpoint, "names": list(some)})
        found |= {node.id: node for node in map(to_node, rows.mappings())}
    return found


def _load_stored(
    connection: Connection, requests: Sequence[Append], ledgers: dict[str, _Ledger]
) -> dict[str, Entry]:
    """Find what a commit whose answer was lost has stored after all."""
    found: dict[str, Entry] = {}
    for request in requests:
        if (ledger := ledgers.get(request.checkpoint)) is None:
            continue
        ids = [entry.id for entry in request.entries]
        rows = connection.execute(SELECT_STORED, {"checkpoint": request.checkpoint, "ids": ids})
        stored = (to_entry(row, index_epoch=ledger.epoch) for row in rows.mappings())
        found |= {entry.id: entry for entry in stored}
    return found
