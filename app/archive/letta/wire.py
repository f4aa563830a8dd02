"""Letta's HTTP: the calls that we make, through its own client.

Nothing is retried by the client library: its defaults store a passage up to three times. Calls that
only read are made once more where the connection broke, since Letta closes one after an error 500
without saying so.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import httpx
from letta_client import AsyncLetta
from letta_client._response import AsyncAPIResponse
from letta_client.types.archives.passage_create_many_params import Passage as NewPassage
from pydantic import TypeAdapter, ValidationError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from app.archive.letta import answers
from app.archive.letta.answers import (
    Agent,
    ArchiveRow,
    Block,
    FoundPassage,
    StoredPassage,
)
from app.archive.letta.failures import Broken, Failures, Gone, Refused
from app.lineage.errors import ArchiveUnavailable

CONNECT_TIMEOUT_S = 5.0
MAX_CONNECTIONS = 100
# Letta's uvicorn closes idle connections after 5 s.
KEEPALIVE_S = 4.0
# The built-in handle of Letta: an agent must name a model, and ours never speaks.
MODEL = "letta/letta-free"
# The flat route's own bound.
FLAT_LIMIT = 100

T = TypeVar("T")


class Letta:
    """One Letta server; every call ends within `timeout_s` seconds, well or not."""

    def __init__(self, base_url: str, *, api_key: str | None, timeout_s: float) -> None:
        self._failures = Failures(timeout_s=timeout_s, api_key=api_key)
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE_S),
            # A redirect would carry the key and the texts to a host that nobody configured.
            follow_redirects=False,
        )
        self._client = AsyncLetta(
            base_url=base_url,
            max_retries=0,
            http_client=self._http,
        )
        # Not from the environment, where the client looks too: settings are read in one place.
        self._client.api_key = api_key

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # The server

    async def version(self) -> str:
        """Return the server's version."""
        found = await self._read(
            lambda: self._client.get("/v1/health/", cast_to=httpx.Response), answers.VERSION
        )
        return found.version

    async def count_agents(self) -> int:
        """Count all agents: a read that goes through to Letta's database."""
        return await self._read(
            lambda: self._client.get("/v1/agents/count", cast_to=httpx.Response), answers.COUNT
        )

    # Agents and archives

    async def create_agent(
        self,
        name: str,
        *,
        metadata: Mapping[str, object],
        blocks: Mapping[str, str],
        embedding: Mapping[str, Any],
    ) -> Agent:
        """Make an agent without tools, so that nothing but us edits its memory.

        `embedding` is the argument that says how it embeds: a handle or a whole configuration.
        """
        memory = [{"label": label, "value": value} for label, value in blocks.items()]
        return await self._call(
            self._client.agents.with_raw_response.create(
                name=name,
                model=MODEL,
                include_base_tools=False,
                memory_blocks=memory,  # type: ignore[arg-type]  # its own dictionary type
                metadata=dict(metadata),
                **embedding,
            ),
            answers.AGENT,
        )

    async def agents_named(self, name: str) -> list[Agent]:
        """Return the agents of a name, oldest first; names are not unique."""
        found = await self._read(
            lambda: self._client.get(
                "/v1/agents/",
                cast_to=httpx.Response,
                options={"params": {"name": name, "limit": 200}},
            ),
            answers.AGENTS,
        )
        return found[::-1]

    async def has_agent(self, agent_id: str) -> bool:
        """Tell whether an agent is there; of one that is gone, a listing is empty and no error."""
        return await self._has(f"/v1/agents/{agent_id}", answers.AGENT)

    async def delete_agent(self, agent_id: str) -> None:
        """Delete an agent; its archive and blocks stay. One that is not there is fine."""
        await self._delete(lambda: self._client.agents.with_raw_response.delete(agent_id))

    async def create_archive(
        self, name: str, *, description: str, embedding: Mapping[str, Any]
    ) -> ArchiveRow:
        """Make an archive."""
        return await self._call(
            self._client.archives.with_raw_response.create(
                name=name, description=description, **embedding
            ),
            answers.ARCHIVE,
        )

    async def archives_named(self, name: str) -> list[ArchiveRow]:
        """Return the archives of a name, oldest first; names are not unique."""
        found = await self._read(
            lambda: self._client.get(
                "/v1/archives/",
                cast_to=httpx.Response,
                options={"params": {"name": name, "limit": 200}},
            ),
            answers.ARCHIVES,
        )
        return found[::-1]

    async def has_archive(self, archive_id: str) -> bool:
        """Tell whether an archive is there."""
        return await self._has(f"/v1/archives/{archive_id}", answers.ARCHIVE)

    async def attach(self, *, agent_id: str, archive_id: str) -> None:
        """Attach an archive, the only one that an agent can have; again is fine."""
        await self._read(
            lambda: self._client.agents.archives.with_raw_response.attach(
                archive_id, agent_id=agent_id
            ),
            answers.ANYTHING,
        )

    async def delete_archive(self, archive_id: str) -> None:
        """Delete an archive with its passages; one that is not there is fine."""
        await self._delete(lambda: self._client.archives.with_raw_response.delete(archive_id))

    # Blocks

    async def blocks(self, agent_id: str) -> list[Block]:
        """Return an agent's blocks."""
        return await self._read(
            lambda: self._client.get(
                f"/v1/agents/{agent_id}/core-memory/blocks", cast_to=httpx.Response
            ),
            answers.BLOCKS,
        )

    async def set_block(self, agent_id: str, label: str, value: str) -> None:
        """Set a block; Busy where somebody else did at the same time."""
        await self._call(
            self._client.agents.blocks.with_raw_response.update(
                label, agent_id=agent_id, value=value
            ),
            answers.ANYTHING,
        )

    async def add_block(self, agent_id: str, label: str, value: str) -> None:
        """Give an agent a block that it does not have."""
        block = await self._call(
            self._client.blocks.with_raw_response.create(label=label, value=value), answers.BLOCK
        )
        await self._read(
            lambda: self._client.agents.blocks.with_raw_response.attach(
                block.id, agent_id=agent_id
            ),
            answers.ANYTHING,
        )

    async def delete_block(self, block_id: str) -> None:
        """Delete a block; one that is not there is fine."""
        await self._delete(lambda: self._client.blocks.with_raw_response.delete(block_id))

    # Passages

    async def insert(self, archive_id: str, passages: Sequence[NewPassage]) -> list[StoredPassage]:
        """Insert passages, all or none; Refused where one of them is at fault.

        Any other failure may have stored them all the same (`maybe_done`).
        """
        return await self._call(
            self._client.archives.passages.with_raw_response.create_many(
                archive_id, passages=passages
            ),
            answers.PASSAGES,
        )

    async def between(
        self, archive_id: str, first: datetime, last: datetime
    ) -> AsyncIterator[StoredPassage]:
        """Yield the passages of these instants, both included; needs no embedding.

        One instant shared by more than 100 passages hides those beyond.
        """
        seen: set[str] = set()
        while True:
            page = await self._flat(archive_id, first, last)
            for passage in page:
                if passage.id not in seen:
                    seen.add(passage.id)
                    yield passage
            if len(page) < FLAT_LIMIT or page[-1].created_at == first:
                return
            first = page[-1].created_at

    async def page(self, agent_id: str, *, after: str | None, limit: int) -> list[StoredPassage]:
        """Return a page of an agent's archive, oldest first, from behind a passage.

        An id that is gone looks like the end of the list.
        """
        params: dict[str, object] = {"limit": limit, "ascending": True}
        if after is not None:
            params["after"] = after
        return await self._read(
            lambda: self._client.get(
                f"/v1/agents/{agent_id}/archival-memory",
                cast_to=httpx.Response,
                options={"params": params},
            ),
            answers.PASSAGES,
        )

    async def search(
        self, agent_id: str, query: str, *, top_k: int, first: datetime, last: datetime
    ) -> list[FoundPassage]:
        """Return the `top_k` (0: all) nearest passages of these instants, nearest first."""
        found = await self._read(
            lambda: self._client.agents.passages.with_raw_response.search(
                agent_id,
                query=query,
                top_k=top_k,
                start_datetime=first,
                end_datetime=last,
            ),
            answers.RESULTS,
        )
        return found.results

    async def delete_passage(self, archive_id: str, passage_id: str) -> None:
        """Delete a passage; one that is not there is fine."""

        async def delete() -> Any:
            return await self._client.archives.passages.with_raw_response.delete(
                passage_id, archive_id=archive_id
            )

        try:
            await self._delete(delete)
        except Refused:  # it is of another archive: not there
            return

    async def _flat(self, archive_id: str, first: datetime, last: datetime) -> list[StoredPassage]:
        found = await self._read(
            lambda: self._client.passages.with_raw_response.search(
                archive_id=archive_id, start_date=first, end_date=last, limit=FLAT_LIMIT
            ),
            answers.WRAPPED,
        )
        return [item.passage for item in found]

    async def _has(self, path: str, shape: TypeAdapter[Any]) -> bool:
        try:
            await self._read(lambda: self._client.get(path, cast_to=httpx.Response), shape)
        except Gone:
            return False
        return True

    async def _delete(self, call: Callable[[], Awaitable[Any]]) -> None:
        try:
            await self._read(call, answers.ANYTHING)
        except Gone:
            return

    async def _read(self, call: Callable[[], Awaitable[Any]], shape: TypeAdapter[T]) -> T:
        """Make a call that may be repeated, once more where its connection broke."""
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(Broken), stop=stop_after_attempt(2), reraise=True
        ):
            with attempt:
                return await self._call(call(), shape)
        raise AssertionError("the last attempt returns or raises")

    async def _call(self, call: Awaitable[Any], shape: TypeAdapter[T]) -> T:
        async with self._failures.told():
            raw = await call
            body = await raw.read() if isinstance(raw, AsyncAPIResponse) else raw.content
        if not body:
            body = b"null"
        try:
            return shape.validate_json(body)
        except ValidationError:
            # Not chained: its text quotes the answer.
            raise ArchiveUnavailable(
                "Letta answered with something else than Letta 0.16.7 does", maybe_done=True
            ) from None
