"""Fixtures shared by all tests."""

from collections.abc import Iterator

import pytest

from tests.support.postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The PostgreSQL that all tests share, each in a database of its own."""
    with Postgres() as server:
        yield server
