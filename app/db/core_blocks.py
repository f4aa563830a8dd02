"""Rows of core memory: one a block."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from app.db.instants import now_us
from app.db.tables import checkpoints, core_blocks
from app.lineage.errors import UnknownCheckpoint


@dataclass(frozen=True, slots=True)
class StoredBlocks:
    """The blocks that were ever set, and their versions, by label; the version of them all."""

    blocks: Mapping[str, str]
    versions: Mapping[str, int]
    version: int


def read(connection: Connection, checkpoint: str) -> StoredBlocks:
    """Return what is stored; UnknownCheckpoint where the checkpoint was purged meanwhile."""
    # The version first: one that is older than the blocks refuses an edit, a newer one loses one.
    version = select(checkpoints.c.core_version).where(checkpoints.c.id == checkpoint)
    if (found := connection.execute(version).scalar()) is None:
        raise UnknownCheckpoint(checkpoint)
    query = select(core_blocks.c.label, core_blocks.c.value, core_blocks.c.version).where(
        core_blocks.c.checkpoint_id == checkpoint
    )
    rows = connection.execute(query).all()
    return StoredBlocks(
        blocks={row.label: row.value for row in rows},
        versions={row.label: row.version for row in rows},
        version=found,
    )


def write(connection: Connection, checkpoint: str, blocks: dict[str, str]) -> None:
    """Set blocks and count the version up; the caller holds the checkpoint's lock.

    Each block set is of the new version.
    """
    if not blocks:
        return
    owned = core_blocks.c.checkpoint_id == checkpoint
    connection.execute(delete(core_blocks).where(owned, core_blocks.c.label.in_(blocks)))
    counted = (
        update(checkpoints)
        .where(checkpoints.c.id == checkpoint)
        .values(core_version=checkpoints.c.core_version + 1)
        .returning(checkpoints.c.core_version)
    )
    same = {
        "checkpoint_id": checkpoint,
        "updated_us": now_us(),
        "version": connection.execute(counted).scalar_one(),
    }
    rows = [{**same, "label": label, "value": value} for label, value in blocks.items()]
    connection.execute(insert(core_blocks), rows)
