"""Read and set core memory: the same for every node of a checkpoint."""

import asyncio
import json
from collections.abc import Mapping

from app.credentials import find_credential
from app.db import access_log, core_blocks
from app.db import checkpoints as checkpoint_rows
from app.db.transaction import ReadTransaction, Transaction
from app.layers.core import Section
from app.layers.errors import CredentialInCore
from app.lineage.access import Access, Operation
from app.lineage.core_memory import CONTEXT, EMPTY_TEXTS, CoreChange, CoreMemory
from app.lineage.guard import Claim
from app.lineage.versions import check_version
from app.memory.claims import operator_only, reader_in
from app.memory.services import Services


async def core_memory(services: Services, checkpoint: str, *, claim: Claim | None) -> CoreMemory:
    """Return core memory. UnknownCheckpoint, ScopeViolation for a claim of another checkpoint."""
    await reader_in(services, checkpoint, claim=claim, operation=Operation.READ)
    return await services.ledger.read(lambda connection: read_core(connection, checkpoint))


async def set_core_memory(
    services: Services,
    checkpoint: str,
    change: CoreChange,
    *,
    if_match: str | None,
    claim: Claim | None,
) -> CoreMemory:
    """Set blocks and return core memory.

    `if_match` is the entity tag that the caller has seen, of either form ("*": any); another one
    stored is VersionMismatch. TooLarge, InvalidInput and CredentialInCore for a block,
    ScopeViolation for any claim, since every node reads what is written here; nothing is changed
    then.
    """
    blocks = change.blocks(max_bytes=services.limits.max_text_bytes)
    await refuse_credentials(change.said())
    await operator_only(services, checkpoint, claim=claim, operation=Operation.CORE_WRITE)

    def work(tx: Transaction) -> CoreMemory:
        checkpoint_rows.lock(tx.connection, checkpoint)
        stored = read_core(tx.connection, checkpoint)
        if if_match is not None:
            check_version(if_match, stored.etag, stored.markdown_etag)
        return write_core(tx, checkpoint, blocks)

    stored = await services.ledger.write(work)
    services.upkeep.wake()
    return stored


async def refuse_credentials(said: Mapping[str, str]) -> None:
    """Refuse texts for core memory that hold a likely credential: CredentialInCore names which.

    In a thread, for it takes a tenth of a second where every block is full.
    """
    for where, text in said.items():
        if (kind := await asyncio.to_thread(find_credential, text)) is not None:
            raise CredentialInCore(where, kind)


def write_core(tx: Transaction, checkpoint: str, blocks: Mapping[str, str]) -> CoreMemory:
    """Set blocks, write the access down, return core memory; the caller holds the lock."""
    core_blocks.write(tx.connection, checkpoint, dict(blocks))
    access_log.record_with_write(tx, [Access(checkpoint, Operation.CORE_WRITE, None, None)])
    return read_core(tx.connection, checkpoint)


def read_core(connection: ReadTransaction, checkpoint: str) -> CoreMemory:
    """Read core memory of a checkpoint that exists."""
    stored = core_blocks.read(connection, checkpoint)
    return CoreMemory(
        texts={label: stored.blocks.get(label, "") for label in EMPTY_TEXTS},
        context=json.loads(stored.blocks.get(CONTEXT, "{}")),
        version=stored.version,
        versions=stored.versions,
    )


def section_texts(core: CoreMemory) -> dict[Section, str]:
    """Return what each section says."""
    return {section: core.texts[section.block] for section in Section}
