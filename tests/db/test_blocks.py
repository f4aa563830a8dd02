"""Commits that fall into the load of a block: read already, and not yet handed over."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pytest_asyncio
from sqlalchemy import Connection

from app.db import checkpoints, entries, nodes
from app.db.append import Append, Appended, PreparedEntry
from app.db.blocks import Blocks, Reader
from app.db.events import CheckpointChanged, NodeCleared
from app.db.ledger import Ledger
from app.db.transaction import Transaction
from app.lineage.entry import Collection, Draft
from app.lineage.guard import Claim
from app.lineage.ids import NodeId
from app.lineage.lineage import Lineage
from app.memory.write_entries import new_entry_id

NODE = NodeId("exp", "root")
SCOPE = Lineage(NODE, ()).own()

T = TypeVar("T")


class HeldReader:
    """Reads at once, and hands over what it read only when told to."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self.has_read = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def __call__(self, query: Callable[[Connection], T]) -> T:
        found = await self._read(query)
        self.has_read.set()
        await self.may_answer.wait()
        return found


@dataclass(frozen=True)
class Load:
    """A load of the node that has read `early` and has not handed it over."""

    ledger: Ledger
    reader: HeldReader
    under_way: "asyncio.Task[list[str]]"

    async def finish_with_another(self) -> list[str]:
        """Begin another load, let both finish and return the texts that the later one holds."""
        later = asyncio.create_task(texts(self.ledger))
        self.reader.may_answer.set()
        await self.under_way
        return await later


@pytest_asyncio.fixture
async def load(ledger: Ledger) -> Load:
    await ledger.write(plant)
    await write(ledger, "early")
    reader = HeldReader(ledger.read)
    ledger.blocks = Blocks(reader, max_bytes=2**20, sole_writer=ledger.sole_writer)
    under_way = asyncio.create_task(texts(ledger))
    await reader.has_read.wait()
    return Load(ledger, reader, under_way)


async def test_an_entry_stored_during_a_load_is_in_the_next(load: Load) -> None:
    await write(load.ledger, "late")

    assert await load.finish_with_another() == ["early", "late"]


async def test_a_clear_during_a_load_leaves_nothing_to_the_next(load: Load) -> None:
    await load.ledger.write(clear)

    assert await load.finish_with_another() == []


async def test_what_is_written_after_a_clear_during_a_load_is_in_the_next(load: Load) -> None:
    await load.ledger.write(clear)
    await write(load.ledger, "late")

    assert await load.finish_with_another() == ["late"]


async def test_a_checkpoint_made_anew_during_a_load_shows_nothing_of_the_old(load: Load) -> None:
    await load.ledger.write(purge)
    await load.ledger.write(plant)

    assert await load.finish_with_another() == []


async def texts(ledger: Ledger) -> list[str]:
    [block] = await ledger.blocks.load(SCOPE)
    return [entry.text for entry in block.entries]


async def write(ledger: Ledger, text: str) -> None:
    """Store an entry that is indexed at once."""
    draft = PreparedEntry.of(new_entry_id(), Draft(text, {}), "{}")
    append = Append(
        checkpoint=NODE.checkpoint,
        collection=Collection.NODE_SCOPE,
        node=NODE,
        claim=Claim(str(NODE)),
        entries=(draft,),
        vectors=np.ones((1, 2), dtype=np.float32),
        model="two-ones",
    )
    assert isinstance(await ledger.append(append), Appended)


def plant(tx: Transaction) -> None:
    checkpoints.create(
        tx.connection, NODE.checkpoint, derived=False, path=None, name=None, metadata="{}"
    )
    nodes.create(tx.connection, NODE, parent=None, eval_summary=None, metadata="{}")


def clear(tx: Transaction) -> None:
    index = checkpoints.get(tx.connection, NODE.checkpoint).index(Collection.NODE_SCOPE)
    entries.clear(tx.connection, SCOPE, index=index)
    checkpoints.void_caches(tx.connection, NODE.checkpoint)
    tx.events.append(NodeCleared(NODE, Collection.NODE_SCOPE))


def purge(tx: Transaction) -> None:
    checkpoints.purge(tx.connection, NODE.checkpoint)
    tx.events.append(CheckpointChanged(NODE.checkpoint))
