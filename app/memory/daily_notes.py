"""Write and read daily notes: what happened, day by day, the same for every node."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.db import entries as entry_rows
from app.db.append import Append, PreparedEntry
from app.db.entries import Position
from app.db.idempotency import Answer, Once
from app.db.transaction import ReadTransaction
from app.layers.daily import read_instant
from app.layers.note import MAX_TITLE, read_date
from app.layers.words import count_words
from app.lineage.access import Operation
from app.lineage.entry import Collection, Draft, Entry, Metadata
from app.lineage.errors import InvalidInput
from app.lineage.filters import MetadataFilter
from app.lineage.guard import Claim
from app.lineage.json_rules import check_object, compact
from app.lineage.lineage import daily_notes_of
from app.lineage.texts import check_text
from app.memory.claims import operator_only, reader_in
from app.memory.read_entries import record_shown
from app.memory.services import Services
from app.memory.write_entries import await_index, first_answer, new_entry_id

# What a session loads of a day; the rest is listed page by page.
MAX_OF_A_DAY = 1_000


@dataclass(frozen=True, slots=True)
class DailyDraft:
    """A daily note as somebody sends it: of the day and the time given, else of now.

    Of a day that is given nobody knows the time; `at` alone gives the day too.
    """

    text: str
    date: str | None = None
    at: str | None = None
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class DailyNote:
    """A daily note with its ledger row; `at` is when it happened, where that is known."""

    entry: Entry
    date: dt.date
    at: str | None
    heading: str | None
    words: int


@dataclass(frozen=True, slots=True)
class DailyPage:
    """A page of daily notes; `next_position` is None on the last one."""

    notes: Sequence[DailyNote]
    next_position: Position | None


async def add_daily_note(
    services: Services,
    checkpoint: str,
    draft: DailyDraft,
    *,
    claim: Claim | None,
    once: Once | None = None,
) -> Entry | Answer:
    """Store a daily note. InvalidInput, TooLarge, and ScopeViolation for any claim."""
    prepared = _prepared(services, draft)
    await operator_only(services, checkpoint, claim=claim, operation=Operation.DAILY_NOTE_WRITE)
    append = Append(
        checkpoint=checkpoint,
        collection=Collection.DAILY_NOTE,
        node=None,
        claim=None,
        entries=(prepared,),
        vectors=await services.archive.vectors_at_write([draft.text]),
        model=services.archive.model,
        once=once,
    )
    outcome = await services.ledger.append(append)
    if isinstance(outcome, Answer):
        return await first_answer(services, once, outcome)
    (stored,) = await await_index(services, outcome.entries, once)
    return stored


async def daily_notes(
    services: Services,
    checkpoint: str,
    *,
    date: str | None,
    limit: int,
    after: Position | None,
    claim: Claim | None,
) -> DailyPage:
    """Return daily notes, oldest first, of one day or of all.

    Raises InvalidInput for what is no day, UnknownCheckpoint, ScopeViolation, StaleToken.
    """
    day = None if date is None else day_of_query(date)
    await reader_in(services, checkpoint, claim=claim, operation=Operation.DAILY_NOTE_READ)
    row = await services.ledger.places.checkpoint(checkpoint)
    found = await services.ledger.read(
        lambda connection: entry_rows.page(
            connection,
            daily_notes_of(checkpoint),
            index_epoch=row.index_epoch,
            limit=limit + 1,
            after=after,
            **_of(day),
        )
    )
    page = found[:limit]
    entries = [item.entry for item in page]
    record_shown(services, row, Operation.DAILY_NOTE_READ, entries, claim=claim)
    notes = await asyncio.to_thread(lambda: [daily_note_of(services, each) for each in entries])
    return DailyPage(notes, page[-1].position if len(found) > limit else None)


def read_day(
    connection: ReadTransaction, checkpoint: str, day: dt.date, *, index_epoch: int
) -> list[Entry]:
    """Return the daily notes of a day, oldest first."""
    found = entry_rows.page(
        connection,
        daily_notes_of(checkpoint),
        index_epoch=index_epoch,
        limit=MAX_OF_A_DAY,
        after=None,
        **_of(day),
    )
    return [item.entry for item in found]


def daily_note_of(services: Services, entry: Entry) -> DailyNote:
    """Read a daily note's row."""
    return DailyNote(
        entry=entry,
        date=date_of(services, entry.metadata, entry.created_at),
        at=_time(entry.metadata.get("at")),
        heading=_text(entry.metadata.get("heading")),
        words=count_words(entry.text),
    )


def date_of(services: Services, metadata: Metadata, written_at: dt.datetime) -> dt.date:
    """Return the day of a daily note; one that says none is of the day when it was written."""
    try:
        return read_date(str(metadata.get("date")))
    except InvalidInput:
        return written_at.astimezone(services.limits.timezone).date()


def day_of_query(text: str) -> dt.date:
    """Read the day that a query string names. InvalidInput."""
    try:
        return read_date(text)
    except InvalidInput as error:
        raise InvalidInput(str(error), place=("query", "date")) from None


def check_heading(heading: str) -> str:
    """Return the heading of a daily note; InvalidInput where it is not one line."""
    if not heading or len(heading) > MAX_TITLE or len(heading.splitlines()) > 1:
        raise InvalidInput(
            f"A heading is one line of 1 to {MAX_TITLE} characters.", place=("body", "heading")
        )
    return heading


def _prepared(services: Services, draft: DailyDraft) -> PreparedEntry:
    check_text(draft.text, max_bytes=services.limits.max_text_bytes, place=("body", "text"))
    day, at = _when(services, draft)
    metadata: dict[str, Any] = {"date": day.isoformat()}
    if at is not None:
        metadata["at"] = at
    if draft.heading is not None:
        metadata["heading"] = check_heading(draft.heading.strip())
    entry = Draft(draft.text, metadata)
    return PreparedEntry.of(new_entry_id(), entry, check_object(metadata, place=("body",)))


def _when(services: Services, draft: DailyDraft) -> tuple[dt.date, str | None]:
    """Return a note's day and its time. InvalidInput."""
    given = None if draft.at is None else read_instant(draft.at)
    if draft.date is not None:
        return read_date(draft.date), draft.at
    if given is not None:
        return given.date(), draft.at
    now = services.local_time
    return now.date(), now.isoformat(timespec="seconds")


def _time(value: object) -> str | None:
    """Return a time, None for what a restore brought that is none."""
    try:
        read_instant(str(value))
    except InvalidInput:
        return None
    return str(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _of(day: dt.date | None) -> dict[str, Any]:
    """Return what narrows a page of daily notes to a day."""
    if day is None:
        return {}
    told = {"date": day.isoformat()}
    return {
        "matching": MetadataFilter.from_values(told),
        "saying": compact(told).strip("{}"),
    }
