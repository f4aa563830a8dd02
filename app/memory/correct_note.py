"""Correct a note: another one takes its place, and core memory's references follow."""

from collections.abc import Sequence

from app.db import checkpoints as checkpoint_rows
from app.db import notes as rows
from app.db.transaction import ReadTransaction, Transaction
from app.layers.note import Note, Topic, free_name, read_topic
from app.lineage.access import Operation
from app.lineage.guard import Claim
from app.lineage.versions import check_version
from app.memory.claims import operator_only
from app.memory.core_memory import read_core, write_core
from app.memory.core_references import referring_anew
from app.memory.note_drafts import NoteDraft, WrittenNote, written_note
from app.memory.note_duplicates import refuse_duplicate
from app.memory.notes import StoredNote, counting_note
from app.memory.seen_notes import SeenNotes, names_of
from app.memory.services import Services
from app.memory.store_notes import indexed_note, store_note


async def correct_note(
    services: Services,
    checkpoint: str,
    note_id: str,
    draft: NoteDraft,
    *,
    if_match: str | None,
    claim: Claim | None,
) -> StoredNote:
    """Store a note that supersedes the one that counts in this one's place, and return it.

    PreconditionRequired without `if_match`, VersionMismatch where it is not the tag of the note
    that counts ("*" is any), UnknownNote, and what add_note raises. What says the same as the
    note that counts changes nothing. Where it gets another topic or name, core memory's references
    follow: TooLarge and CredentialInCore where they cannot.
    """
    # Bad input is refused whether there is such a note or not.
    await written_note(services, draft, topic=read_topic(draft.topic or Topic.REFERENCE))
    await operator_only(services, checkpoint, claim=claim, operation=Operation.NOTE_WRITE)

    def look(connection: ReadTransaction) -> StoredNote:
        return counting_note(services, connection, checkpoint, note_id)

    while True:
        former = await services.ledger.read(look)
        check_version(if_match, former.etag)
        stored = await _corrected(services, checkpoint, former, draft)
        if stored is not None:
            return await indexed_note(services, stored, None)
        # Others changed something meanwhile: what counts now is looked at, and its version, anew.


async def _corrected(
    services: Services, checkpoint: str, former: StoredNote, draft: NoteDraft
) -> StoredNote | None:
    """Store the correction of the note that counts, and let core memory's references follow it.

    None where another note counts by now, or what the correction was made for has changed.
    """
    former_id, former_note = former.entry.id, former.note
    topic = former_note.topic if draft.topic is None else read_topic(draft.topic)
    written = await written_note(services, draft, topic=topic, former=former_note)
    vectors = await services.archive.vectors_at_write([written.note.text])
    seen = await services.ledger.read(lambda connection: SeenNotes.read(connection, checkpoint))
    await refuse_duplicate(draft, written.note, seen.core, former=former_note)
    named = written.named(_name_beside(written, former_id, seen.listed))
    moves = _moves_references(former, named.note, seen.listed)
    refs = (former_note.ref, named.note.ref)
    blocks = await referring_anew(services, seen.core, *refs) if moves else {}

    def work(tx: Transaction) -> StoredNote | None:
        checkpoint_rows.lock(tx.connection, checkpoint)
        counting = rows.counting(tx.connection, checkpoint, former_id)
        if counting is None or counting.id != former_id:
            return None
        if _name_beside(written, former_id, seen.still(tx.connection)) != named.name:
            return None
        if named.note == former_note:
            return former
        if moves and read_core(tx.connection, checkpoint).versions != seen.core.versions:
            return None
        stored = store_note(
            services, tx, checkpoint, named, vectors=vectors, supersedes=[former_id]
        )
        if blocks:
            write_core(tx, checkpoint, blocks)
        return stored

    return await services.ledger.write(work)


def _name_beside(written: WrittenNote, former_id: str, listed: Sequence[rows.Listed]) -> str:
    """Return the name that a correction gets beside the notes that are not the one corrected."""
    return free_name(written.name, names_of(_others(former_id, listed), written.note.topic))


def _moves_references(former: StoredNote, note: Note, listed: Sequence[rows.Listed]) -> bool:
    """Tell whether references to a corrected note are to nothing else, and it has another ref."""
    taken = names_of(_others(former.entry.id, listed), former.note.topic)
    return note.ref != former.note.ref and former.note.name not in taken


def _others(former_id: str, listed: Sequence[rows.Listed]) -> list[rows.Listed]:
    return [item for item in listed if item.id != former_id]
