"""The sections of core memory one by one: each has a version of its own, and edits name it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from app.db import checkpoints as checkpoint_rows
from app.db.transaction import ReadTransaction, Transaction
from app.layers import core
from app.layers.core import Section
from app.layers.markdown.facts import fact, facts
from app.lineage.access import Operation
from app.lineage.core_memory import CoreMemory
from app.lineage.errors import InvalidInput
from app.lineage.guard import Claim
from app.lineage.texts import check_size
from app.lineage.versions import check_version
from app.memory.claims import operator_only, reader_in
from app.memory.core_duplicates import refuse_duplicates
from app.memory.core_memory import read_core, refuse_credentials, section_texts, write_core
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class SectionText:
    """What a section says, and its version, which is 0 until it is set."""

    section: Section
    text: str
    version: int

    @classmethod
    def of(cls, stored: CoreMemory, section: Section) -> "SectionText":
        """Take a section out of core memory."""
        return cls(section, stored.texts[section.block], stored.versions.get(section.block, 0))

    @property
    def etag(self) -> str:
        """The version as an entity tag."""
        return f'"{self.version}"'


async def core_section(
    services: Services, checkpoint: str, section: Section, *, claim: Claim | None
) -> SectionText:
    """Return a section. UnknownCheckpoint, ScopeViolation for a claim of another checkpoint."""
    await reader_in(services, checkpoint, claim=claim, operation=Operation.READ)
    stored = await services.ledger.read(lambda connection: read_core(connection, checkpoint))
    return SectionText.of(stored, section)


async def set_section(
    services: Services,
    checkpoint: str,
    section: Section,
    text: str,
    *,
    if_match: str | None,
    claim: Claim | None,
) -> SectionText:
    """Set a section's whole text, whatever notes say of it. CredentialInCore, and as _edit."""
    await refuse_credentials({section.value: text})
    return await _edit(
        services, checkpoint, section, lambda _: text, if_match=if_match, claim=claim
    )


async def append_line(
    services: Services,
    checkpoint: str,
    section: Section,
    line: str,
    *,
    if_match: str | None,
    claim: Claim | None,
) -> SectionText:
    """Put a line at the end of a section; one that core memory says already changes nothing.

    InvalidInput for what is not one line, CredentialInCore, DuplicateFact for what a note says, and
    what _edit raises.
    """
    _check_line(line, "append")
    await refuse_credentials({section.value: line})

    def edit(stored: CoreMemory) -> str:
        text = stored.texts[section.block]
        known = {said for other in section_texts(stored).values() for said in facts(other)}
        return text if fact(line) in known else core.append_line(text, line)

    return await _edit(
        services, checkpoint, section, edit, line=line, if_match=if_match, claim=claim
    )


async def replace_line(
    services: Services,
    checkpoint: str,
    section: Section,
    line: tuple[str, str],
    *,
    if_match: str | None,
    claim: Claim | None,
) -> SectionText:
    """Put a line in the place of another: `line` is the old one and the new one.

    LineMismatch unless exactly one line of the section is the old one; else as append_line.
    """
    old, new = line
    _check_line(old, "replace")
    _check_line(new, "with")
    await refuse_credentials({section.value: new})

    def edit(stored: CoreMemory) -> str:
        return core.replace_line(stored.texts[section.block], old, new)

    return await _edit(
        services, checkpoint, section, edit, line=new, if_match=if_match, claim=claim
    )


async def _edit(
    services: Services,
    checkpoint: str,
    section: Section,
    edit: Callable[[CoreMemory], str],
    *,
    line: str | None = None,
    if_match: str | None,
    claim: Claim | None,
) -> SectionText:
    """Store what an edit makes of a section; an edit that changes nothing writes nothing.

    `line` is the new one of an edit of one line, which no note may say already: DuplicateFact.
    UnknownCheckpoint, ScopeViolation for any claim, PreconditionRequired without an `if_match`,
    VersionMismatch where it is not the stored one's ("*": any), TooLarge.
    """
    await operator_only(services, checkpoint, claim=claim, operation=Operation.CORE_WRITE)

    def edited(connection: ReadTransaction) -> tuple[CoreMemory, str]:
        stored = read_core(connection, checkpoint)
        check_version(if_match, SectionText.of(stored, section).etag)
        text = edit(stored)
        check_size(text, max_bytes=services.limits.max_text_bytes, what=section.value)
        return stored, text

    def look(connection: ReadTransaction, line: str) -> None:
        stored, text = edited(connection)
        if text != stored.texts[section.block]:
            # The line by itself too, for it may become a part of what stands above it.
            said = [*facts(text), *facts(line)]
            refuse_duplicates(services, connection, checkpoint, former=stored, said=said)

    def work(tx: Transaction) -> tuple[SectionText, bool]:
        checkpoint_rows.lock(tx.connection, checkpoint)
        stored, text = edited(tx.connection)
        if text == stored.texts[section.block]:
            return SectionText.of(stored, section), False
        return SectionText.of(write_core(tx, checkpoint, {section.block: text}), section), True

    if line is not None:
        # Before the write, not in it: taking notes apart would hold up whoever else writes.
        await services.ledger.read(partial(look, line=line))
    done, changed = await services.ledger.write(work)
    if changed:
        services.upkeep.wake()
    return done


def _check_line(line: str, field: str) -> None:
    if line.splitlines() != [line] or not line.strip():
        raise InvalidInput("It is one line, not blank.", place=("body", field))
