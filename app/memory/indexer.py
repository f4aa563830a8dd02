"""Takes pending entries to the archive, for as long as it takes.

Replicas share the queue: each claims what it takes, and an expired claim is anybody's. Several
batches are on their way at once, so that a slow one holds up nothing; and where the batches of a
checkpoint fail, it is asked more rarely, with smaller ones, without a word to the others.
"""

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from app.archive.port import Archive, Batch, Outcome
from app.backoff import Backoff
from app.db import indexing
from app.db.indexing import Claimed
from app.db.instants import now_us
from app.db.ledger import Ledger
from app.db.transaction import Transaction
from app.lineage.checkpoint import Checkpoint
from app.lineage.entry import Entry
from app.lineage.errors import ArchiveUnavailable, LedgerUnavailable, UnknownCheckpoint
from app.memory.settling import settle
from app.randomness import RANDOM

# Batches under way, in all and of one checkpoint: the next one gathers while one is being taken.
PARALLEL = 4
PARALLEL_A_CHECKPOINT = 2
# Entries may also become pending without a word to us: by another replica, by a reindex elsewhere.
LOOK_EVERY_S = 5.0
LOOK_WHILE_WAITING_S = 0.5
# A claim outlasts the call that it is for.
LEASE_MARGIN_S = 5.0
OF_A_CHECKPOINT = Backoff(first_s=0.5, longest_s=15.0)
OF_AN_ENTRY = Backoff(first_s=1.0, longest_s=600.0)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Pace:
    """How a checkpoint's batches went of late."""

    size: int
    running: int = 0
    failures: int = 0
    not_before: float = 0.0

    def succeed(self, *, most: int) -> None:
        """Go on at once, with twice as many."""
        self.failures, self.not_before = 0, 0.0
        self.size = min(most, self.size * 2)

    def fail(self, *, size: int) -> None:
        """Wait, and take so many next time."""
        self.failures += 1
        self.not_before = time.monotonic() + OF_A_CHECKPOINT.pause_s(self.failures)
        self.size = max(1, size)


class Indexer:
    """Works in the background; writers may wait for their own entries."""

    def __init__(
        self,
        ledger: Ledger,
        archive: Archive,
        *,
        replica: str,
        patience_s: float,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        """`replica` begins the names of this process's claims; `patience_s` ends a batch.

        `on_failure` hears of each batch that failed.
        """
        self._on_failure = on_failure
        self._ledger = ledger
        self._archive = archive
        self._claims = (f"{replica}-{number}" for number in itertools.count(1))
        self._patience_s = patience_s
        self._work_came = asyncio.Event()
        self._waiting: defaultdict[str, list[asyncio.Future[Entry]]] = defaultdict(list)
        self._paces: dict[str, _Pace] = {}
        # Why the last batch failed, None once one went well.
        self.trouble: str | None = None
        self._batches: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Say that there are pending entries."""
        self._work_came.set()

    async def wait_for(self, entries: Sequence[Entry], *, at_most_s: float) -> Sequence[Entry]:
        """Return the entries as they are when all are settled, or when the time is over."""
        loop = asyncio.get_running_loop()
        settled: dict[str, asyncio.Future[Entry]] = {
            entry.id: loop.create_future() for entry in entries
        }
        for entry_id, future in settled.items():
            self._waiting[entry_id].append(future)
        self.wake()
        try:
            # The entries are stored, whatever becomes of the waiting.
            with suppress(TimeoutError, LedgerUnavailable):
                async with asyncio.timeout(at_most_s):
                    await self._all_settled(entries[0].checkpoint, settled)
        finally:
            for entry_id, future in settled.items():
                self._stop_waiting(entry_id, future)
        return [
            settled[entry.id].result() if settled[entry.id].done() else entry for entry in entries
        ]

    async def _all_settled(
        self, checkpoint: str, settled: "Mapping[str, asyncio.Future[Entry]]"
    ) -> None:
        """Wait for this process's batches; and look, where another replica may have taken some."""
        every_s = None if self._ledger.sole_writer else LOOK_WHILE_WAITING_S
        while (await asyncio.wait(settled.values(), timeout=every_s))[1]:
            left = [entry_id for entry_id, future in settled.items() if not future.done()]
            for entry in await self._settled_elsewhere(checkpoint, left):
                if not settled[entry.id].done():
                    settled[entry.id].set_result(entry)

    async def _settled_elsewhere(self, checkpoint: str, ids: Sequence[str]) -> Sequence[Entry]:
        return await self._ledger.read(
            lambda connection: indexing.settled(connection, checkpoint, ids)
        )

    async def run(self) -> None:
        """Index what is pending until cancelled."""
        try:
            await self._release_former()
            while True:
                self._work_came.clear()
                if not await self._start_some():
                    await self._wait_for_work()
        finally:
            await self._stop_batches()

    async def _release_former(self) -> None:
        """End the claims of a former process, where there can be no other but this one."""
        if not self._ledger.sole_writer:
            return
        try:
            await self._ledger.write(lambda tx: indexing.release_all(tx.connection))
        except LedgerUnavailable as error:  # they expire by themselves
            log.warning("claims_not_released", reason=error.reason)

    async def _stop_batches(self) -> None:
        for batch in self._batches:
            batch.cancel()
        if self._batches:
            await asyncio.wait(self._batches)

    async def _wait_for_work(self) -> None:
        now = time.monotonic()
        pauses = [pace.not_before - now for pace in self._paces.values() if pace.not_before > now]
        try:
            await asyncio.wait_for(self._work_came.wait(), min([LOOK_EVERY_S, *pauses]))
        except TimeoutError:
            return

    async def _start_some(self) -> bool:
        """Start a batch of every checkpoint that has one and may; tell whether any was."""
        if len(self._batches) >= PARALLEL:
            return False
        try:
            return await self._start_of_each()
        except LedgerUnavailable as error:
            log.warning("indexing_waits", reason=error.reason)
            return False

    async def _start_of_each(self) -> bool:
        checkpoints = await self._ledger.read(
            lambda connection: indexing.checkpoints_with_work(
                connection,
                model=self._archive.model,
                dimensions=self._archive.dimensions,
                at_us=now_us(),
            )
        )
        with_work = {checkpoint.id for checkpoint in checkpoints}
        if not with_work and not self._batches and not self._is_pausing():
            self.trouble = None
        self._paces = {
            name: pace for name, pace in self._paces.items() if name in with_work or pace.running
        }
        # In any order: the first ones must not always be served first.
        RANDOM.shuffle(checkpoints)
        started = [await self._start(checkpoint) for checkpoint in checkpoints]
        return any(started)

    def _is_pausing(self) -> bool:
        return any(pace.not_before > time.monotonic() for pace in self._paces.values())

    async def _start(self, checkpoint: Checkpoint) -> bool:
        pace = self._paces.setdefault(checkpoint.id, _Pace(self._archive.batch_size))
        if (
            len(self._batches) >= PARALLEL
            or pace.running >= PARALLEL_A_CHECKPOINT
            or pace.not_before > time.monotonic()
        ):
            return False
        claimed = await self._ledger.write(lambda tx: self._claim(tx, checkpoint, limit=pace.size))
        if not claimed:
            return False
        pace.running += 1
        batch = asyncio.create_task(self._take(checkpoint, claimed, pace))
        self._batches.add(batch)
        batch.add_done_callback(self._batches.discard)
        return True

    def _claim(self, tx: Transaction, checkpoint: Checkpoint, *, limit: int) -> list[Claimed]:
        now = now_us()
        lease_us = int((self._patience_s + LEASE_MARGIN_S) * 1_000_000)
        return indexing.claim(
            tx.connection,
            checkpoint.id,
            index_epoch=checkpoint.index_epoch,
            limit=limit,
            by=next(self._claims),
            at_us=now,
            until_us=now + lease_us,
        )

    async def _take(self, checkpoint: Checkpoint, claimed: Sequence[Claimed], pace: _Pace) -> None:
        """Take one batch, and note how it went."""
        try:
            outcomes = await self._outcomes(checkpoint, claimed)
            await self._note(checkpoint, claimed, outcomes, pace)
        except (ArchiveUnavailable, LedgerUnavailable) as error:
            maybe_done = not isinstance(error, ArchiveUnavailable) or error.maybe_done
            await self._give_back(checkpoint, claimed, pace, maybe_done=maybe_done)
            self.trouble = f"entries of {checkpoint.id!r} cannot be indexed: {error.reason}"
            self._on_failure()
            log.warning(
                "indexing_failed",
                checkpoint=checkpoint.id,
                reason=error.reason,
                failures=pace.failures,
            )
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(checkpoint, claimed, pace, maybe_done=True))
            raise
        except Exception:
            # A bug of ours in one batch must not end the indexing of all.
            log.exception("indexing_broke", checkpoint=checkpoint.id)
            self.trouble = f"entries of {checkpoint.id!r} cannot be indexed: a bug, see the log"
            self._on_failure()
            await self._give_back(checkpoint, claimed, pace, maybe_done=True)
        finally:
            pace.running -= 1
            self.wake()

    async def _outcomes(
        self, checkpoint: Checkpoint, claimed: Sequence[Claimed]
    ) -> Sequence[Outcome]:
        batch = Batch(
            checkpoint.index(claimed[0].entry.collection),
            [item.entry for item in claimed],
            frozenset(item.entry.id for item in claimed if item.maybe_there),
        )
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._archive.index(batch)
        except TimeoutError:
            raise ArchiveUnavailable(
                f"a batch took longer than {self._patience_s:g} s", maybe_done=True
            ) from None

    async def _note(
        self,
        checkpoint: Checkpoint,
        claimed: Sequence[Claimed],
        outcomes: Sequence[Outcome],
        pace: _Pace,
    ) -> None:
        try:
            settled = await self._ledger.write(
                lambda tx: settle(tx, checkpoint, claimed, outcomes, archive=self._archive)
            )
        except UnknownCheckpoint:
            return
        if settled is None:
            await self._give_back(checkpoint, claimed, pace, maybe_done=False)
            return
        for entry in settled:
            for future in self._waiting.pop(entry.id, ()):
                future.set_result(entry)
        taken = {outcome.entry_id for outcome in outcomes}
        left = [item for item in claimed if item.entry.id not in taken]
        if left:
            await self._defer(checkpoint, left)
        if outcomes:
            self.trouble = None
            pace.succeed(most=self._archive.batch_size)
        else:
            pace.fail(size=len(claimed))

    async def _give_back(
        self,
        checkpoint: Checkpoint,
        claimed: Sequence[Claimed],
        pace: _Pace,
        *,
        maybe_done: bool,
    ) -> None:
        """Let a failed batch be taken again: by halves where it may be its own fault."""
        pace.fail(size=len(claimed) // 2 if maybe_done else pace.size)
        try:
            if maybe_done and len(claimed) == 1:
                await self._defer(checkpoint, claimed)
                return
            for maybe_there in (True, False):
                ids = [
                    item.entry.id
                    for item in claimed
                    if (item.maybe_there or maybe_done) == maybe_there
                ]
                await self._ledger.write(
                    lambda tx, ids=ids, maybe_there=maybe_there: indexing.release(  # type: ignore[misc]
                        tx.connection,
                        checkpoint.id,
                        ids,
                        by=claimed[0].by,
                        maybe_there=maybe_there,
                    )
                )
        except LedgerUnavailable as error:  # the claim expires by itself
            log.warning("claim_not_released", reason=error.reason)

    async def _defer(self, checkpoint: Checkpoint, items: Sequence[Claimed]) -> None:
        """Try entries again later, the ever-failing ones ever more rarely."""
        tries = max(item.tries for item in items)
        retry_us = now_us() + OF_AN_ENTRY.pause_us(tries + 1)
        await self._ledger.write(
            lambda tx: indexing.defer(
                tx.connection,
                checkpoint.id,
                [item.entry.id for item in items],
                by=items[0].by,
                retry_us=retry_us,
            )
        )

    def _stop_waiting(self, entry_id: str, future: "asyncio.Future[Entry]") -> None:
        if future.done() or future not in self._waiting.get(entry_id, ()):
            return
        self._waiting[entry_id].remove(future)
        if not self._waiting[entry_id]:
            del self._waiting[entry_id]
