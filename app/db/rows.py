"""Rows of the tables as the objects of the rules."""

import json
from sys import intern
from typing import TypeAlias

from sqlalchemy import RowMapping

from app.db.instants import from_us
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Collection, Entry
from app.lineage.guard import Node
from app.lineage.ids import NodeId

Row: TypeAlias = RowMapping


def to_checkpoint(row: Row) -> Checkpoint:
    """Read a row of `checkpoints`."""
    return Checkpoint(
        id=row["id"],
        incarnation=row["incarnation"],
        path=row["path"],
        name=row["name"],
        metadata=json.loads(row["metadata"]),
        created_at=from_us(row["created_us"]),
        model=row["model"],
        dimensions=row["dimensions"],
        index_epoch=row["index_epoch"],
    )


def to_node(row: Row) -> Node:
    """Read a row of `nodes`."""
    return Node(
        id=NodeId(row["checkpoint_id"], row["name"]),
        parent=row["parent"],
        depth=row["depth"],
        eval_summary=row["eval_summary"],
        metadata=json.loads(row["metadata"]),
        created_at=from_us(row["created_us"]),
        sealed_at=None if row["sealed_us"] is None else from_us(row["sealed_us"]),
        token_epoch=row["token_epoch"],
    )


def to_entry(row: Row, *, index_epoch: int) -> Entry:
    """Read a row of `entries` of a checkpoint whose index is at this epoch."""
    superseded_by = row["superseded_by"]
    current = row["index_epoch"] == index_epoch and superseded_by is None
    return Entry(
        id=row["id"],
        # One string for all entries of a node: a cache holds a hundred thousand of them.
        checkpoint=intern(row["checkpoint_id"]),
        collection=Collection(row["collection"]),
        node=intern(row["node"]) or None,
        text=row["text"],
        metadata=json.loads(row["metadata"]),
        created_at=from_us(row["created_us"]),
        seq=row["seq"],
        sha256=row["sha256"],
        indexed=current and row["refused"] is None,
        refused=row["refused"] if current else None,
        passage_id=row["passage_id"] if current else None,
        superseded_by=superseded_by,
    )
