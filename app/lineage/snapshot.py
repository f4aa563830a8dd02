"""The lines of a snapshot: how each is written, and by which rules one is believed.

A snapshot is one JSON object a line. Lines of kind `node_scope`, `react_step` and `core_seed` keep
the meaning that the tool of today's users gives them, which ignores kinds that it does not know.
docs/snapshot.md describes the form, docs/snapshot.schema.json says it as a JSON Schema.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from app.lineage.core_memory import CONTEXT, EMPTY_BLOCKS, HUMAN, PERSONA
from app.lineage.entry import Collection, Entry, text_digest
from app.lineage.errors import InvalidInput, SnapshotRefused, TooLarge
from app.lineage.guard import Node
from app.lineage.ids import CHECKPOINT_ID, is_node_name, local_name
from app.lineage.instants import read_rfc3339
from app.lineage.json_rules import check_characters, check_object, compact
from app.lineage.texts import MAX_QUERY_BYTES, check_text

FORMAT = 1
HEADER, NODE, CORE_SEED, CORE_BLOCK, END = "header", "node", "core_seed", "core_block", "end"
ENTRY_KINDS = tuple(collection.value for collection in Collection)
# The others belong to the checkpoint as a whole.
OF_NODES = (Collection.NODE_SCOPE, Collection.REACT_STEP)
SEED_LABELS = (PERSONA, HUMAN, CONTEXT)
OTHER_LABELS = tuple(label for label in EMPTY_BLOCKS if label not in SEED_LABELS)
# As POST /checkpoints holds it.
MAX_NAME = 500
ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Until the year 2242.
EXACT_SECONDS = 2**33

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a snapshot of ours: whose it is, and with which model it was indexed."""

    checkpoint: str
    name: str | None
    metadata_json: str
    model: str


@dataclass(frozen=True, slots=True)
class SnapshotNode:
    """A place of the tree; `metadata_json` is compact JSON.

    `placed` is False where a foreign file only names the node: where it is known, it stays there.
    """

    name: str
    parent: str | None
    eval_summary: str | None
    metadata_json: str
    created_at: datetime
    sealed_at: datetime | None
    placed: bool = True


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """An entry; `id` is None in a file of another tool."""

    collection: Collection
    id: str | None
    node: str | None
    text: str
    metadata_json: str
    created_at: datetime
    sha256: bytes


@dataclass(frozen=True, slots=True)
class SnapshotBlocks:
    """Blocks of core memory by label, and when the newest of them was set."""

    blocks: Mapping[str, str]
    set_at: datetime


@dataclass(frozen=True, slots=True)
class End:
    """The last line of a snapshot of ours: what stands before it; `counts` are by kind."""

    lines: int
    counts: Mapping[str, int]
    sha256: str


Line: TypeAlias = Header | SnapshotNode | SnapshotEntry | SnapshotBlocks | End | None


def header_line(header: Header) -> str:
    """Write the first line."""
    return compact(
        {
            "kind": HEADER,
            "format": FORMAT,
            "checkpoint": header.checkpoint,
            "name": header.name,
            "metadata": json.loads(header.metadata_json),
            "model": header.model,
        }
    )


def node_line(node: Node) -> str:
    """Write a node."""
    return compact(
        {
            "kind": NODE,
            "name": node.id.name,
            "parent": node.parent,
            "eval_summary": node.eval_summary,
            "metadata": node.metadata,
            "created_at": _seconds(node.created_at),
            "sealed_at": None if node.sealed_at is None else _seconds(node.sealed_at),
        }
    )


def entry_line(entry: Entry) -> str:
    """Write an entry."""
    where = {} if entry.node is None else {"node_id": entry.node}
    return compact(
        {
            "kind": entry.collection.value,
            "id": entry.id,
            **where,
            "text": entry.text,
            "metadata": entry.metadata,
            "ts": _seconds(entry.created_at),
            "sha256": entry.sha256.hex(),
        }
    )


def block_lines(stored: SnapshotBlocks) -> list[str]:
    """Write core memory: the blocks that the other tool knows as one line, each other by itself."""
    if not stored.blocks:
        return []
    seconds = _seconds(stored.set_at)
    seed = {
        "kind": CORE_SEED,
        "persona": stored.blocks.get(PERSONA),
        "human": stored.blocks.get(HUMAN),
        "context": json.loads(stored.blocks[CONTEXT]) if CONTEXT in stored.blocks else None,
        "seeded_at": seconds,
    }
    others = [
        {"kind": CORE_BLOCK, "label": label, "value": value, "updated_at": seconds}
        for label, value in sorted(stored.blocks.items())
        if label not in SEED_LABELS
    ]
    return [compact(line) for line in (seed, *others)]


def end_line(end: End) -> str:
    """Write the last line."""
    counts = dict(sorted(end.counts.items()))
    return compact({"kind": END, "lines": end.lines, "counts": counts, "sha256": end.sha256})


def parse_line(
    number: int, raw: bytes, *, checkpoint: str, foreign: bool, max_text_bytes: int
) -> Line:
    """Read a line for a target checkpoint; None for a kind that only another tool knows.

    SnapshotRefused names the line and what is wrong, by the rules of HTTP writes. `foreign` is
    True in a file without a header: its entries have no ids and no digests.
    """
    try:
        return _line(_record(raw), checkpoint, foreign=foreign, max_text_bytes=max_text_bytes)
    except (InvalidInput, TooLarge) as error:
        raise SnapshotRefused(number, str(error)) from error


def parse_instant(value: object) -> datetime:
    """Read a Unix time in seconds, or an RFC 3339 time; one without a zone is UTC.

    What is finer than a microsecond is cut off.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return EPOCH + timedelta(seconds=value)
        if isinstance(value, str) and (instant := read_rfc3339(value)) is not None:
            return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput("its time is neither seconds since 1970 nor an RFC 3339 time")


def _record(raw: bytes) -> Json:
    try:
        record = DECODER.decode(raw.decode())
    except (ValueError, RecursionError):
        raise InvalidInput("it is not JSON in UTF-8") from None
    if not isinstance(record, dict):
        raise InvalidInput("it is no JSON object")
    check_characters(record, place=())
    return record


def _line(record: Json, checkpoint: str, *, foreign: bool, max_text_bytes: int) -> Line:
    kind = record.get("kind")
    if not isinstance(kind, str):
        raise InvalidInput("its kind is none of a snapshot")
    if kind == HEADER:
        return _header(record)
    if kind == NODE:
        return _node(record, checkpoint)
    if kind in ENTRY_KINDS:
        return _entry(record, checkpoint, foreign=foreign, max_text_bytes=max_text_bytes)
    if kind in {CORE_SEED, CORE_BLOCK}:
        return _blocks(record, max_text_bytes=max_text_bytes)
    if kind == END:
        return _end(record)
    if foreign:
        return None
    raise InvalidInput(f"its kind {kind!r} is none of a snapshot")


def _refuse_constant(name: str) -> None:
    raise InvalidInput(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> Json:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise InvalidInput("an object names a key twice")
    return value


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object)


def _header(record: Json) -> Header:
    version = record.get("format")
    if type(version) is not int or version != FORMAT:
        raise InvalidInput(f"its format is {version!r}; this service reads format {FORMAT}")
    checkpoint = record.get("checkpoint")
    if not isinstance(checkpoint, str) or not CHECKPOINT_ID.fullmatch(checkpoint):
        raise InvalidInput("its checkpoint is no checkpoint id")
    name = _optional_text(record, "name")
    if name is not None and len(name) > MAX_NAME:
        raise InvalidInput(f"its name has more than {MAX_NAME} characters")
    return Header(
        checkpoint,
        name,
        _metadata(record),
        _optional_text(record, "model") or "",
    )


def _node(record: Json, checkpoint: str) -> SnapshotNode:
    direction = _optional_text(record, "eval_summary")
    if direction is not None:
        check_text(direction, max_bytes=MAX_QUERY_BYTES, what="eval_summary", place=())
    sealed = record.get("sealed_at")
    parent = record.get("parent")
    return SnapshotNode(
        name=_name(record.get("name"), checkpoint),
        parent=None if parent is None else _name(parent, checkpoint),
        eval_summary=direction,
        metadata_json=_metadata(record),
        created_at=parse_instant(record.get("created_at")),
        sealed_at=None if sealed is None else parse_instant(sealed),
    )


def _entry(record: Json, checkpoint: str, *, foreign: bool, max_text_bytes: int) -> SnapshotEntry:
    collection = Collection(record["kind"])
    text = record.get("text")
    if not isinstance(text, str):
        raise InvalidInput("it has no text")
    check_text(text, max_bytes=max_text_bytes, place=())
    node = record.get("node_id")
    if node is None and collection is Collection.NODE_SCOPE:
        raise InvalidInput("it has no node_id")
    if node is not None and collection not in OF_NODES:
        raise InvalidInput("a note is of its checkpoint and of no node")
    return SnapshotEntry(
        collection=collection,
        id=_entry_id(record, foreign=foreign),
        node=None if node is None else _name(node, checkpoint),
        text=text,
        metadata_json=_metadata(record),
        created_at=parse_instant(record.get("ts")),
        sha256=_digest(record, text, foreign=foreign),
    )


def _entry_id(record: Json, *, foreign: bool) -> str | None:
    given = record.get("id")
    if given is None and foreign:
        return None
    if not isinstance(given, str) or not ENTRY_ID.fullmatch(given):
        raise InvalidInput("its id is none of an entry")
    return given


def _digest(record: Json, text: str, *, foreign: bool) -> bytes:
    given = record.get("sha256")
    actual = text_digest(text)
    if foreign and given is not None:
        raise InvalidInput("it has a sha256, so it is of a snapshot that has lost its header")
    if foreign or given == actual.hex():
        return actual
    raise InvalidInput("its sha256 is not that of its text")


def _blocks(record: Json, *, max_text_bytes: int) -> SnapshotBlocks:
    if record["kind"] == CORE_BLOCK:
        label, value = record.get("label"), record.get("value")
        if label not in OTHER_LABELS:
            raise InvalidInput("its label is none of a core_block")
        if not isinstance(value, str):
            raise InvalidInput("it has no value")
        blocks = {label: value}
        instant = record.get("updated_at")
    else:
        texts = {label: _optional_text(record, label) for label in (PERSONA, HUMAN)}
        blocks = {label: text for label, text in texts.items() if text is not None}
        if (context := record.get("context")) is not None:
            if not isinstance(context, dict):
                raise InvalidInput("its context is no JSON object")
            blocks[CONTEXT] = check_object(context, place=(), max_bytes=max_text_bytes)
        instant = record.get("seeded_at")
    for label, value in blocks.items():
        if len(value.encode()) > max_text_bytes:
            raise TooLarge(label, limit=max_text_bytes)
    return SnapshotBlocks(blocks, parse_instant(instant))


def _end(record: Json) -> End:
    lines, counts, digest = (record.get(name) for name in ("lines", "counts", "sha256"))
    if not isinstance(lines, int) or not isinstance(counts, dict) or not isinstance(digest, str):
        raise InvalidInput("it lacks lines, counts or sha256")
    return End(lines, counts, digest)


def _name(value: object, checkpoint: str) -> str:
    """Read a node's name; an id of the target checkpoint counts as its name."""
    name = local_name(value, checkpoint=checkpoint) if isinstance(value, str) else ""
    if not is_node_name(name, checkpoint=checkpoint):
        raise InvalidInput("it names a node as no node may be called")
    return name


def _metadata(record: Json) -> str:
    value = record.get("metadata", {})
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise InvalidInput("its metadata is no JSON object")
    return check_object(value, place=())


def _optional_text(record: Json, name: str) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"its {name} is no text")
    return value


def _seconds(instant: datetime) -> float | str:
    """Return Unix seconds, or RFC 3339 where a double is not as fine as a microsecond."""
    seconds = (instant - EPOCH) / timedelta(seconds=1)
    return seconds if abs(seconds) < EXACT_SECONDS else instant.isoformat()
