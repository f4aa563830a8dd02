"""Trees of nodes, grown over HTTP."""

import uuid
from collections.abc import Iterator, Mapping

from tests.support.client import Api, Json, answer

Shape = Mapping[str, "Shape"]

EXAMPLE: Shape = {"root": {"a": {"a1": {}, "a2": {}}, "b": {}}}
"""root over a and b; a over a1 and a2: every kind of kinship in five nodes."""


def unique_checkpoint(prefix: str = "exp") -> str:
    """Return a checkpoint id that no other test uses, so that tests can share a service."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


class Tree:
    """One checkpoint and its nodes; `tree["a1"]` is the global id of the node named a1."""

    def __init__(self, api: Api, checkpoint: str) -> None:
        self.api = api
        self.checkpoint = checkpoint
        self.names: list[str] = []

    def __getitem__(self, name: str) -> str:
        if name not in self.names:
            raise KeyError(name)
        return f"{self.checkpoint}.{name}"

    def add(self, name: str, parent: str | None = None, *, eval_summary: str | None = None) -> str:
        """Create a node below the node named `parent`, or a root; return its global id."""
        answer(self.api.node(self.checkpoint, name, parent, eval_summary=eval_summary))
        self.names.append(name)
        return self[name]

    def write(self, name: str, *texts: str, metadata: Json | None = None) -> list[Json]:
        """Write entries as the node's executor, one after the other; return them as accepted."""
        return [answer(self.api.write(self[name], text, metadata=metadata)) for text in texts]

    def search(
        self,
        name: str,
        query: str,
        *,
        limit: int | None = None,
        include_self: bool | None = None,
        metadata: Json | None = None,
    ) -> list[str]:
        """Search as the node's executor and return the texts found, best first."""
        found = self.api.search(
            self[name],
            query,
            limit=limit,
            include_self=include_self,
            metadata=metadata,
            claim=self[name],
        )
        return [result["text"] for result in answer(found)["results"]]

    def own(self, name: str) -> list[str]:
        """Return the texts of the node's own entries, oldest first (the first page of them)."""
        return _texts(answer(self.api.entries(self[name], claim=self[name])))

    def inherited(self, name: str) -> list[str]:
        """Return the texts of the lineage's entries, root first (the first page of them)."""
        return _texts(answer(self.api.inherited(self[name], claim=self[name])))


def grow_tree(api: Api, checkpoint: str, shape: Shape = EXAMPLE) -> Tree:
    """Create a checkpoint and its nodes, parents first."""
    answer(api.checkpoint(checkpoint))
    tree = Tree(api, checkpoint)
    for name, parent in _parents_first(shape, None):
        tree.add(name, parent)
    return tree


def _parents_first(shape: Shape, parent: str | None) -> Iterator[tuple[str, str | None]]:
    for name, below in shape.items():
        yield name, parent
        yield from _parents_first(below, name)


def _texts(page: Json) -> list[str]:
    return [entry["text"] for entry in page["items"]]
