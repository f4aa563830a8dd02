"""Prove that writes can be taken, by making one."""

from sqlalchemy import delete, insert

from app.db.instants import now_us
from app.db.migrate import is_current
from app.db.tables import write_probe
from app.db.transaction import Transaction
from app.lineage.errors import LedgerUnavailable


def probe(tx: Transaction) -> None:
    """Overwrite the probe's row; LedgerUnavailable where the schema is not ours."""
    if not is_current(tx.connection):
        raise LedgerUnavailable("the schema is not the one this version needs: migrate it")
    tx.connection.execute(delete(write_probe))
    tx.connection.execute(insert(write_probe).values(id=1, at_us=now_us()))
