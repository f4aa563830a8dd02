"""Tell which note counts, and of which version each block of core memory is."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; a block that was set is of the version that its core memory has."""
    op.add_column("entries", sa.Column("superseded_by", sa.Text(), nullable=True))
    op.add_column(
        "core_blocks",
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    blocks = sa.table("core_blocks", sa.column("checkpoint_id"), sa.column("version"))
    checkpoints = sa.table("checkpoints", sa.column("id"), sa.column("core_version"))
    version = sa.select(checkpoints.c.core_version).where(
        checkpoints.c.id == blocks.c.checkpoint_id
    )
    op.execute(sa.update(blocks).values(version=version.scalar_subquery()))


def downgrade() -> None:
    """Undo it."""
    op.drop_column("core_blocks", "version")
    op.drop_column("entries", "superseded_by")
