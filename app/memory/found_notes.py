"""Which notes were found often of late: the access log knows."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from app.credentials import find_credential
from app.db import access_log
from app.db import notes as note_rows
from app.db.instants import to_us
from app.db.transaction import ReadTransaction
from app.layers.movements import Action, Moved, Step
from app.layers.movements.promote import DAYS, OFTEN
from app.lineage.access import Operation
from app.lineage.guard import Claim
from app.memory.claims import operator_only
from app.memory.services import Services
from app.memory.stored_layers import Stored

OF_LATE = dt.timedelta(days=DAYS)
CREDENTIAL = "Its summary holds a likely credential, which has no place in core."


@dataclass(frozen=True, slots=True)
class FoundNotes:
    """The notes that were found often, and how often; one with a credential is kept out of core."""

    counts: Mapping[str, int]
    kept: tuple[Step, ...]

    @classmethod
    def of(cls, stored: Stored, found: Mapping[str, int]) -> Self:
        """Read counts by entry as counts by ref."""
        often = {ref: found[entry] for ref, entry in stored.ids.items() if found[entry] >= OFTEN}
        secret = {ref for ref in often if find_credential(stored.layers.note(ref).summary)}
        return cls(
            {ref: count for ref, count in often.items() if ref not in secret},
            tuple(Step(Action.KEPT, CREDENTIAL, ref=ref) for ref in sorted(secret)),
        )

    def told(self, moved: Moved) -> Moved:
        """Return what was moved, with what was left alone."""
        return Moved(moved.layers, moved.steps + self.kept)


async def found_notes(
    services: Services, checkpoint: str, *, claim: Claim | None
) -> Callable[[Stored], FoundNotes]:
    """Return what tells which notes of a state were found often of late."""
    await operator_only(services, checkpoint, claim=claim, operation=Operation.MOVEMENT)
    # What was found a moment ago may still wait to be written down.
    await services.accesses.flush()
    since_us = to_us(services.clock() - OF_LATE)

    def read(connection: ReadTransaction) -> tuple[dict[str, int], dict[str, str]]:
        return (
            access_log.finds(connection, checkpoint, since_us=since_us),
            note_rows.successors(connection, checkpoint),
        )

    counts, successors = await services.ledger.read(read)
    found: Counter[str] = Counter()
    for entry_id, count in counts.items():
        found[successors.get(entry_id, entry_id)] += count
    return lambda stored: FoundNotes.of(stored, found)
