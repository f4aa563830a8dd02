"""The agents and archives on Letta's side: made once, found again, removed without a rest.

Letta has no unique names and no keys for a repeated create, and an answer may be lost. So a row of
ours says who makes a pair, what was made is written down at once, and whoever goes on after a
broken attempt looks for what it left: agents by their metadata, archives by their description.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from weakref import WeakValueDictionary

from app.archive.letta.answers import Agent, ArchiveRow
from app.archive.letta.embeddings import Embedding
from app.archive.letta.wire import Letta
from app.db import letta as rows
from app.db.instants import MICROSECOND, now_us
from app.db.ledger import Ledger
from app.db.letta import Pair
from app.db.transaction import Transaction
from app.lineage.checkpoint import IndexKey
from app.lineage.core_memory import EMPTY_BLOCKS
from app.lineage.entry import Collection
from app.lineage.errors import ArchiveUnavailable, UnknownCheckpoint

AGENT_NAMES = {
    Collection.NODE_SCOPE: "ari_agent_{}",
    Collection.REACT_STEP: "ari_react_{}",
    Collection.REFERENCE: "ari_reference_{}",
    Collection.DAILY_NOTE: "ari_daily_{}",
}
ARCHIVE_NAMES = {
    Collection.NODE_SCOPE: "ari_node_{}",
    Collection.REACT_STEP: "ari_react_{}",
    Collection.REFERENCE: "ari_reference_{}",
    Collection.DAILY_NOTE: "ari_daily_{}",
}


@dataclass(frozen=True, slots=True)
class Ids:
    """A pair that is ready for use."""

    agent_id: str
    archive_id: str


class Pairs:
    """The pairs of all indexes, each in memory once it is known to be ready."""

    def __init__(
        self,
        ledger: Ledger,
        letta: Letta,
        embedding: Embedding,
        *,
        instance: str,
        replica: str,
        patience: timedelta,
    ) -> None:
        """Mark what is made as of `instance`; `patience` is for the making of one pair."""
        self._ledger = ledger
        self._letta = letta
        self._embedding = embedding
        self._instance = instance
        self._replica = replica
        self._patience_us = patience // MICROSECOND
        self._ready: dict[IndexKey, Ids] = {}
        self._locks: WeakValueDictionary[IndexKey, asyncio.Lock] = WeakValueDictionary()

    async def ready(self, index: IndexKey) -> Ids | None:
        """Return a pair that was made before, None where there is none."""
        if (ids := self._ready.get(index)) is not None:
            return ids
        pair = await self._ledger.read(lambda connection: rows.find(connection, index))
        return self._keep(pair) if pair is not None and pair.ready and not pair.retired else None

    async def get(self, index: IndexKey) -> Ids:
        """Return the pair, made if need be.

        UnknownCheckpoint where the checkpoint was purged or indexed anew meanwhile;
        ArchiveUnavailable where another replica is making the pair.
        """
        lock = self._locks.setdefault(index, asyncio.Lock())
        async with lock:
            return await self.ready(index) or await self._make(index)

    def forget(self, index: IndexKey) -> None:
        """Look at the row again: Letta no longer knows the pair."""
        self._ready.pop(index, None)

    async def mend(self, index: IndexKey) -> None:
        """Make anew what Letta has lost of a pair, and let the two belong together again.

        Nothing where none was made yet. UnknownCheckpoint and ArchiveUnavailable as `get`.
        """
        if (ids := await self.ready(index)) is None:
            return
        agent = await self._letta.has_agent(ids.agent_id)
        archive = await self._letta.has_archive(ids.archive_id)
        if agent and archive:
            await self._letta.attach(agent_id=ids.agent_id, archive_id=ids.archive_id)
            return
        self.forget(index)
        # What is left is found again, by its mark.
        await self._ledger.write(lambda tx: rows.forget(tx.connection, index))
        await self.get(index)

    async def remove(self, pair: Pair) -> None:
        """Remove a retired pair and whatever a broken attempt left of it, then its row.

        In this order nothing is left that could not be found again: the archive takes its passages
        along, and an agent's blocks can be listed for as long as it is there.
        """
        index = pair.index
        archives = {item.id for item in await self._archives(index)}
        if pair.archive_id is not None:
            archives.add(pair.archive_id)
        for archive_id in archives:
            await self._letta.delete_archive(archive_id)
        agents = {agent.id for agent in await self._agents(index)}
        if pair.agent_id is not None and await self._letta.has_agent(pair.agent_id):
            agents.add(pair.agent_id)  # whatever somebody calls it by now
        for agent_id in agents:
            for block in await self._letta.blocks(agent_id):
                # Another one was attached by somebody, and may be of other agents too.
                if block.label in EMPTY_BLOCKS:
                    await self._letta.delete_block(block.id)
            await self._letta.delete_agent(agent_id)
        self._ready.pop(index, None)
        await self._ledger.write(lambda tx: rows.forget(tx.connection, index))

    async def _make(self, index: IndexKey) -> Ids:
        await self._claim(index)
        try:
            # Within the claim's time: past it, another replica makes the pair.
            async with asyncio.timeout(self._patience_us / 1_000_000):
                return await self._make_claimed(index)
        except TimeoutError:
            await self._unclaim(index)
            raise ArchiveUnavailable("Letta takes too long to make an agent") from None
        except BaseException:
            # Cancelled too: whoever comes next should not wait for the claim to run out.
            await asyncio.shield(self._unclaim(index))
            raise

    async def _claim(self, index: IndexKey) -> None:
        def claim(tx: Transaction) -> bool:
            if not rows.current(tx.connection, index):
                raise UnknownCheckpoint(index.checkpoint)
            now = now_us()
            return rows.begin_making(
                tx.connection,
                index,
                replica=self._replica,
                now_us=now,
                until_us=now + self._patience_us,
            )

        if not await self._ledger.write(claim):
            raise ArchiveUnavailable(
                "another replica is preparing Letta for the checkpoint", retry_after_s=1.0
            )

    async def _unclaim(self, index: IndexKey) -> None:
        await self._ledger.write(
            lambda tx: rows.end_making(tx.connection, index, replica=self._replica)
        )

    async def _make_claimed(self, index: IndexKey) -> Ids:
        """Make what is missing, one step at a time, each written down before the next."""
        pair = await self._ledger.read(lambda connection: rows.find(connection, index))
        agent_id = pair.agent_id if pair else None
        if agent_id is None:
            agent_id = await self._agent(index)
        archive_id = pair.archive_id if pair else None
        if archive_id is None:
            archive_id = await self._archive(index)
        await self._letta.attach(agent_id=agent_id, archive_id=archive_id)
        await self._record(index, ready=True, made_until_us=None)
        return self._keep(await self._ledger.read(lambda connection: rows.find(connection, index)))

    async def _agent(self, index: IndexKey) -> str:
        blocks, version = await self._blocks(index)
        found = await self._agents(index)
        if found:
            agent, version = found[0], 0
        else:
            agent = await self._letta.create_agent(
                AGENT_NAMES[index.collection].format(index.checkpoint),
                metadata=self._mark(index),
                blocks=blocks,
                embedding=self._embedding.argument,
            )
        frozen = self._embedding.check(agent.embedding_config, checkpoint=index.checkpoint)
        await self._record(index, agent_id=agent.id, embedding=frozen, core_version=version)
        return agent.id

    async def _archive(self, index: IndexKey) -> str:
        found = await self._archives(index)
        archive = (
            found[0]
            if found
            else await self._letta.create_archive(
                ARCHIVE_NAMES[index.collection].format(index.checkpoint),
                description=self._description(index),
                embedding=self._embedding.argument,
            )
        )
        await self._record(index, archive_id=archive.id)
        return archive.id

    async def _blocks(self, index: IndexKey) -> tuple[Mapping[str, str], int]:
        if index.collection is not Collection.NODE_SCOPE:
            return {}, 0
        stored = await self._ledger.read(lambda connection: rows.core_blocks_of(connection, index))
        if stored is None:
            raise UnknownCheckpoint(index.checkpoint)
        blocks, version = stored
        return EMPTY_BLOCKS | blocks, version

    async def _record(self, index: IndexKey, **made: object) -> None:
        await self._ledger.write(lambda tx: rows.record(tx.connection, index, **made))

    async def _agents(self, index: IndexKey) -> list[Agent]:
        named = await self._letta.agents_named(
            AGENT_NAMES[index.collection].format(index.checkpoint)
        )
        mark = self._mark(index)
        return [agent for agent in named if mark.items() <= (agent.metadata or {}).items()]

    async def _archives(self, index: IndexKey) -> list[ArchiveRow]:
        named = await self._letta.archives_named(
            ARCHIVE_NAMES[index.collection].format(index.checkpoint)
        )
        description = self._description(index)
        return [archive for archive in named if archive.description == description]

    def _mark(self, index: IndexKey) -> dict[str, object]:
        """Return what tells our agents from others of the same name."""
        return {
            "instance": self._instance,
            "checkpoint": index.checkpoint,
            "incarnation": index.incarnation,
            "index_epoch": index.index_epoch,
            "collection": index.collection.value,
        }

    def _description(self, index: IndexKey) -> str:
        return json.dumps(self._mark(index), sort_keys=True)

    def _keep(self, pair: Pair | None) -> Ids:
        assert pair is not None, "a row is deleted only after its pair is retired"
        if pair.retired:
            raise UnknownCheckpoint(pair.index.checkpoint)
        assert pair.agent_id is not None
        assert pair.archive_id is not None
        self._embedding.require(pair.embedding, checkpoint=pair.index.checkpoint)
        ids = Ids(pair.agent_id, pair.archive_id)
        self._ready[pair.index] = ids
        return ids
