"""Prove that writes can be taken, by making one."""

from sqlalchemy import delete, insert

from app.db.instants import now_us
from app.db.migrate import check_current
from app.db.tables import write_probe
from app.db.transaction import Transaction


def probe(tx: Transaction) -> None:
    """Overwrite the probe's row; LedgerUnavailable where the schema is not ours."""
    check_current(tx.connection)
    tx.connection.execute(delete(write_probe))
    tx.connection.execute(insert(write_probe).values(id=1, at_us=now_us()))
