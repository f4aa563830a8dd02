"""Where one service keeps its state: a data directory, and a database of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.postgres import Postgres


@dataclass(frozen=True)
class Storage:
    """A data directory and a database URL, where None is the SQLite file in that directory.

    Two services on one storage, one after the other, serve the same experiments.
    """

    data_dir: Path
    database_url: str | None = None


@contextmanager
def fresh_storage(data_dir: Path, *, server: Postgres | None) -> Iterator[Storage]:
    """Yield an empty storage: a database on `server`, dropped on leaving, or SQLite without one."""
    if server is None:
        yield Storage(data_dir)
        return
    with server.fresh_database() as name:
        yield Storage(data_dir, server.url(name))
