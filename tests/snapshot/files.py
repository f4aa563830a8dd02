"""Snapshot files taken apart and put together by hand: the format is held to its page."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.support.client import Json

ENTRY_KINDS = ("node_scope", "react_step", "reference", "daily_note")

Line = Json | str | bytes
"""A line as an object, or as it is."""


def squeezed(block: bytes, times: int) -> bytes:
    """Pack a block repeated without ever holding it whole."""
    packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    return b"".join(packer.compress(block) for _ in range(times)) + packer.flush()


def unpacked(packed: bytes) -> list[bytes]:
    """Return the lines of a snapshot without their line feeds."""
    return gzip.decompress(packed).splitlines()


def records(packed: bytes) -> list[Json]:
    """Return the objects of a snapshot's lines."""
    return [json.loads(line) for line in unpacked(packed)]


def packed(lines: Iterable[Line]) -> bytes:
    """Pack lines as they are: neither their counts nor their digest is looked at."""
    return gzip.compress(b"".join(encoded(line) + b"\n" for line in lines), mtime=0)


def encoded(line: Line) -> bytes:
    """Return the bytes of a line."""
    if isinstance(line, bytes):
        return line
    text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
    return text.encode()


def sealed(lines: Sequence[Line]) -> bytes:
    """Pack lines and behind them the last line that fits them."""
    before = b"".join(encoded(line) + b"\n" for line in lines)
    kinds = [kind_of(line) for line in lines]
    end = {
        "kind": "end",
        "lines": before.count(b"\n"),
        "counts": {kind: kinds.count(kind) for kind in ("node", *ENTRY_KINDS) if kind in kinds},
        "sha256": hashlib.sha256(before).hexdigest(),
    }
    return packed([*lines, end])


def kind_of(line: Line) -> str | None:
    """Return the kind of a line, None where it is no readable object."""
    try:
        record = json.loads(encoded(line))
    except (ValueError, RecursionError):
        return None
    kind = record.get("kind") if isinstance(record, dict) else None
    return kind if isinstance(kind, str) else None


def changed(snapshot: bytes, change: Callable[[list[Json]], Any]) -> bytes:
    """Return a snapshot whose lines but the last were changed in place, lawfully ended again."""
    lines = records(snapshot)[:-1]
    change(lines)
    return sealed(lines)


def header(checkpoint: str = "exp1", **fields: Any) -> Json:
    """Return a first line."""
    line = {"kind": "header", "format": 1, "checkpoint": checkpoint, "name": None}
    return {**line, "metadata": {}, "model": "", **fields}


def node(name: str, parent: str | None = None, **fields: Any) -> Json:
    """Return the line of a node."""
    line = {"kind": "node", "name": name, "parent": parent, "eval_summary": None}
    return {**line, "metadata": {}, "created_at": 1_700_000_000.0, "sealed_at": None, **fields}


def entry(text: Any = "blue door", node_id: str | None = "root", **fields: Any) -> Json:
    """Return the line of an entry with the digest of its text."""
    where = {} if node_id is None else {"node_id": node_id}
    return {
        "kind": "react_step" if node_id is None else "node_scope",
        "id": hashlib.sha256(repr((text, node_id)).encode()).hexdigest()[:24],
        **where,
        "text": text,
        "metadata": {},
        "ts": 1_700_000_001.5,
        "sha256": hashlib.sha256(str(text).encode("utf-8", "surrogatepass")).hexdigest(),
        **fields,
    }


def foreign(text: str = "blue door", node_id: str = "root", **fields: Any) -> Json:
    """Return an entry as the tool of today's users writes it: no id and no digest."""
    line = {"kind": "node_scope", "node_id": node_id, "text": text, "metadata": {}}
    return {**line, "ts": 1_700_000_001.5, **fields}


def without(line: Mapping[str, Any], *keys: str) -> Json:
    """Return a line that lacks some of its keys."""
    return {key: value for key, value in line.items() if key not in keys}
