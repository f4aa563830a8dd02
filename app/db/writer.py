"""The writer thread: the one place that commits.

Jobs that arrive during a commit share the next one (group commit), without a waiting window: a lone
client pays nothing, and 32 clients share one sync of the disk. Measured with 2 ms added to each
sync: 281 writes/s with a commit each, 1,341 so. The event loop never waits for a disk.

Two kinds of job go through it: `run` gives one a transaction of its own, `append` lets adjacent
requests share one. What a job did becomes visible to the event loop (its events, then its result)
only after the commit.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.db.append import Append, Appended, append_group
from app.db.events import Event
from app.db.failures import PATIENCE_S, ledger_failures, silent_database, unavailable
from app.db.idempotency import Answer
from app.db.migrate import check_current
from app.db.transaction import Transaction

# Bounds one commit's length (and what a failed group has to do again), not the throughput.
MAX_GROUP = 256
# For so long a refused write tells of the database as it is.
NEWS_S = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Solo:
    """A job with a transaction of its own."""

    work: Callable[[Transaction], Any]
    done: "asyncio.Future[Any]"


@dataclass(frozen=True, slots=True)
class _Shared:
    """An append that shares its transaction with its neighbours."""

    append: Append
    done: "asyncio.Future[Appended | Answer]"


_Job: TypeAlias = _Solo | _Shared


class Listener(Protocol):
    """Told of committed events on the event loop, in the order of the commits."""

    def apply(self, event: Event) -> None:
        """Make the event visible to readers."""


def _give_up(done: "asyncio.Future[Any]") -> None:
    """Answer for a silent database, which may yet do what was begun."""
    if not done.done():
        done.set_exception(silent_database())


def _is_given_up(job: "_Job") -> bool:
    """Tell whether a job that has not begun was answered: it must not be done behind that answer.

    One whose caller went away is done all the same.
    """
    return job.done.done() and not job.done.cancelled()


class Writer:
    """Runs jobs in one thread, in the order of their coming."""

    def __init__(self, engine: Engine, listener: Listener) -> None:
        self._engine = engine.execution_options(writes=True)
        self._listener = listener
        self._came: list[_Job] = []
        self._refused: tuple[float, str] | None = None
        self._handed: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)

    def recent_refusal(self) -> str | None:
        """Return why the database last refused a write, if that is news and none went well since.

        A probe may succeed where entries do not: it overwrites one row, they need room.
        """
        if self._refused is None or time.monotonic() - self._refused[0] > NEWS_S:
            return None
        return self._refused[1]

    def start(self) -> None:
        """Begin to work for the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Finish what was asked for, then end."""
        self._hand_over()
        self._handed.put(None)
        await asyncio.to_thread(self._thread.join)

    async def run(self, work: Callable[[Transaction], T], *, patience_s: float = PATIENCE_S) -> T:
        """Run a job in a transaction of its own and return its result after the commit.

        A database that is silent for `patience_s` counts as away.

        Raises the job's own LineageError, or LedgerUnavailable; both leave nothing behind, but for
        a job that was under way when the patience ended. A caller that goes away does not undo it.
        """
        done: asyncio.Future[T] = self._loop.create_future()
        self._take(_Solo(work, done))
        clock = self._loop.call_later(patience_s, _give_up, done)
        try:
            return await done
        finally:
            clock.cancel()

    async def append(self, append: Append) -> Appended | Answer:
        """Store entries in the next shared commit and return the outcome after it.

        Raises as `run` does; what one append raises spoils no other.
        """
        done: asyncio.Future[Appended | Answer] = self._loop.create_future()
        self._take(_Shared(append, done))
        clock = self._loop.call_later(PATIENCE_S, _give_up, done)
        try:
            return await done
        finally:
            clock.cancel()

    def _take(self, job: _Job) -> None:
        """Collect the jobs of this turn of the loop, and hand them over together.

        One by one, each would wake the thread, which then takes the interpreter from the loop:
        that cost a quarter of the writes at 32 clients.
        """
        if not self._came:
            self._loop.call_soon(self._hand_over)
        self._came.append(job)

    def _hand_over(self) -> None:
        came, self._came = self._came, []
        self._handed.put(came)

    def _work(self) -> None:
        """Take what has come, in order, until told to stop."""
        stopping = False
        while not stopping:
            jobs, stopping = self._next()
            appends: list[_Shared] = []
            for job in jobs:
                if isinstance(job, _Shared):
                    appends.append(job)
                    continue
                self._run_groups(appends)
                appends = []
                self._run_solo(job)
            self._run_groups(appends)

    def _next(self) -> tuple[list[_Job], bool]:
        """Wait for jobs; return all that are there, and whether it is time to stop after them."""
        jobs: list[_Job] = []
        while (came := self._handed.get()) is not None:
            jobs += came
            if self._handed.empty():
                return jobs, False
        return jobs, True

    def _run_groups(self, jobs: Sequence[_Shared]) -> None:
        waiting = [job for job in jobs if not _is_given_up(job)]
        for first in range(0, len(waiting), MAX_GROUP):
            self._run_group(waiting[first : first + MAX_GROUP])

    def _run_solo(self, job: _Solo) -> None:
        if _is_given_up(job):
            return
        try:
            with ledger_failures(), self._engine.begin() as connection:
                check_current(connection)
                tx = Transaction(connection)
                result = job.work(tx)
        except Exception as error:  # noqa: BLE001  (handed to the waiting caller, whatever it is)
            self._publish([], [(job.done, error)])
        else:
            self._publish(tx.events, [(job.done, result)])

    def _run_group(self, jobs: Sequence[_Shared], *, again: bool = False) -> None:
        try:
            with self._engine.begin() as connection:
                check_current(connection)
                tx = Transaction(connection, again=again)
                outcomes = append_group(tx, [job.append for job in jobs])
        except DBAPIError as error:
            if again:
                refusal = unavailable(error)
                self._refused = (time.monotonic(), refusal.reason)
                self._publish([], [(job.done, refusal) for job in jobs])
                return
            # One by one: each gets its own answer, and one that the database refuses spoils none.
            for job in jobs:
                self._run_group([job], again=True)
        except Exception as error:  # noqa: BLE001  (handed to the waiting callers, whatever it is)
            self._publish([], [(job.done, error) for job in jobs])
        else:
            self._refused = None
            dones = [job.done for job in jobs]
            self._publish(tx.events, list(zip(dones, outcomes, strict=True)))

    def _publish(
        self, events: Sequence[Event], outcomes: Sequence[tuple["asyncio.Future[Any]", Any]]
    ) -> None:
        # The loop is closed only where the process is torn down with callers still waiting.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, events, outcomes)

    def _deliver(
        self, events: Sequence[Event], outcomes: Sequence[tuple["asyncio.Future[Any]", Any]]
    ) -> None:
        for event in events:
            self._listener.apply(event)
        for done, outcome in outcomes:
            if done.done():
                continue
            if isinstance(outcome, BaseException):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)
