"""Compare a checkpoint's ledger with its archive, and mend the archive."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.archive.port import Passage
from app.db import checkpoints as checkpoint_rows
from app.db import entries as entry_rows
from app.db import indexing
from app.db.events import CheckpointChanged
from app.db.indexing import Indexed
from app.db.transaction import ReadTransaction, Transaction
from app.lineage.access import Operation
from app.lineage.checkpoint import Checkpoint, IndexKey
from app.lineage.entry import Collection
from app.lineage.guard import Claim
from app.memory.claims import operator_only
from app.memory.search_entries import check_model
from app.memory.services import Services


@dataclass(slots=True)
class Reconciled:
    """What did not fit: entries that count as indexed (`checked`), by id, and passages, by theirs.

    `missing` entries have no usable vector or passage, `differing` ones a passage of another text;
    `orphans` are passages of no entry, `doubles` those of an entry that has another one.
    """

    checked: int = 0
    missing: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Compared:
    """One index while its archive is walked through."""

    index: IndexKey
    ledger: dict[str, Indexed]
    found: dict[str, str] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    unsound: list[str] = field(default_factory=list)

    def add(self, passage: Passage, entry_id: str) -> None:
        """Note the passage of an entry that counts as indexed."""
        entry = self.ledger[entry_id]
        if not passage.sound:
            self.unsound.append(passage.id)
        elif entry_id not in self.found:
            self.found[entry_id] = passage.id
            if passage.sha256 != entry.sha256:
                self.differing.append(entry_id)
        elif passage.id == entry.passage_id:
            # The one that the ledger knows stays.
            self.doubles.append(self.found[entry_id])
            self.found[entry_id] = passage.id
        else:
            self.doubles.append(passage.id)

    @property
    def missing(self) -> list[str]:
        """The entries that count as indexed and have no sound passage."""
        return [entry_id for entry_id in self.ledger if entry_id not in self.found]

    @property
    def superfluous(self) -> list[str]:
        """The passages to remove."""
        return [*self.orphans, *self.doubles, *self.unsound]


async def reconcile(
    services: Services, checkpoint: str, *, dry_run: bool, claim: Claim | None
) -> Reconciled:
    """Find what does not fit between ledger and archive, and mend it unless `dry_run`.

    UnknownCheckpoint; ScopeViolation for any claim; ModelChanged where it is indexed for another
    archive or model: a reindex mends that; ArchiveUnavailable where the archive cannot be walked
    through. Missing entries become pending, orphans and doubles are removed; what differs in its
    text is told only.
    Takes as long as Letta takes to show all that it has: about 2 s a thousand passages.
    """
    await operator_only(services, checkpoint, claim=claim, operation=Operation.CHECKPOINT_WRITE)
    row, result = await services.ledger.read(
        lambda connection: _without_vector(connection, checkpoint)
    )
    check_model(services, row)
    if services.archive.elsewhere:
        for collection in Collection:
            compared = await _compare(services, row.index(collection))
            result.missing += [item for item in compared.missing if item not in result.missing]
            result.differing += compared.differing
            result.orphans += compared.orphans
            result.doubles += compared.doubles
            if not dry_run:
                await _mend_archive(services, compared)
    if not dry_run and result.missing:
        await _index_again(services, row, result.missing)
    return result


def _without_vector(connection: ReadTransaction, checkpoint: str) -> tuple[Checkpoint, Reconciled]:
    row = checkpoint_rows.get(connection, checkpoint)
    checked, broken = indexing.without_vector(
        connection, checkpoint, index_epoch=row.index_epoch, dimensions=row.dimensions or 0
    )
    return row, Reconciled(checked, broken)


async def _compare(services: Services, index: IndexKey) -> _Compared:
    """Walk through the archive; what is indexed meanwhile is not missed, and not judged."""
    ledger = await services.ledger.read(lambda connection: indexing.indexed(connection, index))
    compared = _Compared(index, ledger)
    async for part in services.archive.passages(index):
        strangers = []
        for passage in part:
            if passage.entry_id is not None and passage.entry_id in ledger:
                compared.add(passage, passage.entry_id)
            else:
                strangers.append(passage)
        compared.orphans += await _orphans(services, index, strangers)
    return compared


async def _orphans(services: Services, index: IndexKey, strangers: Sequence[Passage]) -> list[str]:
    """Return those that belong to no entry at all; one on its way is not judged."""
    ids = [passage.entry_id for passage in strangers if passage.entry_id is not None]
    there: set[str] = set()
    if ids:
        there = await services.ledger.read(
            lambda connection: entry_rows.still_there(connection, index.checkpoint, ids)
        )
    return [passage.id for passage in strangers if passage.entry_id not in there]


async def _mend_archive(services: Services, compared: _Compared) -> None:
    # Also where no entry is missing: there may be none, and core memory is mirrored there.
    await services.archive.prepare(compared.index)
    if compared.superfluous:
        await services.archive.remove(compared.index, compared.superfluous)


async def _index_again(services: Services, row: Checkpoint, missing: Sequence[str]) -> None:
    """Make entries pending, unless the checkpoint was purged or is indexed anew already."""

    def work(tx: Transaction) -> None:
        locked = checkpoint_rows.lock(tx.connection, row.id)
        if (locked["incarnation"], locked["index_epoch"]) != (row.incarnation, row.index_epoch):
            return
        indexing.make_pending(tx.connection, row.id, missing)
        checkpoint_rows.void_caches(tx.connection, row.id)
        tx.events.append(CheckpointChanged(row.id))

    await services.ledger.write(work)
    services.indexer.wake()
