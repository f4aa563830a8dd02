"""What Letta has to be told besides entries: removals, purges, core memory.

Each is a row in the ledger until Letta has done it, so an outage delays it and loses nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from app.archive.letta.failures import Busy, Gone
from app.archive.letta.pairs import Ids, Pairs
from app.archive.letta.passages import Passages
from app.archive.letta.wire import Letta
from app.archive.port import Lag
from app.db import letta as rows
from app.db.instants import from_us, now_us
from app.db.ledger import Ledger
from app.db.letta import Pair, Removal
from app.db.transaction import Transaction
from app.lineage.checkpoint import IndexKey
from app.lineage.core_memory import EMPTY_BLOCKS
from app.lineage.errors import ArchiveUnavailable, UnknownCheckpoint

REMOVALS = 100
PAIRS = 10
# Parallel updates of one block: another Letta client, another replica that lost its claim.
ATTEMPTS = 5

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Upkeep:
    """Tells Letta what is left to tell, in small steps."""

    def __init__(
        self,
        ledger: Ledger,
        letta: Letta,
        pairs: Pairs,
        passages: Passages,
        *,
        replica: str,
        patience_us: int,
    ) -> None:
        self._ledger = ledger
        self._letta = letta
        self._pairs = pairs
        self._passages = passages
        self._replica = replica
        self._patience_us = patience_us
        # A purge waits for the step under way, which may hold the claim of what is to go.
        self._one_at_a_time = asyncio.Lock()

    async def step(self) -> bool:
        """Do some of each kind; tell whether anything was done. ArchiveUnavailable.

        What cannot be done of one kind, or of one checkpoint, holds up no other.
        """
        done: list[bool] = []

        async def do(some: Callable[[], Awaitable[bool]]) -> None:
            done.append(await some())

        async with self._one_at_a_time:
            await _each((self._mirror_some, self._remove_some, self._purge_some), do)
        return any(done)

    async def purge(self, checkpoint: str) -> None:
        """Remove the retired pairs of a checkpoint now. ArchiveUnavailable."""
        async with self._one_at_a_time:
            await self._purge_some(checkpoint)

    async def lag(self) -> Lag:
        """Count what is left to do."""
        backlog = await self._ledger.read(rows.backlog)
        return Lag(backlog.retired, backlog.removals, backlog.core_memories)

    async def _purge_some(self, checkpoint: str | None = None) -> bool:
        """Remove retired pairs, of one checkpoint or of any; tell whether there were some."""
        pairs = await self._ledger.read(
            lambda connection: rows.retired(
                connection, now_us=now_us(), limit=PAIRS, checkpoint=checkpoint
            )
        )
        await _each(pairs, self._pairs.remove)
        return bool(pairs)

    async def _remove_some(self) -> bool:
        removals = await self._ledger.read(
            lambda connection: rows.due_removals(connection, now_us=now_us(), limit=REMOVALS)
        )
        if not removals:
            return False
        try:
            if (ids := await self._pairs.ready(removals[0].index)) is not None:
                await self._remove(ids, removals)
        except ArchiveUnavailable:
            # Behind the others: they may be of another archive.
            due_us = now_us() + self._patience_us
            await self._ledger.write(
                lambda tx: rows.defer_removals(tx.connection, removals, due_us=due_us)
            )
            raise
        await self._ledger.write(lambda tx: rows.end_removals(tx.connection, removals))
        return True

    async def _remove(self, ids: Ids, removals: list[Removal]) -> None:
        passage_ids = {item.passage_id for item in removals if item.passage_id is not None}
        unknown = {
            item.entry_id: from_us(item.created_us) for item in removals if item.passage_id is None
        }
        try:
            if unknown:
                found = await self._passages.find(ids, unknown)
                passage_ids |= {passage_id for _, passage_id in found}
            for passage_id in passage_ids:
                await self._letta.delete_passage(ids.archive_id, passage_id)
        except Gone:  # the archive, and every passage with it
            return

    async def _mirror_some(self) -> bool:
        """Bring blocks up to core memory, and make agents for core memories that have none."""
        missing = await self._ledger.read(
            lambda connection: rows.unmirrored(connection, limit=PAIRS)
        )
        await _each(missing, self._make)
        behind = await self._ledger.read(
            lambda connection: rows.lagging(connection, now_us=now_us(), limit=PAIRS)
        )
        await _each(behind, self._mirror)
        return bool(missing or behind)

    async def _make(self, index: IndexKey) -> None:
        try:
            await self._pairs.get(index)
        except UnknownCheckpoint:  # purged meanwhile
            return

    async def _mirror(self, pair: Pair) -> None:
        """Write the present blocks, whatever was written when they were found to lag."""
        index = pair.index
        if not await self._ledger.write(lambda tx: self._claim(tx, index)):
            return
        try:
            version = await self._write_blocks(pair)
        except BaseException as error:
            await self._ledger.write(
                lambda tx: rows.end_making(tx.connection, index, replica=self._replica)
            )
            if isinstance(error, Gone):
                lost = f"Letta has lost the agent of checkpoint {index.checkpoint}: reconcile it"
                raise Gone(lost) from error
            raise
        await self._ledger.write(
            lambda tx: rows.mirrored(tx.connection, index, replica=self._replica, version=version)
        )

    def _claim(self, tx: Transaction, index: IndexKey) -> bool:
        now = now_us()
        return rows.current(tx.connection, index) and rows.begin_making(
            tx.connection,
            index,
            replica=self._replica,
            now_us=now,
            until_us=now + self._patience_us,
        )

    async def _write_blocks(self, pair: Pair) -> int:
        """Write blocks until they are those of one version, and return it."""
        assert pair.agent_id is not None
        for attempt in range(ATTEMPTS):
            stored = await self._ledger.read(
                lambda connection: rows.core_blocks_of(connection, pair.index)
            )
            if stored is None:
                return pair.core_version
            blocks, version = stored
            try:
                await self._write_different(pair.agent_id, EMPTY_BLOCKS | blocks)
            except Busy:
                if attempt == ATTEMPTS - 1:
                    raise
                log.info("block_update_repeated", checkpoint=pair.index.checkpoint)
                continue
            return version
        raise AssertionError("the last attempt returns or raises")

    async def _write_different(self, agent_id: str, blocks: dict[str, str]) -> None:
        there = {block.label: block.value for block in await self._letta.blocks(agent_id)}
        for label, value in blocks.items():
            if label not in there:
                await self._letta.add_block(agent_id, label, value)
            elif there[label] != value:
                await self._letta.set_block(agent_id, label, value)


async def _each(items: Sequence[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do all that can be done, then raise what could not: one must not hold up the others."""
    failure: ArchiveUnavailable | None = None
    for item in items:
        try:
            await work(item)
        except ArchiveUnavailable as error:
            failure = error
    if failure is not None:
        raise failure
