"""The start command of a Letta server: its database made ready, then the server itself.

`make letta` and docker-compose.yml both run this file, by the Python that Letta is installed in.
Letta's own start script cannot do it: it gives one database URI to both the migrations and the
server, and the server's connection pool needs `?ssl=disable`, which the migrations' driver refuses.
"""
# ruff: noqa: INP001, T201  # a script to run, no package; what it prints is the server's log

import argparse
import asyncio
import importlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

RETRY_S = 1.0


def main() -> None:
    """Prepare the database that LETTA_PG_URI names, then serve until told to stop."""
    arguments = _arguments()
    uri = os.environ.get("LETTA_PG_URI", "")
    if not uri.startswith("postgresql://") or "?" in uri:
        sys.exit("LETTA_PG_URI has to be postgresql://user:password@host:port/database, no more.")
    asyncio.run(prepare_database(uri))
    migrate(arguments.migrations)
    serve(uri, host=arguments.host, port=arguments.port)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Start a Letta server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8283)
    parser.add_argument("--migrations", type=Path, required=True, help="where alembic.ini is")
    return parser.parse_args()


async def prepare_database(uri: str) -> None:
    """Make the database and what its first migration takes for granted, however late it comes."""
    asyncpg = importlib.import_module("asyncpg")
    # Refused, not resolved, starting up, shutting down or cut off: all of it may pass.
    passing = (
        OSError,
        TimeoutError,
        asyncpg.PostgresConnectionError,
        asyncpg.OperatorInterventionError,
    )
    said = ""
    while True:
        try:
            await _execute(asyncpg, uri, "CREATE EXTENSION IF NOT EXISTS vector")
        except asyncpg.InvalidCatalogNameError:
            await _create_database(asyncpg, uri)
        except passing as error:
            if str(error) != said:
                print(f"Waiting for PostgreSQL: {error}", flush=True)
                said = str(error)
            await asyncio.sleep(RETRY_S)
        else:
            return


async def _create_database(asyncpg: Any, uri: str) -> None:
    name = unquote(urlsplit(uri).path.removeprefix("/")).replace('"', '""')
    with suppress(asyncpg.DuplicateDatabaseError):  # another Letta was faster
        await _execute(asyncpg, uri, f'CREATE DATABASE "{name}"', database="postgres")


async def _execute(asyncpg: Any, uri: str, statement: str, **place: str) -> None:
    connection = await asyncpg.connect(uri, ssl=False, timeout=10, **place)
    try:
        await connection.execute(statement, timeout=30)
    finally:
        await connection.close(timeout=5)


def migrate(folder: Path) -> None:
    """Bring the schema to Letta's version; exit with alembic's status if it fails."""
    print("Migrating the database", flush=True)
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    # Its standard output is the URI with the password; what it does goes to standard error.
    run = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)  # noqa: S603
    if run.returncode:
        sys.exit(f"The migration failed (exit status {run.returncode}): see above.")


def serve(uri: str, *, host: str, port: int) -> None:
    """Run the server in this process, on a pool of connections."""
    # Without the pool every transaction connects anew, which stalls under load; with it Letta
    # insists on TLS unless the URI says otherwise. Letta reads both when it is imported.
    os.environ |= {
        "LETTA_PG_URI": f"{uri}?ssl=disable",
        "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",
    }
    # At every start Letta would fetch a tokenizer for uploaded files from the internet, and wait
    # for it where packets are dropped. Nothing here uploads files.
    nltk: Any = importlib.import_module("nltk")
    nltk.download = lambda *_, **__: False
    importlib.import_module("letta.server.rest_api.app").start_server(host=host, port=port)


if __name__ == "__main__":
    main()
