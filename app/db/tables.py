"""The tables. Every key leads with the checkpoint, so that a distributed database can shard by it.

Instants are whole microseconds since the epoch, UTC: they sort, compare and round-trip alike on
SQLite and PostgreSQL. JSON is kept as the compact text received, since neither database's own JSON
type keeps key order and number forms.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", Text, primary_key=True),
    # Tells a purged and re-created checkpoint from its former self.
    Column("incarnation", Text, nullable=False),
    Column("path", Text, unique=True),
    Column("name", Text),
    Column("metadata", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    # Counts every change of an entry; rows carry the count as `seq` and `change`.
    Column("changes", BigInteger, nullable=False),
    # The newest entry's instant: a clock that steps back must not reorder a writer's entries.
    Column("last_entry_us", BigInteger, nullable=False),
    # Counts what makes cached entries void: a clear, a reindex.
    Column("generation", BigInteger, nullable=False),
    # What the vectors were made with; an entry is indexed where its `index_epoch` is this one.
    Column("model", Text),
    Column("dimensions", Integer),
    Column("index_epoch", Integer, nullable=False),
    Column("core_version", BigInteger, nullable=False),
    # Counts every change of a node, so that a snapshot knows whether it is of today.
    Column("node_changes", BigInteger, nullable=False, server_default=text("0")),
)
Index("ix_checkpoints_created_us", checkpoints.c.created_us, checkpoints.c.id)

nodes = Table(
    "nodes",
    metadata,
    Column("checkpoint_id", Text, ForeignKey("checkpoints.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("parent", Text),
    Column("depth", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("eval_summary", Text),
    Column("metadata", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("sealed_us", BigInteger),
    Column("token_epoch", Integer, nullable=False),
    PrimaryKeyConstraint("checkpoint_id", "name"),
    ForeignKeyConstraint(
        ["checkpoint_id", "parent"], ["nodes.checkpoint_id", "nodes.name"], name="fk_nodes_parent"
    ),
)
Index("ix_nodes_listing", nodes.c.checkpoint_id, nodes.c.seq)
# Without it, each deleted node would look through all others for its children.
Index("ix_nodes_parent", nodes.c.checkpoint_id, nodes.c.parent)

entries = Table(
    "entries",
    metadata,
    Column("checkpoint_id", Text, ForeignKey("checkpoints.id"), nullable=False),
    Column("id", Text, nullable=False),
    Column("collection", Text, nullable=False),
    # Empty for a trace step of no node: a key column compares better than NULL does.
    Column("node", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("change", BigInteger, nullable=False),
    Column("sha256", LargeBinary(32), nullable=False),
    Column("index_epoch", Integer, nullable=False),
    Column("refused", Text),
    # float32, little-endian, as many as the checkpoint's dimensions.
    Column("vector", LargeBinary),
    # What the archive calls it, where the archive is elsewhere.
    Column("passage_id", Text),
    # Which replica takes it to the archive, and until when no other will. The name stays until the
    # outcome is known: whoever takes over sees that the archive may have the entry already.
    Column("claimed_by", Text),
    Column("claimed_until_us", BigInteger),
    # How often the archive would not have it, and when it is tried again.
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("retry_us", BigInteger),
    # The entry that took its place: it is kept and readable, but no search finds it.
    Column("superseded_by", Text),
    PrimaryKeyConstraint("checkpoint_id", "id"),
)
Index(
    "ix_entries_listing",
    entries.c.checkpoint_id,
    entries.c.collection,
    entries.c.node,
    entries.c.created_us,
    entries.c.seq,
)
Index(
    "ix_entries_change",
    entries.c.checkpoint_id,
    entries.c.collection,
    entries.c.node,
    entries.c.change,
)
Index(
    "ix_entries_trace",
    entries.c.checkpoint_id,
    entries.c.collection,
    entries.c.created_us,
    entries.c.seq,
)
Index("ix_entries_indexing", entries.c.checkpoint_id, entries.c.index_epoch, entries.c.seq)
# Few, if any: those that are tried again ever more rarely.
Index(
    "ix_entries_refused",
    entries.c.checkpoint_id,
    entries.c.retry_us,
    sqlite_where=entries.c.refused.is_not(None),
    postgresql_where=entries.c.refused.is_not(None),
)

core_blocks = Table(
    "core_blocks",
    metadata,
    Column("checkpoint_id", Text, ForeignKey("checkpoints.id"), nullable=False),
    Column("label", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    # Core memory's version that the block was written with.
    Column("version", BigInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("checkpoint_id", "label"),
)

node_tokens = Table(
    "node_tokens",
    metadata,
    Column("checkpoint_id", Text, nullable=False),
    Column("token_hash", LargeBinary(32), nullable=False),
    Column("node", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("checkpoint_id", "token_hash"),
    ForeignKeyConstraint(
        ["checkpoint_id", "node"],
        ["nodes.checkpoint_id", "nodes.name"],
        name="fk_node_tokens_nodes",
    ),
)
Index("ix_node_tokens_token_hash", node_tokens.c.token_hash)

idempotent_answers = Table(
    "idempotent_answers",
    metadata,
    Column("checkpoint_id", Text, ForeignKey("checkpoints.id"), nullable=False),
    # SHA-256 over credential, method, path and key.
    Column("scope", LargeBinary(32), nullable=False),
    Column("body_sha256", LargeBinary(32), nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("checkpoint_id", "scope"),
)
# The create of a checkpoint is repeated before its id is known.
Index("ix_idempotent_answers_scope", idempotent_answers.c.scope)
Index("ix_idempotent_answers_created_us", idempotent_answers.c.created_us)

access_log = Table(
    "access_log",
    metadata,
    Column("checkpoint_id", Text, ForeignKey("checkpoints.id"), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    # Breaks ties of two replicas' records of one microsecond.
    Column("id", Text, nullable=False),
    Column("operation", Text, nullable=False),
    # The claim as sent: who read or wrote; NULL for an operator.
    Column("reader", Text),
    Column("target", Text),
    Column("query", Text),
    Column("entries", Text, nullable=False),
    # The problem's slug where the access was refused.
    Column("refusal", Text),
    PrimaryKeyConstraint("checkpoint_id", "at_us", "id"),
)
Index("ix_access_log_at_us", access_log.c.at_us)

# One row a replica may overwrite at any time: readiness is proved by a write, not supposed.
write_probe = Table(
    "write_probe",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("at_us", BigInteger, nullable=False),
)

# Letta's side of a checkpoint: an agent and its archive for each collection. A row outlives its
# checkpoint until Letta has let go of both, so it refers to none.
letta_agents = Table(
    "letta_agents",
    metadata,
    Column("checkpoint_id", Text, nullable=False),
    Column("incarnation", Text, nullable=False),
    Column("index_epoch", Integer, nullable=False),
    Column("collection", Text, nullable=False),
    Column("agent_id", Text),
    Column("archive_id", Text),
    # The embedding configuration that Letta froze into both, as JSON.
    Column("embedding", Text),
    # Which replica is making them, and until when no other will.
    Column("made_by", Text),
    Column("made_until_us", BigInteger),
    Column("ready", Boolean, nullable=False),
    # The version of core memory that the agent's blocks hold.
    Column("core_version", BigInteger, nullable=False),
    # From when on Letta's side is to be removed.
    Column("retired_us", BigInteger),
    PrimaryKeyConstraint("checkpoint_id", "incarnation", "index_epoch", "collection"),
)

# Passages whose entries were cleared: Letta is told until it has let go of them.
letta_removals = Table(
    "letta_removals",
    metadata,
    Column("checkpoint_id", Text, nullable=False),
    Column("incarnation", Text, nullable=False),
    Column("index_epoch", Integer, nullable=False),
    Column("collection", Text, nullable=False),
    Column("entry_id", Text, nullable=False),
    # NULL where it is not known whether Letta has it, and what it calls it.
    Column("passage_id", Text),
    Column("created_us", BigInteger, nullable=False),
    # Not before: a replica may still be sending the entry.
    Column("due_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("checkpoint_id", "incarnation", "index_epoch", "entry_id"),
)
Index("ix_letta_removals_due_us", letta_removals.c.due_us)
