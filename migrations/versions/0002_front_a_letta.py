"""Front a Letta: claims on what is to be indexed, Letta's names for what it holds; snapshots."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

REFUSED = sa.text("refused IS NOT NULL")


def upgrade() -> None:
    """Add the columns and tables."""
    op.add_column(
        "checkpoints",
        sa.Column("node_changes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    op.add_column("entries", sa.Column("passage_id", sa.Text(), nullable=True))
    op.add_column("entries", sa.Column("claimed_by", sa.Text(), nullable=True))
    op.add_column("entries", sa.Column("claimed_until_us", sa.BigInteger(), nullable=True))
    op.add_column(
        "entries", sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.add_column("entries", sa.Column("retry_us", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_entries_refused",
        "entries",
        ["checkpoint_id", "retry_us"],
        sqlite_where=REFUSED,
        postgresql_where=REFUSED,
    )

    op.create_table(
        "letta_agents",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.Text(), nullable=False),
        sa.Column("index_epoch", sa.Integer(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("archive_id", sa.Text(), nullable=True),
        sa.Column("embedding", sa.Text(), nullable=True),
        sa.Column("made_by", sa.Text(), nullable=True),
        sa.Column("made_until_us", sa.BigInteger(), nullable=True),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("core_version", sa.BigInteger(), nullable=False),
        sa.Column("retired_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint(
            "checkpoint_id", "incarnation", "index_epoch", "collection", name="pk_letta_agents"
        ),
    )
    op.create_table(
        "letta_removals",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.Text(), nullable=False),
        sa.Column("index_epoch", sa.Integer(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("passage_id", sa.Text(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("due_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "checkpoint_id", "incarnation", "index_epoch", "entry_id", name="pk_letta_removals"
        ),
    )
    op.create_index("ix_letta_removals_due_us", "letta_removals", ["due_us"])


def downgrade() -> None:
    """Undo it."""
    op.drop_index("ix_letta_removals_due_us", table_name="letta_removals")
    op.drop_table("letta_removals")
    op.drop_table("letta_agents")
    op.drop_index("ix_entries_refused", table_name="entries")
    for column in ("retry_us", "tries", "claimed_until_us", "claimed_by", "passage_id"):
        op.drop_column("entries", column)
    op.drop_column("checkpoints", "node_changes")
