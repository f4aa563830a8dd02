"""Move facts between the layers of a checkpoint: the rules of `app.layers`, on what is stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.db import notes as note_rows
from app.layers import movements
from app.layers.core import Section
from app.layers.movements import Moved
from app.layers.note import Topic
from app.lineage.guard import Claim
from app.memory.found_notes import found_notes
from app.memory.moving import Movement, move
from app.memory.services import Services
from app.memory.stored_layers import Stored


@dataclass(frozen=True, slots=True)
class Demotion:
    """Which item goes, and into which note; see app.layers.movements.demote."""

    section: Section
    item: str
    topic: Topic | None
    title: str | None
    tags: Sequence[str]


async def demote(
    services: Services, checkpoint: str, wanted: Demotion, *, dry_run: bool, claim: Claim | None
) -> Movement:
    """Move an item of core to the archive. UnknownItem, and what `move` raises."""
    today = services.local_time.date()

    def demoted(stored: Stored) -> Moved:
        return movements.demote(
            stored.layers,
            wanted.section,
            wanted.item,
            today=today,
            topic=wanted.topic,
            title=wanted.title,
            tags=wanted.tags,
        )

    return await move(services, checkpoint, demoted, dry_run=dry_run, claim=claim)


async def promote(
    services: Services,
    checkpoint: str,
    note: str | None,
    section: Section,
    *,
    dry_run: bool,
    claim: Claim | None,
) -> Movement:
    """Copy a note's summary to core, by its id or ref; without one, of those found often.

    UnknownNote, CredentialInCore, and what `move` raises.
    """
    if note is None:
        return await _promote_found(services, checkpoint, dry_run=dry_run, claim=claim)

    successors = await services.ledger.read(
        lambda connection: note_rows.successors(connection, checkpoint)
    )
    named = successors.get(note, note)

    def promoted(stored: Stored) -> Moved:
        return movements.promote(stored.layers, stored.ref_of(named), section=section)

    return await move(services, checkpoint, promoted, dry_run=dry_run, claim=claim)


async def consolidate(
    services: Services, checkpoint: str, *, days: int, dry_run: bool, claim: Claim | None
) -> Movement:
    """Copy what the daily notes of the last days say into notes. Raises what `move` raises."""
    today = services.local_time.date()

    def consolidated(stored: Stored) -> Moved:
        return movements.consolidate(stored.layers, today=today, days=days)

    return await move(services, checkpoint, consolidated, days=days, dry_run=dry_run, claim=claim)


async def trim(
    services: Services,
    checkpoint: str,
    *,
    max_words: int | None,
    dry_run: bool,
    claim: Claim | None,
) -> Movement:
    """Demote items until core is within the limit. Raises what `move` raises."""
    today = services.local_time.date()
    limit = max_words or services.limits.core_max_words

    def trimmed(stored: Stored) -> Moved:
        return movements.trim(stored.layers, today=today, max_words=limit)

    return await move(services, checkpoint, trimmed, dry_run=dry_run, claim=claim)


async def heartbeat(
    services: Services,
    checkpoint: str,
    *,
    days: int,
    max_words: int | None,
    dry_run: bool,
    claim: Claim | None,
) -> Movement:
    """Consolidate, promote what was found often, trim, merge. Raises what `move` raises."""
    today = services.local_time.date()
    limit = max_words or services.limits.core_max_words
    found = await found_notes(services, checkpoint, claim=claim)

    def put_in_order(stored: Stored) -> Moved:
        often = found(stored)
        moved = movements.heartbeat(
            stored.layers, today=today, days=days, max_words=limit, found=often.counts
        )
        return often.told(moved)

    return await move(services, checkpoint, put_in_order, days=days, dry_run=dry_run, claim=claim)


async def _promote_found(
    services: Services, checkpoint: str, *, dry_run: bool, claim: Claim | None
) -> Movement:
    found = await found_notes(services, checkpoint, claim=claim)

    def promoted(stored: Stored) -> Moved:
        often = found(stored)
        return often.told(movements.promote_found(stored.layers, often.counts))

    return await move(services, checkpoint, promoted, dry_run=dry_run, claim=claim)
