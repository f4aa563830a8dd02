"""What is kept for a time only goes in time, and nothing else does."""

from sqlalchemy import select

from app.db import access_log as log_rows
from app.db import checkpoints, idempotency
from app.db.access_log import SeenAccess
from app.db.instants import now_us
from app.db.ledger import Ledger
from app.db.tables import access_log, idempotent_answers
from app.db.transaction import Transaction
from app.lineage.access import Access, Operation
from app.memory.housekeeping import DAY_US, Housekeeping

CHECKPOINT = "exp"


async def plant(ledger: Ledger, *, ages_us: list[int]) -> None:
    """Make a checkpoint whose log has a record of each age."""

    def work(tx: Transaction) -> None:
        made, _ = checkpoints.create(
            tx.connection, CHECKPOINT, derived=False, path=None, name=None, metadata="{}"
        )
        seen = [
            SeenAccess(
                made.incarnation,
                now_us() - age,
                Access(CHECKPOINT, Operation.READ, reader=None, target=None, query=f"age {age}"),
            )
            for age in ages_us
        ]
        log_rows.record_seen(tx, seen)

    await ledger.write(work)


async def kept_queries(ledger: Ledger) -> set[str]:
    query = select(access_log.c.query)
    return set(await ledger.read(lambda connection: connection.execute(query).scalars().all()))


async def test_records_older_than_their_days_go(ledger: Ledger) -> None:
    await plant(ledger, ages_us=[0, 29 * DAY_US, 31 * DAY_US])

    await Housekeeping(ledger, access_log_days=30, access_log_rows=100).prune()

    assert await kept_queries(ledger) == {"age 0", f"age {29 * DAY_US}"}


async def test_of_too_many_records_the_oldest_go(ledger: Ledger) -> None:
    # More than one deletion's worth of them.
    ages = [number * 1_000_000 for number in range(log_rows.PRUNE_ROWS + 500)]
    await plant(ledger, ages_us=ages)

    await Housekeeping(ledger, access_log_days=30, access_log_rows=10).prune()

    assert await kept_queries(ledger) == {f"age {age}" for age in ages[:10]}


async def test_answers_for_repeats_go_after_a_day(ledger: Ledger) -> None:
    await plant(ledger, ages_us=[])
    ages = {b"fresh": 0, b"almost": idempotency.KEPT_US - 60_000_000, b"old": idempotency.KEPT_US}
    rows = [
        {
            "checkpoint_id": CHECKPOINT,
            "scope": scope,
            "body_sha256": b"",
            "status": 201,
            "body": "{}",
            "created_us": now_us() - age,
        }
        for scope, age in ages.items()
    ]
    await ledger.write(lambda tx: idempotency.keep(tx.connection, rows))

    await Housekeeping(ledger, access_log_days=30, access_log_rows=100).prune()

    query = select(idempotent_answers.c.scope)
    kept = await ledger.read(lambda connection: connection.execute(query).scalars().all())
    assert set(kept) == {b"fresh", b"almost"}
