"""Triggers by which a real database refuses what a test says it should."""

from sqlalchemy import Engine, text

SQLITE = """
CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} WHEN {condition}
BEGIN SELECT RAISE(ABORT, 'refused by a trigger'); END
"""
POSTGRESQL = """
CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'refused by a trigger'; END $$;
CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} FOR EACH ROW WHEN ({condition})
EXECUTE FUNCTION refuse_{table}()
"""


def refuse_inserts(engine: Engine, table: str, *, condition: str = "true") -> None:
    """Let the database refuse rows for which `condition`, which may speak of NEW, is true."""
    statement = SQLITE if engine.dialect.name == "sqlite" else POSTGRESQL
    with engine.begin() as connection:
        connection.execute(text(statement.format(table=table, condition=condition)))


def take_inserts_again(engine: Engine, table: str) -> None:
    on = "" if engine.dialect.name == "sqlite" else f" ON {table}"
    with engine.begin() as connection:
        connection.execute(text(f"DROP TRIGGER refuse_{table}{on}"))
