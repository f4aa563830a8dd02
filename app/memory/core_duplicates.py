"""No line is written to core memory that the archive has already."""

from collections.abc import Iterable

from app.db import notes as note_rows
from app.db.transaction import ReadTransaction
from app.layers.errors import DuplicateFact
from app.layers.markdown.facts import facts
from app.layers.movements.state import referred
from app.lineage.core_memory import CoreMemory
from app.memory.notes import note_of
from app.memory.services import Services


def refuse_duplicates(
    services: Services,
    connection: ReadTransaction,
    checkpoint: str,
    *,
    former: CoreMemory,
    said: Iterable[str],
) -> None:
    """Refuse facts that are new to core memory and in a note: DuplicateFact names the note.

    What core memory has said before may stay, and so may references.
    """
    known = {statement for text in former.texts.values() for statement in facts(text)}
    new = [statement for statement in said if statement not in known and referred(statement)[0]]
    if not new:
        return
    for entry in note_rows.current(connection, checkpoint):
        # A note is taken apart only where the words of a fact are there at all.
        there = [each for each in new if all(word in entry.text for word in each.split())]
        if there and any(map((note := note_of(services, entry)).says, there)):
            raise DuplicateFact(
                note.ref, f"promote the note, or write `See archival: {note.ref}` in its place"
            )
