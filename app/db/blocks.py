"""The cache of entries and vectors by node: the hot path of a search.

This is one of the two places that leave SQLAlchemy's way (the other is the group write). A search
whose scope is cached reads no row at all: an indexed read through SQLAlchemy costs 0.12 ms and a
thread hop 0.1 ms, against 0.1 ms for the whole ranking of 200 entries. A node only ever appends, so
a block is read once and then extended by what the writer thread commits.

On SQLite this process is the only writer, and the cache is the truth. On PostgreSQL other replicas
write too: each search reads the checkpoint's counters once, and fetches what changed since.

Everything here happens on the event loop, but for the reading itself; so nothing is locked.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from sqlalchemy import Connection

from app.db import checkpoints as checkpoint_rows
from app.db import entries as entry_rows
from app.db.events import CheckpointChanged, EntryStored, NodeCleared
from app.db.vectors import Vector, Vectors
from app.lineage.entry import Collection, Entry
from app.lineage.errors import UnknownCheckpoint
from app.lineage.lineage import Scope

# What an entry costs beside its text and vector: by how much the resident memory of a service grew
# that read 27,000 entries of the usual form, the heap's gaps included (`python -m bench memory`;
# 1,900), and a tenth more for what searches under way still hold of evicted blocks.
ENTRY_OVERHEAD_BYTES = 2_100
FIRST_CAPACITY = 8
# Every node of the collection in one block: the operator's view of the trace.
WHOLE = "*"


T = TypeVar("T")


class BlockKey(NamedTuple):
    """Which entries a block holds; `node` is a name, "" for no node, or WHOLE."""

    checkpoint: str
    collection: Collection
    node: str

    def scope(self) -> Scope:
        """Return the scope that reads the block's entries."""
        nodes = None if self.node == WHOLE else (self.node or None,)
        return Scope(self.checkpoint, self.collection, nodes)


class State(NamedTuple):
    """A checkpoint's counters at one instant; a block of other first two is void."""

    incarnation: str
    generation: int
    changes: int
    index_epoch: int


@dataclass(slots=True)
class Block:
    """The entries of one node, in the order in which they became searchable.

    Row i of `vectors` belongs to `entries[i]`; rows beyond are room to grow. Rows are only added,
    so that a reader that took `entries` and `vectors` may go on in another thread; where one is
    superseded, both are made anew without it.
    """

    state: State
    entries: list[Entry] = field(default_factory=list)
    pending: dict[str, Entry] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    # Reads of replicas may come in any order: what was superseded must not come back.
    superseded: set[str] = field(default_factory=set)
    size_bytes: int = 0
    _room: Vectors | None = None

    def put(self, entry: Entry, vector: Vector | None) -> None:
        """Add an entry, or note that it got its vector (or never will); doing so twice is fine.

        One that was superseded is taken out.
        """
        if entry.superseded_by is not None:
            self._take_out(entry.id)
            return
        if entry.id in self.rows or entry.id in self.superseded:
            return
        if self.pending.pop(entry.id, None) is not None:
            self.size_bytes -= _size_of(entry)
        if vector is not None:
            self.rows[entry.id] = len(self.entries)
            self._append(vector)
            self.entries.append(entry)
            self.size_bytes += _size_of(entry)
        elif entry.pending:
            self.pending[entry.id] = entry
            self.size_bytes += _size_of(entry)

    @property
    def vectors(self) -> Vectors:
        """The vectors, shape (len(entries), dimensions)."""
        if self._room is None:
            return np.empty((0, 0), dtype=np.float32)
        return self._room[: len(self.entries)]

    def find(self, entry_id: str) -> Entry | None:
        """Return a searchable entry of this block."""
        row = self.rows.get(entry_id)
        return None if row is None else self.entries[row]

    def _take_out(self, entry_id: str) -> None:
        self.superseded.add(entry_id)
        if (waiting := self.pending.pop(entry_id, None)) is not None:
            self.size_bytes -= _size_of(waiting)
        if (row := self.rows.get(entry_id)) is None:
            return
        self.size_bytes -= _size_of(self.entries[row])
        vectors = np.delete(self.vectors, row, axis=0)
        self.entries = [*self.entries[:row], *self.entries[row + 1 :]]
        self.rows = {entry.id: place for place, entry in enumerate(self.entries)}
        self.size_bytes += vectors.nbytes - (0 if self._room is None else self._room.nbytes)
        self._room = vectors

    def _append(self, vector: Vector) -> None:
        row = len(self.entries)
        if self._room is None:
            self._room = self._rooms(FIRST_CAPACITY, len(vector))
        elif row == len(self._room):
            larger = self._rooms(row + (row >> 2) + 1, len(vector))
            larger[:row] = self._room
            self.size_bytes -= self._room.nbytes
            self._room = larger
        self._room[row] = vector

    def _rooms(self, rows: int, dimensions: int) -> Vectors:
        room = np.empty((rows, dimensions), dtype=np.float32)
        self.size_bytes += room.nbytes
        return room


@dataclass(slots=True)
class _Loading:
    """A block on its way from the database, and the commits that it may have missed."""

    done: "asyncio.Future[None]"
    events: list[EntryStored | NodeCleared] = field(default_factory=list)
    void: bool = False


class Reader(Protocol):
    """Runs a query in a read transaction, off the event loop."""

    async def __call__(self, query: Callable[[Connection], T]) -> T:
        """Return what the query returns."""


@dataclass(frozen=True, slots=True)
class _Read:
    state: State
    blocks: dict[BlockKey, Block]
    changed: dict[BlockKey, list[tuple[Entry, Vector | None]]]


class Blocks:
    """The blocks in memory, bounded in bytes; the least recently used make room."""

    def __init__(self, read: Reader, *, max_bytes: int, sole_writer: bool) -> None:
        self._read = read
        self._max_bytes = max_bytes
        self._sole_writer = sole_writer
        self._blocks: OrderedDict[BlockKey, Block] = OrderedDict()
        self._loading: dict[BlockKey, _Loading] = {}
        self._keys: dict[str, set[BlockKey]] = {}
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """What the cached blocks take, by the same estimate that bounds them."""
        return self._bytes

    async def load(self, scope: Scope) -> list[Block]:
        """Return the blocks of a scope, holding all that was committed before the call."""
        keys = _keys_of(scope)
        if self._sole_writer and (cached := self._cached(keys)) is not None:
            return cached
        while waits := [self._loading[key].done for key in keys if key in self._loading]:
            await asyncio.wait(waits)
        while (fetched := await self._fetch(scope.checkpoint, keys)) is None:
            pass
        return fetched

    def apply(self, event: EntryStored | NodeCleared | CheckpointChanged) -> None:
        """Make a commit visible in what is cached, or on its way to be."""
        if isinstance(event, CheckpointChanged):
            self._void(event.checkpoint)
            return
        for key in _keys_touched(event):
            if (loading := self._loading.get(key)) is not None:
                loading.events.append(event)
            if (block := self._blocks.get(key)) is not None:
                self._apply_to(key, block, event)

    def _cached(self, keys: Sequence[BlockKey]) -> list[Block] | None:
        found = []
        for key in keys:
            if (block := self._blocks.get(key)) is None:
                return None
            self._blocks.move_to_end(key)
            found.append(block)
        return found

    def _void(self, checkpoint: str) -> None:
        for key in list(self._keys.get(checkpoint, ())):
            self._drop(key)
        for key, loading in self._loading.items():
            loading.void |= key.checkpoint == checkpoint

    async def _fetch(self, checkpoint: str, keys: Sequence[BlockKey]) -> list[Block] | None:
        """Read what is missing or may have changed; None where it was void before it was here."""
        held = {key: block for key in keys if (block := self._blocks.get(key)) is not None}
        since = {} if self._sole_writer else {key: block.state for key, block in held.items()}
        wanted = [key for key in keys if key not in held or key in since]
        loading = {key: _Loading(asyncio.get_running_loop().create_future()) for key in wanted}
        # Two fetches may extend one held block at a time; only a block not yet here is waited for.
        fresh = {key: item for key, item in loading.items() if key not in held}
        self._loading |= fresh
        try:
            read = await self._read(lambda connection: _read(connection, checkpoint, wanted, since))
        finally:
            for key, item in fresh.items():
                del self._loading[key]
                item.done.set_result(None)
        if any(item.void for item in fresh.values()):
            return None
        for key in wanted:
            held[key] = self._install(key, read, held.get(key), fresh.get(key))
        return [held[key] for key in keys]

    def _install(
        self, key: BlockKey, read: _Read, held: Block | None, loading: _Loading | None
    ) -> Block:
        if (block := read.blocks.get(key)) is None:
            assert held is not None
            block = held
            before = block.size_bytes
            for entry, vector in read.changed.get(key, ()):
                block.put(entry, vector)
            block.state = max(block.state, read.state, key=lambda state: state.changes)
            if self._blocks.get(key) is block:
                self._bytes += block.size_bytes - before
            return block
        for event in loading.events if loading else ():
            block = _after(block, event)
        self._keep(key, block)
        return block

    def _apply_to(self, key: BlockKey, block: Block, event: EntryStored | NodeCleared) -> None:
        if isinstance(event, NodeCleared):
            self._drop(key)
            return
        before = block.size_bytes
        block.put(event.entry, event.vector)
        self._bytes += block.size_bytes - before
        self._make_room()

    def _keep(self, key: BlockKey, block: Block) -> None:
        self._drop(key)
        if block.size_bytes > self._max_bytes:
            return
        self._blocks[key] = block
        self._keys.setdefault(key.checkpoint, set()).add(key)
        self._bytes += block.size_bytes
        self._make_room()

    def _make_room(self) -> None:
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._blocks)))

    def _drop(self, key: BlockKey) -> None:
        if (block := self._blocks.pop(key, None)) is None:
            return
        self._bytes -= block.size_bytes
        keys = self._keys[key.checkpoint]
        keys.discard(key)
        if not keys:
            del self._keys[key.checkpoint]


def _size_of(entry: Entry) -> int:
    return ENTRY_OVERHEAD_BYTES + len(entry.text)


def _keys_of(scope: Scope) -> list[BlockKey]:
    names = (WHOLE,) if scope.nodes is None else scope.nodes
    return [BlockKey(scope.checkpoint, scope.collection, name or "") for name in names]


def _keys_touched(event: EntryStored | NodeCleared) -> Iterable[BlockKey]:
    if isinstance(event, NodeCleared):
        yield BlockKey(event.node.checkpoint, event.collection, event.node.name)
        return
    entry = event.entry
    yield BlockKey(entry.checkpoint, entry.collection, entry.node or "")
    if entry.collection is not Collection.NODE_SCOPE:
        yield BlockKey(entry.checkpoint, entry.collection, WHOLE)


def _after(block: Block, event: EntryStored | NodeCleared) -> Block:
    if isinstance(event, NodeCleared):
        return Block(block.state)
    block.put(event.entry, event.vector)
    return block


def _read(
    connection: Connection,
    checkpoint: str,
    keys: Sequence[BlockKey],
    since: dict[BlockKey, State],
) -> _Read:
    """Read, in one transaction, the counters and what is new or not yet in memory."""
    state = checkpoint_rows.state(connection, checkpoint)
    if state is None:
        raise UnknownCheckpoint(checkpoint)
    now = State(*state)
    blocks: dict[BlockKey, Block] = {}
    changed: dict[BlockKey, list[tuple[Entry, Vector | None]]] = {}
    for key in keys:
        held = since.get(key)
        if held is None or held[:2] != now[:2]:
            blocks[key] = _whole(connection, key, now)
        elif held.changes < now.changes:
            changed[key] = [
                (entry, vector)
                for entry, vector in entry_rows.load(
                    connection, key.scope(), index_epoch=now.index_epoch, since_change=held.changes
                )
            ]
    return _Read(now, blocks, changed)


def _whole(connection: Connection, key: BlockKey, state: State) -> Block:
    block = Block(state)
    rows = entry_rows.load(connection, key.scope(), index_epoch=state.index_epoch, since_change=0)
    for entry, vector in rows:
        block.put(entry, vector)
    return block
