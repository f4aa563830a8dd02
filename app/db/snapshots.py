"""Rows of a whole checkpoint: read for a snapshot at one instant, and stored from one in bulk."""

import json
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from app.db import checkpoints as checkpoint_rows
from app.db import notes
from app.db.instants import from_us, now_us, to_us
from app.db.rows import to_entry, to_node
from app.db.statistics import count_if_doubled
from app.db.tables import checkpoints, core_blocks, entries, nodes
from app.lineage.checkpoint import IndexKey
from app.lineage.entry import Collection, Entry
from app.lineage.errors import NodeConflict, SnapshotRefused
from app.lineage.guard import Node
from app.lineage.ids import NodeId
from app.lineage.json_rules import compact
from app.lineage.snapshot import SnapshotBlocks, SnapshotEntry, SnapshotNode

CHUNK = 500


def all_nodes(connection: Connection, checkpoint: str) -> Iterator[Node]:
    """Yield the nodes in the order of their making: parents first."""
    query = select(nodes).where(nodes.c.checkpoint_id == checkpoint).order_by(nodes.c.seq)
    rows = connection.execution_options(yield_per=CHUNK).execute(query).mappings()
    yield from map(to_node, rows)


def all_entries(connection: Connection, checkpoint: str) -> Iterator[Entry]:
    """Yield the entries of all collections in the ledger's order."""
    query = select(entries).where(entries.c.checkpoint_id == checkpoint).order_by(entries.c.seq)
    rows = connection.execution_options(yield_per=CHUNK).execute(query).mappings()
    for row in rows:
        yield to_entry(row, index_epoch=0)


def all_blocks(connection: Connection, checkpoint: str) -> SnapshotBlocks:
    """Return core memory's blocks that were ever set, and when the newest one was."""
    query = select(core_blocks).where(core_blocks.c.checkpoint_id == checkpoint)
    rows = connection.execute(query).mappings().all()
    newest_us = max((row["updated_us"] for row in rows), default=0)
    return SnapshotBlocks({row["label"]: row["value"] for row in rows}, from_us(newest_us))


def is_empty(connection: Connection, checkpoint: str) -> bool:
    """Tell whether a checkpoint has no node, no entry and no core memory."""
    counts = [
        connection.execute(
            select(func.count()).select_from(table).where(table.c.checkpoint_id == checkpoint)
        ).scalar_one()
        for table in (nodes, entries, core_blocks)
    ]
    return not any(counts)


def describe(connection: Connection, checkpoint: str, *, name: str | None, metadata: str) -> None:
    """Give a checkpoint a name and metadata where it has none."""
    update_one = update(checkpoints).where(checkpoints.c.id == checkpoint)
    connection.execute(update_one.where(checkpoints.c.name.is_(None)).values(name=name))
    connection.execute(update_one.where(checkpoints.c.metadata == "{}").values(metadata=metadata))


def revive(
    connection: Connection, checkpoint: str, *, name: str | None, metadata: str
) -> dict[str, Any]:
    """Purge a checkpoint if it is there, and make it anew, empty, under its former path and name.

    `name` and `metadata` are for one that was not there. Returns its locked row.
    """
    former = checkpoint_rows.find(connection, checkpoint)
    kept: dict[str, Any] = {"path": None, "name": name, "metadata": metadata}
    if former is not None:
        query = select(
            checkpoints.c.path, checkpoints.c.name, checkpoints.c.metadata, checkpoints.c.created_us
        ).where(checkpoints.c.id == checkpoint)
        kept = dict(connection.execute(query).mappings().one())
        checkpoint_rows.purge(connection, checkpoint)
    checkpoint_rows.create(connection, checkpoint, derived=False, **_creatable(kept))
    if former is not None:
        connection.execute(
            update(checkpoints)
            .where(checkpoints.c.id == checkpoint)
            .values(created_us=kept["created_us"])
        )
    return dict(checkpoint_rows.lock(connection, checkpoint))


def _creatable(kept: dict[str, Any]) -> dict[str, Any]:
    return {name: kept[name] for name in ("path", "name", "metadata")}


@dataclass(slots=True)
class Stored:
    """How many were stored, how many were there already, and how many differed from what is there.

    A differing entry was stored under a new id where that was asked for, else it was left out.
    """

    nodes: int = 0
    entries: int = 0
    blocks: int = 0
    skipped: int = 0
    conflicts: int = 0


@dataclass(slots=True)
class Loader:
    """Stores a snapshot's parts in a checkpoint whose lock the caller holds."""

    connection: Connection
    row: dict[str, Any]
    new_id: Callable[[], str]
    rename_conflicts: bool
    stored: Stored = field(default_factory=Stored)
    _newest_us: int = 0
    _uncounted: int = 0
    # Which of the entries that were there the snapshot had, by their numbers, a bit for each.
    _named: bytearray = field(init=False)
    # What an id of the snapshot is here: another one, or nothing where its entry was left out.
    _here: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._named = bytearray(self.row["last_seq"] // 8 + 1)

    @property
    def checkpoint(self) -> str:
        """The target's id."""
        return str(self.row["id"])

    def load_nodes(self, numbered: Sequence[tuple[int, SnapshotNode]]) -> None:
        """Store nodes, parents first; one that is there stays as it is.

        NodeConflict where it has another parent, SnapshotRefused for a parent that is nowhere.
        """
        query = select(nodes.c.name, nodes.c.parent, nodes.c.depth).where(
            nodes.c.checkpoint_id == self.checkpoint
        )
        there = {row.name: (row.parent, row.depth) for row in self.connection.execute(query)}
        last = select(func.max(nodes.c.seq)).where(nodes.c.checkpoint_id == self.checkpoint)
        seq = self.connection.execute(last).scalar() or 0
        rows: list[dict[str, Any]] = []
        for number, node in numbered:
            if node.name in there:
                if node.placed:
                    self._check_parent(node, there[node.name][0])
                self.stored.skipped += 1
                continue
            if node.parent is not None and node.parent not in there:
                raise SnapshotRefused(
                    number, f"the parent {node.parent!r} of node {node.name!r} is not known"
                )
            seq += 1
            depth = 0 if node.parent is None else there[node.parent][1] + 1
            there[node.name] = (node.parent, depth)
            rows.append(_node_row(self.checkpoint, node, depth=depth, seq=seq))
            if len(rows) == CHUNK:
                self._insert_nodes(rows)
        self._insert_nodes(rows)

    def _insert_nodes(self, rows: list[dict[str, Any]]) -> None:
        """Insert rows and empty the list: those of a large tree would fill the memory."""
        if rows:
            self.connection.execute(insert(nodes), rows)
        self.stored.nodes += len(rows)
        rows.clear()

    def load_entries(self, numbered: Sequence[tuple[int, SnapshotEntry]]) -> None:
        """Store a chunk of entries, in order, behind what is there.

        SnapshotRefused for an id that the same snapshot had before.
        """
        ids = [entry.id for _, entry in numbered if entry.id is not None]
        by_id = self._by_id(ids)
        by_content = self._by_content([entry for _, entry in numbered], besides=by_id)
        rows = []
        for number, given in numbered:
            entry = _superseding(given, self._here)
            content = _content(entry)
            if entry.id is not None and entry.id in by_id:
                kept_content, kept_seq = by_id[entry.id]
                if kept_seq > self.row["last_seq"] or self._was_named(kept_seq):
                    raise SnapshotRefused(number, f"the entry id {entry.id!r} was there before")
                if kept_content == (*content, entry.metadata_json):
                    self.stored.skipped += 1
                    continue
                merged = by_content.get(content, {}).get(entry.metadata_json)
                if self.rename_conflicts and merged is not None:
                    self._here[entry.id] = merged
                    self.stored.skipped += 1
                    continue
                self.stored.conflicts += 1
                if not self.rename_conflicts:
                    self._here[entry.id] = None
                    continue
                renamed = self._here[entry.id] = self.new_id()
                rows.append(self._entry_row(entry, renamed))
            elif (alike := _alike(entry, by_content.get(content, {}))) is not None:
                if entry.id is not None:
                    self._here[entry.id] = alike
                self.stored.skipped += 1
                continue
            else:
                rows.append(self._entry_row(entry, entry.id or self.new_id()))
            by_id[rows[-1]["id"]] = ((*content, entry.metadata_json), rows[-1]["seq"])
        self._insert_entries(rows)

    def _insert_entries(self, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            self.connection.execute(insert(entries), rows)
        self.stored.entries += len(rows)
        self._uncounted += len(rows)
        if count_if_doubled(self.connection, self._uncounted):
            self._uncounted = 0

    def load_blocks(self, wanted: Sequence[SnapshotBlocks]) -> None:
        """Set blocks that were never set; what is there stays."""
        there = set(all_blocks(self.connection, self.checkpoint).blocks)
        rows = []
        for part in wanted:
            for label, value in part.blocks.items():
                if label in there:
                    self.stored.skipped += 1
                    continue
                there.add(label)
                rows.append(
                    {
                        "checkpoint_id": self.checkpoint,
                        "label": label,
                        "value": value,
                        "updated_us": to_us(part.set_at),
                        "version": self.row["core_version"] + 1,
                    }
                )
        if rows:
            self.connection.execute(insert(core_blocks), rows)
            self.row["core_version"] += 1
        self.stored.blocks += len(rows)

    def finish(self) -> None:
        """Let notes supersede the former ones, and count the checkpoint's counters up.

        What is cached of it is void.
        """
        index = IndexKey(
            self.checkpoint,
            self.row["incarnation"],
            self.row["index_epoch"],
            Collection.REFERENCE,
        )
        notes.supersede_as_told(self.connection, index, change=self.row["changes"])
        # A time to come must not push the entries that are written now behind it.
        newest_us = min(self._newest_us, now_us())
        self.connection.execute(
            update(checkpoints)
            .where(checkpoints.c.id == self.checkpoint)
            .values(
                changes=self.row["changes"],
                last_entry_us=max(self.row["last_entry_us"], newest_us),
                generation=checkpoints.c.generation + 1,
                core_version=self.row["core_version"],
            )
        )

    def _check_parent(self, node: SnapshotNode, parent: str | None) -> None:
        if parent != node.parent:
            named = None if parent is None else str(NodeId(self.checkpoint, parent))
            raise NodeConflict(str(NodeId(self.checkpoint, node.name)), named)

    def _by_id(self, ids: Sequence[str]) -> dict[str, tuple[tuple[Any, ...], int]]:
        if not ids:
            return {}
        query = select(entries).where(
            entries.c.checkpoint_id == self.checkpoint, entries.c.id.in_(ids)
        )
        return {
            row["id"]: (
                (
                    row["collection"],
                    row["node"],
                    row["created_us"],
                    row["sha256"],
                    row["metadata"],
                ),
                row["seq"],
            )
            for row in self.connection.execute(query).mappings()
        }

    def _was_named(self, seq: int) -> bool:
        """Tell whether the snapshot had an entry that is there before, and remember that it has."""
        byte, bit = seq // 8, 1 << seq % 8
        before = bool(self._named[byte] & bit)
        self._named[byte] |= bit
        return before

    def _by_content(
        self, wanted: Sequence[SnapshotEntry], *, besides: Container[str]
    ) -> defaultdict[tuple[Any, ...], dict[str, str]]:
        """Return what is there of the chunk's nodes, times and bytes: ids by their metadata.

        What the chunk names by its id is left out: it has its own line.
        """
        found: defaultdict[tuple[Any, ...], dict[str, str]] = defaultdict(dict)
        for collection in Collection:
            instants = {to_us(item.created_at) for item in wanted if item.collection is collection}
            if not instants:
                continue
            query = select(
                entries.c.id,
                entries.c.collection,
                entries.c.node,
                entries.c.created_us,
                entries.c.sha256,
                entries.c.metadata,
            ).where(
                entries.c.checkpoint_id == self.checkpoint,
                entries.c.collection == collection.value,
                entries.c.created_us.in_(instants),
                # What the snapshot itself brought may well repeat itself under other ids.
                entries.c.seq <= self.row["last_seq"],
            )
            for entry_id, *content, metadata in self.connection.execute(query):
                if entry_id not in besides:
                    found[tuple(content)][metadata] = entry_id
        return found

    def _entry_row(self, entry: SnapshotEntry, entry_id: str) -> dict[str, Any]:
        self.row["changes"] += 1
        created_us = to_us(entry.created_at)
        self._newest_us = max(self._newest_us, created_us)
        return {
            "checkpoint_id": self.checkpoint,
            "id": entry_id,
            "collection": entry.collection.value,
            "node": entry.node or "",
            "text": entry.text,
            "metadata": entry.metadata_json,
            "created_us": created_us,
            "seq": self.row["changes"],
            "change": self.row["changes"],
            "sha256": entry.sha256,
            # Pending: it is embedded after the commit.
            "index_epoch": 0,
        }


def loader(
    connection: Connection,
    row: dict[str, Any],
    *,
    new_id: Callable[[], str],
    rename_conflicts: bool,
) -> Loader:
    """Return a loader for a checkpoint's locked row."""
    # What has a higher number later was brought by the snapshot itself.
    return Loader(connection, {**row, "last_seq": row["changes"]}, new_id, rename_conflicts)


def _superseding(entry: SnapshotEntry, here: dict[str, str | None]) -> SnapshotEntry:
    """Return a note that names those it supersedes as they are called here."""
    if not here or entry.collection is not Collection.REFERENCE:
        return entry
    metadata = json.loads(entry.metadata_json)
    told = notes.superseded_of(metadata)
    names = [name for old in told if (name := here.get(old, old)) is not None]
    if names == told:
        return entry
    metadata[notes.SUPERSEDES] = names
    return replace(entry, metadata_json=compact(metadata))


def _alike(entry: SnapshotEntry, there: Mapping[str, str]) -> str | None:
    """Return the id of what is there of an entry's content, rather with the same metadata."""
    return there.get(entry.metadata_json) or next(iter(there.values()), None)


def _content(entry: SnapshotEntry) -> tuple[str, str, int, bytes]:
    return (entry.collection.value, entry.node or "", to_us(entry.created_at), entry.sha256)


def _node_row(checkpoint: str, node: SnapshotNode, *, depth: int, seq: int) -> dict[str, Any]:
    return {
        "checkpoint_id": checkpoint,
        "name": node.name,
        "parent": node.parent,
        "depth": depth,
        "seq": seq,
        "eval_summary": node.eval_summary,
        "metadata": node.metadata_json,
        "created_us": to_us(node.created_at),
        "sealed_us": None if node.sealed_at is None else to_us(node.sealed_at),
        "token_epoch": 0,
    }
