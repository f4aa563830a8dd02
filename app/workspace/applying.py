"""What a plan means for the files of a workspace, in the order in which nothing can get lost.

Archive first, core after it, what was merged away last: whoever is killed in between leaves a fact
in both layers rather than in none, and the next run goes on from there.
"""

from app.layers.movements import Plan
from app.workspace.errors import InTheWay
from app.workspace.folder import Folder, Seen
from app.workspace.outcome import Change, changed
from app.workspace.paths import note_path
from app.workspace.reading import Reading


def changes_of(folder: Folder, reading: Reading, plan: Plan) -> tuple[Change, ...]:
    """Return the changes that a plan asks for. InTheWay where a file that we skip is in the way."""
    notes = [Change(place_of(folder, reading, note.ref), note.text.encode()) for note in plan.notes]
    core = str(reading.document.with_bodies(plan.core)) if plan.core else None
    cores = [Change(reading.core, core.encode())] if core is not None else []
    gone = [Change(reading.notes[ref], None) for ref in plan.removed]
    return changed((*notes, *cores, *gone))


def place_of(folder: Folder, reading: Reading, ref: str) -> Seen:
    """Return the file of a note, or where a new one goes. InTheWay where another file is."""
    seen = reading.notes.get(ref) or folder.read(note_path(ref))
    if seen.data is not None and ref not in reading.notes:
        raise InTheWay(seen.path)
    return seen
