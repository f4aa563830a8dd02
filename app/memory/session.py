"""What a session loads at its start: core memory, the day's notes, what helps of the archive."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from app.db.transaction import ReadTransaction
from app.lineage.access import Operation
from app.lineage.core_memory import CoreMemory
from app.lineage.entry import Entry
from app.lineage.guard import Claim
from app.memory.claims import reader_in
from app.memory.core_memory import read_core
from app.memory.daily_notes import DailyNote, daily_note_of, read_day
from app.memory.notes import NotesFound, find_notes
from app.memory.read_entries import record_shown
from app.memory.search_entries import check_query
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class Session:
    """Core memory, the notes of the day `date`, and the best of the archive (None: not asked)."""

    core: CoreMemory
    date: dt.date
    notes: Sequence[DailyNote]
    archival: NotesFound | None


async def start_session(
    services: Services, checkpoint: str, *, query: str | None, limit: int, claim: Claim | None
) -> Session:
    """Return what is loaded at a session's start: nothing of it is of a node or of the trace.

    Raises UnknownCheckpoint, ScopeViolation, StaleToken; with a query, what search_notes raises.
    """
    if query is not None:
        check_query(query)
    await reader_in(services, checkpoint, claim=claim, operation=Operation.SESSION)
    row = await services.ledger.places.checkpoint(checkpoint)
    found = None if query is None else await find_notes(services, row, query, limit=limit)
    today = services.local_time.date()

    def read(connection: ReadTransaction) -> tuple[CoreMemory, list[Entry]]:
        day = read_day(connection, checkpoint, today, index_epoch=row.index_epoch)
        return read_core(connection, checkpoint), day

    core, day = await services.ledger.read(read)
    hits = [item.stored.entry for item in found.found] if found else []
    record_shown(services, row, Operation.SESSION, [*hits, *day], claim=claim, query=query)
    notes = await asyncio.to_thread(lambda: [daily_note_of(services, each) for each in day])
    return Session(core, today, notes, found)
