"""A worker's memory, for code that awaits; call for call the same as the one that blocks."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from app.client.answers import Entry, Found, Json, Node, Page, WorkingContext
from app.client.calls import CONCLUSIONS, Call, Calls, find_checkpoint
from app.client.environment import PathLike, WorkerSettings
from app.client.layer_answers import NotesFound, Recalled, Session
from app.client.transport import DEADLINE_S, TIMEOUT_S, AsyncTransport, Patience

T = TypeVar("T")


class AsyncLineageMemory:
    """The memory of the node that this worker executes, as LineageMemory has it.

    One instance belongs to one event loop, whose tasks may share it where it was given its node.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        checkpoint: str | PathLike | None = None,
        current_node: str | None = None,
        timeout_s: float = TIMEOUT_S,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._settings = WorkerSettings(url, api_key, checkpoint, current_node)
        self._transport = AsyncTransport(Patience(timeout_s, deadline_s))
        self._ids: dict[tuple[str, str], str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def add_memory(
        self, text: str, metadata: Json | None = None, node_id: str | None = None
    ) -> Entry:
        """Store an entry on the current node; it is on the disk when this returns."""
        return await self._send(lambda calls: calls.add_memory(text, metadata, node_id))

    async def search_memory(
        self,
        query: str | None,
        ancestor_ids: Sequence[str] | None = None,
        limit: int = 5,
        *,
        include_self: bool = False,
        metadata: Json | None = None,
        node_id: str | None = None,
    ) -> Found:
        """Return the best entries of the node's ancestors, or of those given.

        The node itself is searched with `include_self`, or where it is among those given.
        `metadata` keeps the entries whose metadata has these values; without a query, the node's
        eval_summary is the query.
        """
        return await self._send(
            lambda calls: calls.search_memory(
                query,
                ancestor_ids,
                limit,
                include_self=include_self,
                metadata=metadata,
                node_id=node_id,
            )
        )

    def get_node_memory(self, node_id: str | None = None) -> AsyncIterator[Entry]:
        """Walk through what the node itself wrote, oldest first."""
        return self._walk(lambda calls, cursor: calls.node_page(node_id, cursor))

    def get_inherited_memory(
        self, node_id: str | None = None, *, metadata: Json | None = None
    ) -> AsyncIterator[Entry]:
        """Walk through what the node's ancestors wrote, root first, where metadata matches."""
        return self._walk(lambda calls, cursor: calls.inherited_page(node_id, cursor, metadata))

    async def clear_node_memory(self, node_id: str | None = None) -> int:
        """Delete what the current node wrote; return how many entries went."""
        return await self._send(lambda calls: calls.clear_node_memory(node_id))

    async def get_experiment_context(self) -> dict[str, Any]:
        """Return the experiment's facts (goal, primary metric, hardware); `{}` until seeded."""
        return await self._send(lambda calls: calls.experiment_context())

    async def get_working_context(
        self, query: str | None = None, limit: int = 5, *, node_id: str | None = None
    ) -> WorkingContext:
        """Return all that a worker needs at its start, with every conclusion of the lineage."""
        started, cursor = await self._send(
            lambda calls: calls.working_context(query, limit, node_id)
        )
        if cursor is None:
            return started
        walk = self._walk(
            lambda calls, page: calls.inherited_page(node_id, page, CONCLUSIONS), cursor
        )
        rest = [entry async for entry in walk]
        return replace(started, inherited=(*started.inherited, *rest))

    async def add_trace_step(self, text: str, metadata: Json | None = None) -> Entry:
        """Store a step of the current node in the checkpoint's trace."""
        return await self._send(lambda calls: calls.add_trace_step(text, metadata))

    def get_trace(self) -> AsyncIterator[Entry]:
        """Walk through the steps of the lineage, the node and of no node, oldest first."""
        return self._walk(lambda calls, cursor: calls.trace_page(cursor))

    async def search_trace(
        self, query: str, limit: int = 5, *, metadata: Json | None = None
    ) -> Found:
        """Return the best of these steps."""
        return await self._send(lambda calls: calls.search_trace(query, limit, metadata))

    async def session(self, query: str | None = None, limit: int = 5) -> Session:
        """Return core memory, today's notes and, given a query, the notes that help most."""
        return await self._send(lambda calls: calls.session(query, limit))

    async def search_archival(
        self, query: str, limit: int = 5, *, topic: str | None = None
    ) -> NotesFound:
        """Return the best notes of the archive, which every node shares."""
        return await self._send(lambda calls: calls.search_archival(query, limit, topic))

    async def search_recall(self, query: str, limit: int = 5) -> Recalled:
        """Return the best of what happened: daily notes, and steps as search_trace finds them."""
        return await self._send(lambda calls: calls.search_recall(query, limit))

    async def create_node(
        self,
        name: str,
        parent: str | None = None,
        *,
        eval_summary: str | None = None,
        metadata: Json | None = None,
    ) -> Node:
        """Make a node below `parent`, or a root, or find it again.

        This is for the loop that grows the tree. It needs an API key where the service has keys.
        """
        return await self._send(
            lambda calls: calls.create_node(name, parent, eval_summary, metadata)
        )

    async def _send(self, call: Callable[[Calls], Call[T]]) -> T:
        return await self._transport.send(call(await self._calls()), self._settings.address())

    async def _walk(
        self, page_at: Callable[[Calls, str | None], Call[Page]], cursor: str | None = None
    ) -> AsyncIterator[Entry]:
        calls = await self._calls()  # one node for the whole walk
        while True:
            page = await self._transport.send(page_at(calls, cursor), self._settings.address())
            for entry in page.items:
                yield entry
            if (cursor := page.next_cursor) is None:
                return

    async def _calls(self) -> Calls:
        return Calls(await self._checkpoint(), self._settings.node())

    async def _checkpoint(self) -> str:
        where, address = self._settings.where(), self._settings.address()
        if isinstance(where, str):
            return where
        if address.with_token:
            return where.derived_id
        # Asked for, not derived: whoever made the checkpoint may have chosen another id.
        place = (address.url, where.path)
        if place not in self._ids:
            self._ids[place] = await self._transport.send(find_checkpoint(where), address)
        return self._ids[place]
