"""No note is written in parts that says only what core memory says: one fact, one place."""

import asyncio

from app.layers.errors import DuplicateFact
from app.layers.markdown.facts import facts
from app.layers.note import Note
from app.lineage.core_memory import CoreMemory
from app.memory.core_memory import section_texts
from app.memory.note_drafts import NoteDraft, Parts


async def refuse_duplicate(
    draft: NoteDraft, note: Note, core: CoreMemory, *, former: Note | None = None
) -> None:
    """Refuse a note of which core memory says all that the former one does not: DuplicateFact.

    A whole text is somebody's file, and is taken as it is.
    """
    if isinstance(draft.content, Parts):
        await asyncio.to_thread(_refuse, note, core, former=former)


def _refuse(note: Note, core: CoreMemory, *, former: Note | None) -> None:
    new = {fact for fact in note.facts if former is None or not former.says(fact)}
    kept = {section: set(facts(text)) for section, text in section_texts(core).items()}
    if new and new <= set().union(*kept.values()):
        holding = [section.title for section, said in kept.items() if said & new]
        raise DuplicateFact(
            f"core memory ({', '.join(holding)})", "demote it to move it into the archive"
        )
