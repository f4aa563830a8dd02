"""Rows of core memory: one a block."""

from sqlalchemy import Connection, delete, insert, select, update

from app.db.instants import now_us
from app.db.tables import checkpoints, core_blocks
from app.lineage.errors import UnknownCheckpoint


def read(connection: Connection, checkpoint: str) -> tuple[dict[str, str], int]:
    """Return the blocks that were ever set, by label, and the version of them all.

    UnknownCheckpoint where the checkpoint was purged meanwhile.
    """
    query = select(core_blocks.c.label, core_blocks.c.value).where(
        core_blocks.c.checkpoint_id == checkpoint
    )
    blocks = {row.label: row.value for row in connection.execute(query)}
    version = select(checkpoints.c.core_version).where(checkpoints.c.id == checkpoint)
    if (found := connection.execute(version).scalar()) is None:
        raise UnknownCheckpoint(checkpoint)
    return blocks, found


def write(connection: Connection, checkpoint: str, blocks: dict[str, str]) -> None:
    """Set blocks and count the version up; the caller holds the checkpoint's lock."""
    if not blocks:
        return
    owned = core_blocks.c.checkpoint_id == checkpoint
    connection.execute(delete(core_blocks).where(owned, core_blocks.c.label.in_(blocks)))
    now = now_us()
    rows = [
        {"checkpoint_id": checkpoint, "label": label, "value": value, "updated_us": now}
        for label, value in blocks.items()
    ]
    connection.execute(insert(core_blocks), rows)
    connection.execute(
        update(checkpoints)
        .where(checkpoints.c.id == checkpoint)
        .values(core_version=checkpoints.c.core_version + 1)
    )
