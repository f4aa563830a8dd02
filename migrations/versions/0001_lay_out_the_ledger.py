"""Lay out the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lay out the ledger."""
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("last_entry_us", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("dimensions", sa.Integer(), nullable=True),
        sa.Column("index_epoch", sa.Integer(), nullable=False),
        sa.Column("core_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoints"),
        sa.UniqueConstraint("path", name="uq_checkpoints_path"),
    )
    op.create_index("ix_checkpoints_created_us", "checkpoints", ["created_us", "id"])

    op.create_table(
        "write_probe",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_write_probe"),
    )
    op.create_table(
        "access_log",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("entries", sa.Text(), nullable=False),
        sa.Column("refusal", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name="fk_access_log_checkpoints"
        ),
        sa.PrimaryKeyConstraint("checkpoint_id", "at_us", "id", name="pk_access_log"),
    )
    op.create_index("ix_access_log_at_us", "access_log", ["at_us"])

    op.create_table(
        "core_blocks",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name="fk_core_blocks_checkpoints"
        ),
        sa.PrimaryKeyConstraint("checkpoint_id", "label", name="pk_core_blocks"),
    )
    op.create_table(
        "entries",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("change", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("index_epoch", sa.Integer(), nullable=False),
        sa.Column("refused", sa.Text(), nullable=True),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name="fk_entries_checkpoints"
        ),
        sa.PrimaryKeyConstraint("checkpoint_id", "id", name="pk_entries"),
    )
    op.create_index(
        "ix_entries_change", "entries", ["checkpoint_id", "collection", "node", "change"]
    )
    op.create_index("ix_entries_indexing", "entries", ["checkpoint_id", "index_epoch", "seq"])
    op.create_index(
        "ix_entries_listing",
        "entries",
        ["checkpoint_id", "collection", "node", "created_us", "seq"],
    )
    op.create_index(
        "ix_entries_trace", "entries", ["checkpoint_id", "collection", "created_us", "seq"]
    )

    op.create_table(
        "idempotent_answers",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.LargeBinary(length=32), nullable=False),
        sa.Column("body_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name="fk_idempotent_answers_checkpoints"
        ),
        sa.PrimaryKeyConstraint("checkpoint_id", "scope", name="pk_idempotent_answers"),
    )
    op.create_index("ix_idempotent_answers_created_us", "idempotent_answers", ["created_us"])
    op.create_index("ix_idempotent_answers_scope", "idempotent_answers", ["scope"])

    op.create_table(
        "nodes",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("eval_summary", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("sealed_us", sa.BigInteger(), nullable=True),
        sa.Column("token_epoch", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["checkpoint_id", "parent"],
            ["nodes.checkpoint_id", "nodes.name"],
            name="fk_nodes_parent",
        ),
        sa.ForeignKeyConstraint(["checkpoint_id"], ["checkpoints.id"], name="fk_nodes_checkpoints"),
        sa.PrimaryKeyConstraint("checkpoint_id", "name", name="pk_nodes"),
    )
    op.create_index("ix_nodes_listing", "nodes", ["checkpoint_id", "seq"])
    op.create_index("ix_nodes_parent", "nodes", ["checkpoint_id", "parent"])

    op.create_table(
        "node_tokens",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["checkpoint_id", "node"],
            ["nodes.checkpoint_id", "nodes.name"],
            name="fk_node_tokens_nodes",
        ),
        sa.PrimaryKeyConstraint("checkpoint_id", "token_hash", name="pk_node_tokens"),
    )
    op.create_index("ix_node_tokens_token_hash", "node_tokens", ["token_hash"])


def downgrade() -> None:
    """Undo it."""
    op.drop_index("ix_node_tokens_token_hash", table_name="node_tokens")

    op.drop_table("node_tokens")
    op.drop_index("ix_nodes_parent", table_name="nodes")
    op.drop_index("ix_nodes_listing", table_name="nodes")

    op.drop_table("nodes")
    op.drop_index("ix_idempotent_answers_scope", table_name="idempotent_answers")
    op.drop_index("ix_idempotent_answers_created_us", table_name="idempotent_answers")

    op.drop_table("idempotent_answers")
    op.drop_index("ix_entries_trace", table_name="entries")
    op.drop_index("ix_entries_listing", table_name="entries")
    op.drop_index("ix_entries_indexing", table_name="entries")
    op.drop_index("ix_entries_change", table_name="entries")

    op.drop_table("entries")
    op.drop_table("core_blocks")
    op.drop_index("ix_access_log_at_us", table_name="access_log")

    op.drop_table("access_log")
    op.drop_table("write_probe")
    op.drop_index("ix_checkpoints_created_us", table_name="checkpoints")

    op.drop_table("checkpoints")
