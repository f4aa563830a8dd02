"""Do a movement on a checkpoint: planned on what is stored, written all at once.

A plan takes notes apart, which takes long where they are many: it is made before the transaction,
and made anew where core memory or the notes changed meanwhile.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.credentials import find_credential
from app.db import checkpoints as checkpoint_rows
from app.db.transaction import ReadTransaction, Transaction
from app.db.vectors import Vectors
from app.layers.diffs import diff_of
from app.layers.errors import CredentialInCore
from app.layers.movements import Moved, Plan, Step, plan
from app.layers.note import Note
from app.lineage.access import Operation
from app.lineage.entry import Entry
from app.lineage.guard import Claim
from app.lineage.texts import check_size
from app.memory.claims import operator_only
from app.memory.core_memory import write_core
from app.memory.services import Services
from app.memory.store_notes import NewNote, store_notes
from app.memory.stored_layers import Stored, is_still, stored_layers
from app.memory.write_entries import await_index

ATTEMPTS = 5

# A movement of app.layers with its arguments: what it makes of the layers as they are stored.
Rule: TypeAlias = Callable[[Stored], Moved]


@dataclass(frozen=True, slots=True)
class Movement:
    """What a movement did, or in a dry run would do; `words` is what core counts for then."""

    steps: Sequence[Step]
    diff: str
    words: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Planned:
    """A movement, what it was planned on, and what has to be written for it."""

    stored: Stored
    wanted: Plan
    movement: Movement


async def move(
    services: Services,
    checkpoint: str,
    rule: Rule,
    *,
    days: int = 0,
    dry_run: bool,
    claim: Claim | None,
) -> Movement:
    """Plan a movement and write it; of the daily notes, those of the last `days` are read.

    UnknownCheckpoint, ScopeViolation for any claim, TooLarge, CredentialInCore.
    """
    await operator_only(services, checkpoint, claim=claim, operation=Operation.MOVEMENT)

    def read(connection: ReadTransaction) -> Stored:
        return stored_layers(services, connection, checkpoint, days=days)

    def plan_on(stored: Stored) -> _Planned:
        return _plan(services, rule, stored, dry_run=dry_run)

    for _ in range(ATTEMPTS):
        planned = await asyncio.to_thread(plan_on, await services.ledger.read(read))
        if dry_run or not planned.wanted:
            return planned.movement
        if await _written(services, checkpoint, planned):
            return planned.movement

    def work(tx: Transaction) -> tuple[Movement, list[Entry]]:
        checkpoint_rows.lock(tx.connection, checkpoint)
        planned = plan_on(read(tx.connection))
        return planned.movement, _write(services, tx, checkpoint, planned, vectors=None)

    # Others were faster each time: now they wait.
    movement, entries = await services.ledger.write(work)
    await _await_archive(services, entries)
    return movement


def _plan(services: Services, rule: Rule, stored: Stored, *, dry_run: bool) -> _Planned:
    """Plan a movement. TooLarge, CredentialInCore."""
    moved = rule(stored)
    wanted = plan(stored.layers, moved.layers)
    for section, text in wanted.core.items():
        check_size(text, max_bytes=services.limits.max_text_bytes, what=section.value)
        # One that core has already may be moved.
        if (kind := find_credential(text, known=stored.layers.core[section])) is not None:
            raise CredentialInCore(section.value, kind)
    for note in wanted.notes:
        check_size(note.text, max_bytes=services.limits.max_text_bytes, what=note.ref)
    diff = diff_of(stored.layers, moved.layers)
    return _Planned(stored, wanted, Movement(moved.steps, diff, moved.layers.words, dry_run))


async def _written(services: Services, checkpoint: str, planned: _Planned) -> bool:
    """Write a plan; False where what it was made on has changed since."""
    texts = [note.text for note in planned.wanted.notes]
    vectors = await services.archive.vectors_at_write(texts) if texts else None

    def work(tx: Transaction) -> list[Entry] | None:
        checkpoint_rows.lock(tx.connection, checkpoint)
        if not is_still(tx.connection, checkpoint, planned.stored):
            return None
        return _write(services, tx, checkpoint, planned, vectors=vectors)

    entries = await services.ledger.write(work)
    if entries is None:
        return False
    await _await_archive(services, entries)
    return True


def _write(
    services: Services,
    tx: Transaction,
    checkpoint: str,
    planned: _Planned,
    *,
    vectors: Vectors | None,
) -> list[Entry]:
    """Write what a plan asks for; return the notes that are new."""
    wanted = planned.wanted
    notes = [NewNote(note, _former_ids(planned, note)) for note in wanted.notes]
    entries = store_notes(services, tx, checkpoint, notes, vectors=vectors) if notes else []
    if wanted.core:
        write_core(tx, checkpoint, {section.block: text for section, text in wanted.core.items()})
    return entries


def _former_ids(planned: _Planned, note: Note) -> list[str]:
    """Return the ids of the notes that a planned one stands for: its own, and what it took up."""
    ids = planned.stored.ids
    merged = [ref for ref, into in planned.wanted.removed.items() if into == note.ref]
    return [ids[ref] for ref in (note.ref, *merged) if ref in ids]


async def _await_archive(services: Services, entries: Sequence[Entry]) -> None:
    """Let the archive know what was written, and give it its time."""
    services.upkeep.wake()
    if entries:
        await await_index(services, tuple(entries), None)
