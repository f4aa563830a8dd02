"""The first reading of a snapshot: all of it is judged before anything is changed."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from sys import getsizeof
from typing import IO

from app.lineage.errors import InvalidInput, LineageError, SnapshotRefused
from app.lineage.snapshot import (
    HEADER,
    NODE,
    End,
    Header,
    Line,
    SnapshotBlocks,
    SnapshotEntry,
    SnapshotNode,
    parse_line,
)
from app.memory.snapshot.framing import RawLine, read_lines
from app.memory.snapshot.note_rules import check_note

# Nodes and blocks are held in memory while a file is judged: so many, and so much of text in them.
MAX_NODES = 250_000
MAX_KEPT_BYTES = 64 * 1024 * 1024
# The other tool's files have a handful; lines that say nothing to us should not cost us minutes.
MAX_IGNORED = 100_000


class GivenUp(Exception):
    """Nobody waits for the snapshot to be read any more."""


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """A packed snapshot in a file, for a target checkpoint, and the limits it is held to."""

    file: IO[bytes]
    checkpoint: str
    max_bytes: int
    max_text_bytes: int
    given_up: threading.Event = field(default_factory=threading.Event)

    def lines(self, *, foreign: bool | None = None) -> Iterator[tuple[int, Line, RawLine]]:
        """Read from the start; without a word about `foreign`, the first line tells.

        GivenUp soon after `given_up` is set.
        """
        self.file.seek(0)
        for raw in read_lines(self.file, max_bytes=self.max_bytes, at_each_step=self._check_wanted):
            if foreign is None:
                foreign = not _is_header(raw.raw)
            line = parse_line(
                raw.number,
                raw.raw,
                checkpoint=self.checkpoint,
                foreign=foreign,
                max_text_bytes=self.max_text_bytes,
            )
            yield raw.number, line, raw

    def entries(self, *, foreign: bool) -> Iterator[tuple[int, SnapshotEntry]]:
        """Read the entries alone, with their lines, in the order of the file."""
        for number, line, _ in self.lines(foreign=foreign):
            if isinstance(line, SnapshotEntry):
                yield number, line

    def _check_wanted(self) -> None:
        if self.given_up.is_set():
            raise GivenUp


@dataclass(slots=True)
class CheckedSnapshot:
    """What a whole and lawful snapshot holds, but for its entries, which stay in the file.

    `nodes` are parents first, each with its line; a foreign file's unknown nodes are among them,
    as roots. `ignored` counts lines of kinds that only another tool knows.
    """

    header: Header | None = None
    nodes: list[tuple[int, SnapshotNode]] = field(default_factory=list)
    blocks: list[SnapshotBlocks] = field(default_factory=list)
    ignored: int = 0

    @property
    def foreign(self) -> bool:
        """True for a file that another tool wrote."""
        return self.header is None


@dataclass(slots=True)
class _Check:
    result: CheckedSnapshot = field(default_factory=CheckedSnapshot)
    nodes: dict[str, tuple[int, SnapshotNode]] = field(default_factory=dict)
    # The first line that speaks of a node, and the instant of its entry.
    mentions: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    end: tuple[End, RawLine] | None = None
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    kept_bytes: int = 0

    def take(self, number: int, line: Line, raw: RawLine) -> None:
        if self.end is not None:
            raise SnapshotRefused(number, "it stands behind the last line")
        match line:
            case Header():
                if self.lines:
                    raise SnapshotRefused(number, "a header stands in the first line alone")
                self.result.header = line
            case SnapshotNode():
                self._take_node(number, line)
            case SnapshotEntry():
                self._check_note(number, line)
                self.counts[line.collection.value] += 1
                if line.node is not None:
                    self.mentions.setdefault(line.node, (number, line.created_at))
                    self._check_count(number)
            case SnapshotBlocks():
                self._check_kept(number, line.blocks, *line.blocks.values())
                self.result.blocks.append(line)
            case End():
                self._take_end(line, raw)
            case None:
                self._ignore(number)
        self.lines += 1

    def finish(self) -> CheckedSnapshot:
        if not self.lines:
            raise SnapshotRefused(None, "it is empty")
        if self.result.header is not None:
            self._check_end()
        self._add_mentioned()
        self.result.nodes = list(self._parents_first())
        return self.result

    def _take_node(self, number: int, node: SnapshotNode) -> None:
        if node.name in self.nodes:
            raise SnapshotRefused(number, f"node {node.name!r} was there before")
        self.nodes[node.name] = (number, node)
        self.counts[NODE] += 1
        self._check_kept(number, node.eval_summary or "", node.metadata_json)
        self._check_count(number)

    def _check_note(self, number: int, entry: SnapshotEntry) -> None:
        try:
            check_note(entry)
        except InvalidInput as error:
            raise SnapshotRefused(number, str(error)) from error

    def _ignore(self, number: int) -> None:
        self.result.ignored += 1
        if self.result.ignored > MAX_IGNORED:
            raise SnapshotRefused(
                number, f"a file may have at most {MAX_IGNORED} lines of kinds that are not known"
            )

    def _take_end(self, end: End, raw: RawLine) -> None:
        if self.result.foreign:
            raise SnapshotRefused(raw.number, "it ends a snapshot that has lost its header")
        self.end = (end, raw)

    def _check_count(self, number: int) -> None:
        if max(len(self.nodes), len(self.mentions)) > MAX_NODES:
            raise SnapshotRefused(number, f"a snapshot may have at most {MAX_NODES} nodes")

    def _check_kept(self, number: int, *kept: object) -> None:
        self.kept_bytes += sum(map(getsizeof, kept))
        if self.kept_bytes > MAX_KEPT_BYTES:
            raise SnapshotRefused(number, "its nodes and core memory are too large together")

    def _check_end(self) -> None:
        if self.end is None:
            raise SnapshotRefused(None, "its last line is missing: it was cut off")
        end, raw = self.end
        told, found = (end.lines, end.sha256), (self.lines - 1, raw.sha256_before)
        if told != found or end.counts != self.counts:
            raise SnapshotRefused(
                raw.number, "the lines before are not those that it was written with"
            )

    def _add_mentioned(self) -> None:
        """Let a foreign file's unknown nodes be roots; in ours each node has its line."""
        for name, (number, instant) in self.mentions.items():
            if name in self.nodes:
                continue
            if not self.result.foreign:
                raise SnapshotRefused(number, f"its node {name!r} is not in the snapshot")
            self.nodes[name] = (
                number,
                SnapshotNode(name, None, None, "{}", instant, None, placed=False),
            )

    def _parents_first(self) -> Iterator[tuple[int, SnapshotNode]]:
        """Yield every node behind its parent; whoever is its own ancestor is refused."""
        done: set[str] = set()
        for name in self.nodes:
            chain: list[str] = []
            on_chain: set[str] = set()
            above: str | None = name
            while above is not None and above not in done and above in self.nodes:
                if above in on_chain:
                    raise SnapshotRefused(
                        self.nodes[above][0], f"node {above!r} is its own ancestor"
                    )
                on_chain.add(above)
                chain.append(above)
                above = self.nodes[above][1].parent
            for link in reversed(chain):
                done.add(link)
                yield self.nodes[link]


async def judge(source: SnapshotSource) -> CheckedSnapshot:
    """Read all of a snapshot. SnapshotRefused and TooLarge say what is wrong, and where.

    It takes about 2 s for 100,000 entries, in a thread, which ends soon where this is cancelled.
    """
    reading = asyncio.ensure_future(asyncio.to_thread(_judge, source))
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        source.given_up.set()
        # The caller closes the file next, which must not happen under the thread.
        with suppress(GivenUp, LineageError):
            await reading
        raise


def _judge(source: SnapshotSource) -> CheckedSnapshot:
    check = _Check()
    for number, line, raw in source.lines():
        check.take(number, line, raw)
    return check.finish()


def _is_header(raw: bytes) -> bool:
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):  # refused with its reason where it is parsed
        return False
    return isinstance(record, dict) and record.get("kind") == HEADER
