"""Takes pending entries to the archive, for as long as it takes."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import structlog

from app.archive.port import Archive, Outcome
from app.db import checkpoints as checkpoint_rows
from app.db import entries as entry_rows
from app.db.entries import Settled
from app.db.events import CheckpointChanged, EntryStored
from app.db.ledger import Ledger
from app.db.transaction import Transaction
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Entry
from app.lineage.errors import ArchiveUnavailable, LedgerUnavailable, UnknownCheckpoint

BATCH = 256
# Entries may also become pending without a word to us: by another replica, by a reindex elsewhere.
LOOK_EVERY_S = 5.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0

log = structlog.get_logger(__name__)


class Indexer:
    """Works in the background; writers may wait for their own entries."""

    def __init__(self, ledger: Ledger, archive: Archive) -> None:
        self._ledger = ledger
        self._archive = archive
        self._work_came = asyncio.Event()
        self._waiting: defaultdict[str, list[asyncio.Future[Entry]]] = defaultdict(list)

    def wake(self) -> None:
        """Say that there are pending entries."""
        self._work_came.set()

    async def wait_for(self, entries: Sequence[Entry], *, at_most_s: float) -> Sequence[Entry]:
        """Return the entries as they are when all are settled, or when the time is over."""
        loop = asyncio.get_running_loop()
        settled = {entry.id: loop.create_future() for entry in entries}
        for entry_id, future in settled.items():
            self._waiting[entry_id].append(future)
        self.wake()
        try:
            await asyncio.wait(settled.values(), timeout=at_most_s)
        finally:
            for entry_id, future in settled.items():
                self._stop_waiting(entry_id, future)
        return [
            settled[entry.id].result() if settled[entry.id].done() else entry for entry in entries
        ]

    async def run(self) -> None:
        """Index what is pending until cancelled; an archive that is away is asked more rarely."""
        failures = 0
        while True:
            self._work_came.clear()
            try:
                busy = await self._round()
            except (ArchiveUnavailable, LedgerUnavailable) as error:
                failures += 1
                log.warning("indexing_failed", reason=str(error), failures=failures)
                await asyncio.sleep(_pause_s(failures))
                continue
            failures = 0
            if not busy:
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        try:
            await asyncio.wait_for(self._work_came.wait(), LOOK_EVERY_S)
        except TimeoutError:
            return

    async def _round(self) -> bool:
        """Index one batch of every checkpoint that has any; tell whether there was one."""
        checkpoints = await self._ledger.read(
            lambda connection: checkpoint_rows.with_pending(
                connection, model=self._archive.model, dimensions=self._archive.dimensions
            )
        )
        for checkpoint in checkpoints:
            await self._index_batch(checkpoint)
        return bool(checkpoints)

    async def _index_batch(self, checkpoint: Checkpoint) -> None:
        entries = await self._ledger.read(
            lambda connection: entry_rows.pending(
                connection, checkpoint.id, index_epoch=checkpoint.index_epoch, limit=BATCH
            )
        )
        if not entries:
            return
        outcomes = await self._archive.index(entries)
        try:
            settled = await self._ledger.write(
                lambda tx: _settle(tx, checkpoint, entries, outcomes, archive=self._archive)
            )
        except UnknownCheckpoint:
            return
        for entry in settled:
            for future in self._waiting.pop(entry.id, ()):
                future.set_result(entry)

    def _stop_waiting(self, entry_id: str, future: "asyncio.Future[Entry]") -> None:
        if future.done() or future not in self._waiting.get(entry_id, ()):
            return
        self._waiting[entry_id].remove(future)
        if not self._waiting[entry_id]:
            del self._waiting[entry_id]


def _settle(
    tx: Transaction,
    checkpoint: Checkpoint,
    entries: Sequence[Entry],
    outcomes: Sequence[Outcome],
    *,
    archive: Archive,
) -> list[Entry]:
    """Record the outcomes, but for entries that are gone and indexes that are void since."""
    row = checkpoint_rows.lock(tx.connection, checkpoint.id)
    if (row["incarnation"], row["index_epoch"]) != (checkpoint.incarnation, checkpoint.index_epoch):
        return []
    there = entry_rows.still_there(tx.connection, checkpoint.id, [entry.id for entry in entries])
    outcome_of = {outcome.entry_id: outcome for outcome in outcomes}
    kept = [entry for entry in entries if entry.id in there and entry.id in outcome_of]
    if not kept:
        return []
    settled = [_settled(outcome_of[entry.id]) for entry in kept]
    checkpoint_rows.advance(
        tx.connection,
        checkpoint.id,
        changes=len(settled),
        model=archive.model,
        dimensions=archive.dimensions,
    )
    entry_rows.settle(
        tx.connection,
        checkpoint.id,
        settled,
        index_epoch=checkpoint.index_epoch,
        first_change=row["changes"] + 1,
    )
    if row["model"] is None:
        tx.events.append(CheckpointChanged(checkpoint.id))
    done = [
        replace(entry, indexed=item.refused is None, refused=item.refused)
        for entry, item in zip(kept, settled, strict=True)
    ]
    tx.events += [
        EntryStored(entry, item.vector) for entry, item in zip(done, settled, strict=True)
    ]
    return done


def _settled(outcome: Outcome) -> Settled:
    return Settled(outcome.entry_id, outcome.vector, outcome.refused)


def _pause_s(failures: int) -> float:
    """Double with each failure, with jitter, so that replicas do not come back at once."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  (jitter, no secret)
