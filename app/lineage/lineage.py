"""Who may see what: lineages, and the scopes that are made from them."""

from collections.abc import Collection as Names
from collections.abc import Iterable
from dataclasses import dataclass

from app.lineage.entry import Collection, Entry
from app.lineage.errors import ScopeViolation
from app.lineage.ids import NodeId, local_name


@dataclass(frozen=True, slots=True)
class Scope:
    """The places of one checkpoint and one collection that a read may touch.

    `nodes` are names, root first; None stands for the entries of no node (trace steps without a
    claim). `nodes=None` as a whole means every node: the operator's view of the trace. An entry
    that was superseded is in no scope.
    """

    checkpoint: str
    collection: Collection
    nodes: tuple[str | None, ...] | None

    def admits(self, entry: Entry) -> bool:
        """Tell whether the entry may be shown; asked of every hit's ledger row."""
        return (
            entry.checkpoint == self.checkpoint
            and entry.collection is self.collection
            and entry.superseded_by is None
            and (self.nodes is None or entry.node in self.nodes)
        )

    @property
    def node_ids(self) -> list[str]:
        """The global ids of the nodes in scope, root first."""
        return [f"{self.checkpoint}.{name}" for name in self.nodes or () if name is not None]


@dataclass(frozen=True, slots=True)
class Lineage:
    """A node and its ancestors' names, root first; the node itself is not among them."""

    node: NodeId
    ancestors: tuple[str, ...]

    @property
    def with_self(self) -> tuple[str, ...]:
        """The ancestors and the node."""
        return (*self.ancestors, self.node.name)

    def may_read(self, node: NodeId) -> bool:
        """Tell whether an executor of this node may read the other one."""
        return node.checkpoint == self.node.checkpoint and node.name in self.with_self

    def scope(self, *, include_self: bool = False, only: Names[str] | None = None) -> Scope:
        """Return the node entries in reach, narrowed to `only` (ids or names).

        Asking for more than the lineage is ScopeViolation, never silence.
        """
        reach = self.with_self if include_self else self.ancestors
        if only is not None:
            reach = self._narrowed(reach, only)
        return Scope(self.node.checkpoint, Collection.NODE_SCOPE, reach)

    def by_ancestor(self) -> list[Scope]:
        """Return each ancestor's entries as a scope of its own, root first."""
        return [
            Scope(self.node.checkpoint, Collection.NODE_SCOPE, (name,)) for name in self.ancestors
        ]

    def own(self) -> Scope:
        """Return the node's own entries."""
        return Scope(self.node.checkpoint, Collection.NODE_SCOPE, (self.node.name,))

    def trace(self) -> Scope:
        """Return the trace steps in reach: of the lineage, of the node, and of no node."""
        return Scope(self.node.checkpoint, Collection.REACT_STEP, (None, *self.with_self))

    def _narrowed(self, reach: Iterable[str], only: Names[str]) -> tuple[str, ...]:
        wanted = {local_name(text, checkpoint=self.node.checkpoint): text for text in only}
        kept = tuple(name for name in reach if name in wanted)
        if outside := [text for name, text in wanted.items() if name not in kept]:
            raise ScopeViolation(str(self.node), outside)
        return kept


def notes_of(checkpoint: str) -> Scope:
    """Return the notes that count: the same for every node."""
    return Scope(checkpoint, Collection.REFERENCE, (None,))


def daily_notes_of(checkpoint: str) -> Scope:
    """Return the daily notes: the same for every node."""
    return Scope(checkpoint, Collection.DAILY_NOTE, (None,))


def whole_trace(checkpoint: str) -> Scope:
    """Return every trace step of a checkpoint: the operator's view."""
    return Scope(checkpoint, Collection.REACT_STEP, None)
