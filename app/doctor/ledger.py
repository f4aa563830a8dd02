"""The database: there, writable, and of this version."""

from collections.abc import Iterator

from app.db.checkup import Schema, database_folder, look_at_database
from app.doctor.check import Check, fail, ok, warn
from app.lineage.errors import LedgerUnavailable
from app.settings import Settings

DATABASE, SCHEMA = "database", "schema"


def check_ledger(settings: Settings) -> Iterator[Check]:
    """Write into the database, take it back, and compare its schema."""
    kind = "PostgreSQL" if database_folder(settings.database) is None else "SQLite"
    try:
        schema = look_at_database(settings.database)
    except LedgerUnavailable as error:
        yield fail(DATABASE, f"{kind}: {error.reason}.", do=_remedy(kind))
        return
    yield ok(
        DATABASE,
        f"{kind} answers and can be written." if schema.at else f"{kind}, nothing is there yet.",
    )
    yield _schema(schema)


def _schema(schema: Schema) -> Check:
    if schema.at == schema.needed:
        return ok(SCHEMA, f"At {schema.at}, which this version needs.")
    if schema.is_newer:
        return fail(
            SCHEMA,
            f"At {schema.at}: a later version than this one made it.",
            do="Upgrade letta-lineage, or restore a backup from before the upgrade.",
        )
    return warn(
        SCHEMA,
        f"{f'At {schema.at}' if schema.at else 'Empty'}; this version needs {schema.needed}.",
        do="letta-lineage migrate, or serve, which migrates when it starts.",
    )


def _remedy(kind: str) -> str:
    if kind == "SQLite":
        return "See to LINEAGE_DATA_DIR (or LINEAGE_DATABASE_URL): rights, disk, other processes."
    return "See to PostgreSQL, and to host, user and password in LINEAGE_DATABASE_URL."
