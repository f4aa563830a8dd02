"""Notes that were superseded: kept in the ledger, and out of everything that looks for notes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

import numpy as np
import pytest
import pytest_asyncio
from sqlalchemy import Connection, insert, select, update

from app.archive.port import Archive, Outcome
from app.db import access_log, checkpoints, indexing, letta, notes
from app.db import entries as entry_rows
from app.db.append import PreparedEntry
from app.db.blocks import Blocks, Reader
from app.db.indexing import Claimed
from app.db.instants import now_us
from app.db.ledger import Ledger
from app.db.letta import Removal
from app.db.rows import to_checkpoint
from app.db.tables import entries, letta_agents, letta_removals
from app.db.transaction import Transaction
from app.lineage.access import Access, Operation, Touched
from app.lineage.checkpoint import Checkpoint, Counts
from app.lineage.entry import Collection, Draft, Entry
from app.lineage.errors import UnknownCheckpoint
from app.lineage.json_rules import compact
from app.lineage.lineage import Scope, notes_of
from app.memory.settling import settle
from app.memory.write_entries import new_entry_id

EXP = "exp"
SCOPE = notes_of(EXP)
MODEL = "two-ones"
LEASE_US = 60_000_000

T = TypeVar("T")


class Named:
    """As much of an archive as settling asks for."""

    model = MODEL
    dimensions = 2


ARCHIVE = cast("Archive", Named())


def prepared(text: str, *, supersedes: Sequence[str] = ()) -> PreparedEntry:
    metadata = {"topic": "learnings", "name": text, "supersedes": list(supersedes)}
    return PreparedEntry.of(new_entry_id(), Draft(text, metadata), compact(metadata))


@dataclass
class Archived:
    """A checkpoint's notes on a ledger, written and superseded as use cases do it."""

    ledger: Ledger

    async def add(self, *texts: str, indexed: bool = True) -> list[str]:
        """Store notes and return their ids."""

        def work(tx: Transaction) -> list[Entry]:
            checkpoints.lock(tx.connection, EXP)
            vectors = np.ones((len(texts), 2), dtype=np.float32) if indexed else None
            return notes.add(
                tx, EXP, [prepared(text) for text in texts], vectors=vectors, model=MODEL
            )

        return [entry.id for entry in await self.ledger.write(work)]

    async def supersede(self, *old: str, by: str) -> list[str]:
        """Let a note take the place of others; return which it was that made way."""

        def work(tx: Transaction) -> list[Entry]:
            checkpoints.lock(tx.connection, EXP)
            return notes.supersede(tx, EXP, old, by=by)

        return [entry.id for entry in await self.ledger.write(work)]

    async def read(self, query: Callable[[Connection], T]) -> T:
        return await self.ledger.read(query)

    async def checkpoint(self) -> Checkpoint:
        return await self.read(lambda connection: checkpoints.get(connection, EXP))

    async def counts(self) -> Counts:
        row = await self.checkpoint()
        return await self.read(lambda connection: checkpoints.count(connection, row))

    async def current(self) -> list[str]:
        found = await self.read(lambda connection: notes.current(connection, EXP))
        return [entry.id for entry in found]

    async def blocks(self) -> tuple[list[str], list[str]]:
        """Return the ids in memory: what a search ranks, and what it counts as pending."""
        (block,) = await self.ledger.blocks.load(SCOPE)
        assert len(block.vectors) == len(block.entries)
        return [entry.id for entry in block.entries], list(block.pending)

    async def claim(self, replica: str = "replica-1") -> list[Claimed]:
        row = await self.checkpoint()

        def work(tx: Transaction) -> list[Claimed]:
            now = now_us()
            return indexing.claim(
                tx.connection,
                EXP,
                index_epoch=row.index_epoch,
                limit=100,
                by=replica,
                at_us=now,
                until_us=now + LEASE_US,
            )

        return await self.ledger.write(work)

    async def settle(self, claimed: Sequence[Claimed]) -> list[str] | None:
        """Note that the archive took what was claimed."""
        row = await self.checkpoint()
        vector = np.ones(2, dtype=np.float32)
        outcomes = [
            Outcome(item.entry.id, vector, None, f"passage-of-{item.entry.id}") for item in claimed
        ]
        done = await self.ledger.write(
            lambda tx: settle(tx, row, claimed, outcomes, archive=ARCHIVE)
        )
        return None if done is None else [entry.id for entry in done]

    async def removals(self) -> list[tuple[str, str | None, bool]]:
        """Return the passages that Letta is told to remove: of which entry, which, due by now."""
        query = select(letta_removals).order_by(letta_removals.c.entry_id)
        rows = await self.read(lambda connection: connection.execute(query).mappings().all())
        now = now_us()
        return [(row["entry_id"], row["passage_id"], row["due_us"] <= now) for row in rows]

    async def have_letta(self) -> None:
        """Let there be an archive of notes in Letta."""
        row = await self.checkpoint()
        values = {
            "checkpoint_id": EXP,
            "incarnation": row.incarnation,
            "index_epoch": row.index_epoch,
            "collection": Collection.REFERENCE.value,
            "archive_id": "archive-1",
            "ready": True,
            "core_version": 0,
        }
        await self.ledger.write(
            lambda tx: tx.connection.execute(insert(letta_agents).values(values))
        )


@pytest_asyncio.fixture
async def archived(ledger: Ledger) -> Archived:
    def plant(tx: Transaction) -> None:
        checkpoints.create(tx.connection, EXP, derived=False, path=None, name=None, metadata="{}")

    await ledger.write(plant)
    return Archived(ledger)


@pytest_asyncio.fixture
async def replica(database_url: str) -> AsyncIterator[Archived]:
    """The database of the test as another replica sees it."""
    ledger = Ledger(database_url, cache_bytes=2**20, on_accesses_lost=lambda _: None)
    ledger.open()
    yield Archived(ledger)
    await ledger.close()


async def test_a_superseded_note_is_kept_and_counts_no_more(archived: Archived) -> None:
    old, other, new = await archived.add("old", "other", "new")

    assert await archived.supersede(old, by=new) == [old]

    assert await archived.current() == [other, new]
    kept = await archived.read(lambda c: notes.find(c, EXP, old))
    counting = await archived.read(lambda c: notes.counting(c, EXP, old))
    assert kept is not None
    assert counting is not None
    assert (kept.text, kept.superseded_by, counting.id) == ("old", new, new)
    assert (kept.indexed, kept.pending) == (False, False)
    listed = await archived.read(lambda c: notes.listed(c, EXP))
    assert [item.id for item in listed] == [other, new]
    page = await archived.read(
        lambda c: entry_rows.page(c, SCOPE, index_epoch=1, limit=10, after=None)
    )
    assert [item.entry.id for item in page] == [other, new]


async def test_a_scope_admits_no_superseded_note(archived: Archived) -> None:
    old, new = await archived.add("old", "new")
    await archived.supersede(old, by=new)

    found = await archived.read(lambda c: entry_rows.by_id(c, EXP, [old, new], index_epoch=1))

    assert {entry.id: SCOPE.admits(entry) for entry in found} == {old: False, new: True}


async def test_it_is_out_of_what_is_cached_at_once(archived: Archived) -> None:
    old, other, new = await archived.add("old", "other", "new")
    (waiting,) = await archived.add("waiting", indexed=False)
    assert await archived.blocks() == ([old, other, new], [waiting])

    await archived.supersede(old, waiting, by=new)

    assert await archived.blocks() == ([other, new], [])
    later = await archived.add("later", "and later")
    assert await archived.blocks() == ([other, new, *later], [])


async def test_a_search_under_way_keeps_the_rows_that_it_took(archived: Archived) -> None:
    old, new = await archived.add("old", "new")
    (block,) = await archived.ledger.blocks.load(SCOPE)
    taken, vectors = block.entries, block.vectors

    await archived.supersede(old, by=new)
    await archived.add("later")

    assert [entry.id for entry in taken] == [old, new]
    assert len(vectors) == 2
    assert block.find(old) is None


async def test_what_is_cached_stays_within_its_bytes(archived: Archived) -> None:
    await archived.add("the first sets the model")
    await archived.blocks()
    before = archived.ledger.blocks.size_bytes
    added = await archived.add(*(f"note {number}" for number in range(9)))
    grown = archived.ledger.blocks.size_bytes

    for number in range(8):
        await archived.supersede(added[number], by=added[8])

    assert before < archived.ledger.blocks.size_bytes < grown
    (block,) = await archived.ledger.blocks.load(SCOPE)
    assert block.size_bytes == archived.ledger.blocks.size_bytes


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_another_replica_finds_it_no_more_either(
    archived: Archived, replica: Archived
) -> None:
    old, new = await archived.add("old", "new")
    assert await replica.blocks() == ([old, new], [])

    await archived.supersede(old, by=new)

    assert await replica.blocks() == ([new], [])


class HeldReader:
    """Reads at once, and hands over the first thing that it read only when told to."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self.has_read = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def __call__(self, query: Callable[[Connection], T]) -> T:
        found = await self._read(query)
        if not self.has_read.is_set():
            self.has_read.set()
            await self.may_answer.wait()
        return found


async def test_a_note_superseded_during_a_load_is_not_in_the_next(archived: Archived) -> None:
    old, new = await archived.add("old", "new")
    ledger = archived.ledger
    reader = HeldReader(ledger.read)
    ledger.blocks = Blocks(reader, max_bytes=2**20, sole_writer=ledger.sole_writer)
    under_way = asyncio.create_task(ledger.blocks.load(SCOPE))
    await reader.has_read.wait()

    await archived.supersede(old, by=new)
    reader.may_answer.set()
    await under_way

    assert await archived.blocks() == ([new], [])


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_a_late_read_of_a_replica_does_not_bring_it_back(
    archived: Archived, replica: Archived
) -> None:
    await replica.blocks()
    old, new = await archived.add("old", "new")
    ledger = replica.ledger
    reader = HeldReader(ledger.read)
    ledger.blocks = Blocks(reader, max_bytes=2**20, sole_writer=False)
    reader.has_read.set()
    await replica.blocks()
    (later,) = await archived.add("later")
    reader.has_read.clear()
    late = asyncio.create_task(ledger.blocks.load(SCOPE))
    await reader.has_read.wait()  # it has read `later`, and not that it was superseded

    await archived.supersede(later, by=new)
    assert await replica.blocks() == ([old, new], [])
    reader.may_answer.set()
    await late

    assert await replica.blocks() == ([old, new], [])


async def test_a_pending_one_is_indexed_by_nobody(archived: Archived) -> None:
    old, new = await archived.add("old", "new", indexed=False)
    await archived.supersede(old, by=new)

    counts = await archived.counts()
    assert (counts.entries, counts.pending) == (2, 1)
    assert [item.entry.id for item in await archived.claim()] == [new]
    assert await archived.claim("replica-2") == []


async def test_a_reindex_leaves_it_alone(archived: Archived) -> None:
    old, new = await archived.add("old", "new")
    await archived.supersede(old, by=new)

    await archived.ledger.write(
        lambda tx: indexing.begin_reindex(tx.connection, EXP, model=MODEL, dimensions=2)
    )

    assert (await archived.counts()).pending == 1
    assert [item.entry.id for item in await archived.claim()] == [new]


async def test_it_is_not_missed_by_a_reconcile(archived: Archived) -> None:
    old, new = await archived.add("old", "new")
    await archived.supersede(old, by=new)

    index = (await archived.checkpoint()).index(Collection.REFERENCE)
    checked, broken = await archived.read(
        lambda c: indexing.without_vector(c, EXP, index_epoch=1, dimensions=2)
    )
    there = await archived.read(lambda c: entry_rows.still_there(c, EXP, [old, new]))

    assert (checked, broken) == (1, [])
    assert set(await archived.read(lambda c: indexing.indexed(c, index))) == there == {new}


async def test_a_refused_one_is_not_counted_and_not_tried_again(archived: Archived) -> None:
    old, new = await archived.add("old", "new")
    refuse = (
        update(entries).where(entries.c.id == old).values(refused="too long", retry_us=0, tries=1)
    )
    await archived.ledger.write(lambda tx: tx.connection.execute(refuse))
    assert (await archived.counts()).refused == 1

    await archived.supersede(old, by=new)

    assert (await archived.counts()).refused == 0
    assert await archived.claim() == []


class TestWhatLettaHas:
    async def test_of_it_is_removed(self, archived: Archived) -> None:
        await archived.have_letta()
        old, other, new = await archived.add("old", "other", "new", indexed=False)
        assert await archived.settle(await archived.claim()) == [old, other, new]

        await archived.supersede(old, by=new)

        assert await archived.removals() == [(old, f"passage-of-{old}", True)]

    async def test_of_one_that_a_replica_is_sending_is_looked_for_when_its_claim_is_over(
        self, archived: Archived
    ) -> None:
        await archived.have_letta()
        old, new = await archived.add("old", "new", indexed=False)
        await archived.claim()

        await archived.supersede(old, by=new)

        assert await archived.removals() == [(old, None, False)]

    async def test_after_all_of_one_that_was_being_sent_is_removed_and_it_stays_superseded(
        self, archived: Archived
    ) -> None:
        await archived.have_letta()
        old, new = await archived.add("old", "new", indexed=False)
        claimed = await archived.claim()
        await archived.supersede(old, by=new)

        assert await archived.settle(claimed) == [new]

        assert await archived.removals() == [(old, None, True)]
        assert await archived.blocks() == ([new], [])
        assert (await archived.counts()).pending == 0

    async def test_is_removed_even_if_its_archive_was_made_meanwhile(
        self, archived: Archived
    ) -> None:
        old, new = await archived.add("old", "new", indexed=False)
        claimed = await archived.claim()
        await archived.supersede(old, by=new)
        assert await archived.removals() == []
        await archived.have_letta()

        await archived.settle(claimed)

        assert await archived.removals() == [(old, f"passage-of-{old}", True)]
        (removal,) = await archived.read(lambda c: letta.due_removals(c, now_us=now_us(), limit=10))
        index = (await archived.checkpoint()).index(Collection.REFERENCE)
        assert isinstance(removal, Removal)
        assert removal.index == index


async def test_a_chain_leads_to_the_one_that_counts(archived: Archived) -> None:
    first, second, third, other = await archived.add("first", "second", "third", "other")
    await archived.supersede(first, by=second)
    await archived.supersede(second, by=third)

    for note in (first, second, third):
        counting = await archived.read(partial(notes.counting, checkpoint=EXP, note=note))
        assert counting is not None
        assert counting.id == third
    assert await archived.read(lambda c: notes.counting(c, EXP, "none")) is None
    assert await archived.read(lambda c: notes.successors(c, EXP)) == {
        first: third,
        second: third,
    }
    assert await archived.current() == [third, other]


async def test_one_may_take_the_place_of_several(archived: Archived) -> None:
    *old, new = await archived.add("a", "b", "c", "new")

    assert await archived.supersede(*old, by=new) == old
    assert await archived.current() == [new]


async def test_what_was_superseded_before_stays_so(archived: Archived) -> None:
    old, new, late = await archived.add("old", "new", "late")
    await archived.supersede(old, by=new)

    assert await archived.supersede(old, by=late) == []
    assert await archived.read(lambda c: notes.successors(c, EXP)) == {old: new}


async def test_nothing_but_notes_is_superseded(archived: Archived) -> None:
    (new,) = await archived.add("new")

    assert await archived.supersede("nowhere", new, by=new) == []
    assert await archived.current() == [new]


async def test_notes_of_one_plan_are_stored_and_superseded_all_or_none(archived: Archived) -> None:
    (old,) = await archived.add("old")

    def work(tx: Transaction) -> None:
        checkpoints.lock(tx.connection, EXP)
        one, two = notes.add(tx, EXP, [prepared("one"), prepared("two")])
        notes.supersede(tx, EXP, [old], by=one.id)
        notes.supersede(tx, EXP, [two.id], by=one.id)
        raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError):
        await archived.ledger.write(work)

    assert await archived.current() == [old]
    assert await archived.blocks() == ([old], [])


async def test_every_change_has_a_number_that_replicas_can_ask_for(archived: Archived) -> None:
    old, new = await archived.add("old", "new")
    before = await archived.read(lambda c: checkpoints.state(c, EXP))
    await archived.supersede(old, by=new)
    after = await archived.read(lambda c: checkpoints.state(c, EXP))
    assert before is not None
    assert after is not None

    changed = await archived.read(
        lambda c: [
            entry.id
            for entry, _ in entry_rows.load(c, SCOPE, index_epoch=1, since_change=before[2])
        ]
    )

    assert changed == [old]
    assert after == (*before[:2], before[2] + 1, before[3])


# What a snapshot tells: `supersedes` in the metadata of the notes themselves.


class Told:
    """Notes as a snapshot brings them: rows whose metadata names others."""

    def __init__(self, archived: Archived) -> None:
        self._archived = archived
        self._rows: list[dict[str, object]] = []

    def note(
        self,
        name: str,
        *supersedes: object,
        at: int,
        collection: Collection = Collection.REFERENCE,
        node: str = "",
    ) -> None:
        self._rows.append(
            {
                "checkpoint_id": EXP,
                "id": name,
                "collection": collection.value,
                "node": node,
                "text": name,
                "metadata": json.dumps({"supersedes": list(supersedes)}),
                "created_us": at,
                "seq": len(self._rows) + 1,
                "change": len(self._rows) + 1,
                "sha256": bytes(32),
                "index_epoch": 0,
            }
        )

    async def rebuilt(self) -> dict[str, str]:
        def work(tx: Transaction) -> None:
            row = to_checkpoint(checkpoints.lock(tx.connection, EXP))
            tx.connection.execute(insert(entries), self._rows)
            index = row.index(Collection.REFERENCE)
            notes.supersede_as_told(tx.connection, index, change=99)

        await self._archived.ledger.write(work)
        query = select(entries.c.id, entries.c.superseded_by).where(
            entries.c.superseded_by.is_not(None)
        )
        rows = await self._archived.read(lambda c: c.execute(query).all())
        return {row.id: row.superseded_by for row in rows}


@pytest.fixture
def told(archived: Archived) -> Told:
    return Told(archived)


async def test_notes_supersede_those_that_their_metadata_names(told: Told) -> None:
    told.note("a", at=1)
    told.note("b", "a", at=2)
    told.note("c", "b", "nowhere", at=3)

    assert await told.rebuilt() == {"a": "b", "b": "c"}


async def test_a_note_stands_for_older_ones_alone_and_never_for_itself(told: Told) -> None:
    told.note("a", "b", "a", at=1)
    told.note("b", "a", at=2)
    told.note("c", "d", at=3)
    told.note("d", at=3)

    assert await told.rebuilt() == {"a": "b"}


async def test_of_two_that_name_one_the_older_stands_for_it(told: Told) -> None:
    told.note("late", "a", at=9)
    told.note("early", "a", at=5)
    told.note("a", at=1)

    assert await told.rebuilt() == {"a": "early"}


async def test_nobody_but_a_note_stands_for_a_note_and_for_nothing_else(told: Told) -> None:
    told.note("a", at=1)
    told.note("step", at=1, collection=Collection.REACT_STEP)
    told.note("of a node", at=1, collection=Collection.NODE_SCOPE, node="root")
    told.note("spy", "a", at=2, collection=Collection.NODE_SCOPE, node="root")
    told.note("day", "a", at=2, collection=Collection.DAILY_NOTE)
    told.note("b", "step", "of a node", 7, None, ["a"], at=3)

    assert await told.rebuilt() == {}


async def test_many_notes_are_read_part_by_part(told: Told) -> None:
    told.note("0", at=0)
    for number in range(1, 2 * notes.CHUNK + 5):
        told.note(str(number), str(number - 1), at=number)

    rebuilt = await told.rebuilt()

    assert rebuilt == {str(number): str(number + 1) for number in range(2 * notes.CHUNK + 4)}


async def test_finds_are_the_best_hits_of_searches_and_sessions_since_an_instant(
    archived: Archived,
) -> None:
    row = await archived.checkpoint()

    def access(operation: Operation, *found: str, refusal: str | None = None) -> Access:
        touched = tuple(Touched(entry, None) for entry in found)
        return Access(EXP, operation, None, None, entries=touched, refusal=refusal)

    seen = [
        (10, access(Operation.ARCHIVAL_SEARCH, "a", "b")),
        (20, access(Operation.SESSION, "a", "b", "a day's note")),
        (30, access(Operation.ARCHIVAL_SEARCH, "b", "a")),
        (30, access(Operation.ARCHIVAL_SEARCH)),
        (30, access(Operation.ARCHIVAL_READ, "a", "b")),
        (40, access(Operation.RECALL_SEARCH, "b")),
        (50, access(Operation.SESSION, refusal="scope-violation")),
    ]
    await archived.ledger.write(
        lambda tx: access_log.record_seen(
            tx, [access_log.SeenAccess(row.incarnation, at, item) for at, item in seen]
        )
    )

    counted = await archived.read(lambda c: access_log.finds(c, EXP, since_us=10))
    later = await archived.read(lambda c: access_log.finds(c, EXP, since_us=11))

    assert (counted, later) == ({"a": 2, "b": 1}, {"a": 1, "b": 1})
    assert await archived.read(lambda c: access_log.finds(c, "other", since_us=0)) == {}


def test_the_scope_of_notes_is_of_no_node() -> None:
    assert Scope("exp", Collection.REFERENCE, (None,)) == SCOPE
    assert SCOPE.node_ids == []


async def test_the_version_of_the_notes_is_another_one_after_every_change_of_them_alone(
    archived: Archived,
) -> None:
    async def version() -> notes.Version:
        return await archived.read(lambda c: notes.version(c, EXP))

    seen = [await version()]
    old, new = await archived.add("old", "new")
    seen.append(await version())
    await archived.supersede(old, by=new)
    seen.append(await version())
    (waiting,) = await archived.add("waiting", indexed=False)
    seen.append(await version())
    assert await archived.settle(await archived.claim()) == [waiting]
    seen.append(await version())
    await archived.ledger.write(lambda tx: checkpoints.void_caches(tx.connection, EXP))
    seen.append(await version())
    assert len(set(seen)) == len(seen)

    await archived.ledger.write(lambda tx: checkpoints.advance(tx.connection, EXP, changes=1))
    assert await version() == seen[-1]
    with pytest.raises(UnknownCheckpoint):
        await archived.read(lambda c: notes.version(c, "another"))
