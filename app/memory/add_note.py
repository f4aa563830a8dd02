"""Add a note, under a name of its own."""

from collections.abc import Sequence

from app.db import checkpoints as checkpoint_rows
from app.db import idempotency
from app.db import notes as rows
from app.db.idempotency import Answer, Once
from app.db.transaction import ReadTransaction, Transaction
from app.layers.note import free_name, read_topic
from app.lineage.access import Operation
from app.lineage.entry import Metadata, text_digest
from app.lineage.guard import Claim
from app.memory.claims import operator_only
from app.memory.note_drafts import NoteDraft, WrittenNote, written_note
from app.memory.note_duplicates import refuse_duplicate
from app.memory.notes import StoredNote, day_of, topic_of
from app.memory.seen_notes import SeenNotes, names_of
from app.memory.services import Services
from app.memory.store_notes import indexed_note, store_note
from app.memory.write_entries import first_answer


async def add_note(
    services: Services,
    checkpoint: str,
    draft: NoteDraft,
    *,
    claim: Claim | None,
    once: Once | None = None,
) -> StoredNote | Answer:
    """Store a new note; the very same one again is the stored one (`made` is False).

    A name that another note of the topic has gets a number behind it. InvalidInput and TooLarge for
    what is sent, ScopeViolation for any claim, DuplicateFact for parts that core
    memory says all of.
    """
    topic = read_topic(draft.topic or "")
    written = await written_note(services, draft, topic=topic)
    await operator_only(services, checkpoint, claim=claim, operation=Operation.NOTE_WRITE)
    vectors = await services.archive.vectors_at_write([written.note.text])

    def look(connection: ReadTransaction) -> tuple[SeenNotes, bool]:
        answered = bool(once and idempotency.load(connection, [once.scope]))
        return SeenNotes.read(connection, checkpoint), answered

    seen, answered = await services.ledger.read(look)
    if not answered and _same(written, seen.listed) is None:
        await refuse_duplicate(draft, written.note, seen.core)

    def work(tx: Transaction) -> StoredNote | Answer:
        checkpoint_rows.lock(tx.connection, checkpoint)
        if once and (kept := idempotency.load(tx.connection, [once.scope])):
            return once.replay(kept[once.scope])
        listed = seen.still(tx.connection)
        if (same := _same(written, listed)) is not None:
            stored = _stored(tx, checkpoint, written, same)
        else:
            named = written.named(free_name(written.name, names_of(listed, topic)))
            stored = store_note(services, tx, checkpoint, named, vectors=vectors)
        if once:
            idempotency.keep(tx.connection, [once.row(checkpoint, stored)])
        return stored

    stored = await services.ledger.write(work)
    if isinstance(stored, Answer):
        return await first_answer(services, once, stored)
    return await indexed_note(services, stored, once)


def _same(written: WrittenNote, listed: Sequence[rows.Listed]) -> rows.Listed | None:
    """Return the note that is there already: of this text, this topic and this name."""
    digest = text_digest(written.note.text)
    there = (
        item
        for item in listed
        if item.sha256 == digest
        and topic_of(item.metadata) is written.note.topic
        and _is_called(item.metadata, written.name)
    )
    return next(there, None)


def _is_called(metadata: Metadata, name: str) -> bool:
    """Tell whether a note has the name, or got it with a number since it was taken."""
    called, name = str(metadata.get("name")).casefold(), name.casefold()
    stem, _, number = called.rpartition("-")
    return called == name or (stem == name and number.isascii() and number.isdigit())


def _stored(
    tx: Transaction, checkpoint: str, written: WrittenNote, same: rows.Listed
) -> StoredNote:
    """Return a note that is there already; its text, which is the one written, is not read anew."""
    (entry,) = rows.by_ids(tx.connection, checkpoint, [same.id])
    there = written.named(same.metadata["name"]).of(day_of(same.metadata) or written.note.date)
    return StoredNote(entry, there.note, there.words)
