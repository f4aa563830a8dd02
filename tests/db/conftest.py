"""Real, empty databases, and a real ledger over one."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from sqlalchemy import Engine

from app.db.engine import open_engine
from app.db.ledger import Ledger
from tests.conftest import NewStorage


@pytest.fixture
def database_url(new_storage: NewStorage) -> str:
    """The URL of an empty database, without a schema."""
    storage = new_storage()
    storage.data_dir.mkdir(parents=True, exist_ok=True)
    return storage.database_url or f"sqlite:///{storage.data_dir / 'lineage.db'}"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url, connections=2)
    yield engine
    engine.dispose()


@dataclass
class Losses:
    """How many access records the ledger says it lost, each time it did."""

    counts: list[int] = field(default_factory=list)


@pytest.fixture
def losses() -> Losses:
    return Losses()


@pytest_asyncio.fixture
async def ledger(database_url: str, losses: Losses) -> AsyncIterator[Ledger]:
    """A migrated ledger at work."""
    ledger = Ledger(database_url, cache_bytes=2**20, on_accesses_lost=losses.counts.append)
    ledger.open()
    await ledger.migrate()
    yield ledger
    await ledger.close()
