"""Read and set core memory: the same for every node of a checkpoint."""

import json

from app.db import access_log, core_blocks
from app.db import checkpoints as checkpoint_rows
from app.db.transaction import ReadTransaction, Transaction
from app.lineage.access import Access, Operation
from app.lineage.core_memory import CONTEXT, HUMAN, PERSONA, CoreChange, CoreMemory
from app.lineage.errors import VersionMismatch
from app.lineage.guard import Claim
from app.memory.claims import reader_in
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

    `if_match` is the entity tag that the caller has seen ("*": any); another one stored is
    VersionMismatch. TooLarge and InvalidInput for a block, ScopeViolation for a claim of another
    checkpoint; nothing is changed then.
    """
    blocks = change.blocks(max_bytes=services.limits.max_text_bytes)
    await reader_in(services, checkpoint, claim=claim, operation=Operation.CORE_WRITE)

    def work(tx: Transaction) -> CoreMemory:
        checkpoint_rows.lock(tx.connection, checkpoint)
        stored = read_core(tx.connection, checkpoint)
        if if_match not in (None, "*", stored.etag):
            raise VersionMismatch(stored.etag)
        core_blocks.write(tx.connection, checkpoint, blocks)
        reader = claim.node if claim else None
        access_log.record_with_write(tx, [Access(checkpoint, Operation.CORE_WRITE, reader, None)])
        return read_core(tx.connection, checkpoint)

    return await services.ledger.write(work)


def read_core(connection: ReadTransaction, checkpoint: str) -> CoreMemory:
    """Read core memory of a checkpoint that exists."""
    blocks, version = core_blocks.read(connection, checkpoint)
    return CoreMemory(
        persona=blocks.get(PERSONA, ""),
        human=blocks.get(HUMAN, ""),
        context=json.loads(blocks.get(CONTEXT, "{}")),
        version=version,
    )
