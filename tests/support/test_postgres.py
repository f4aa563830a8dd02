"""The tests' PostgreSQL is a real one that starts, stops, keeps its data and leaves nothing."""

import os
import signal
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from tests.support.postgres import Postgres
from tests.support.proxy import Endpoint, FaultProxy


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


def scalar(url: str, statement: str, **values: str) -> object:
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            result = connection.execute(sa.text(statement), values)
            return result.scalar() if result.returns_rows else None
    finally:
        engine.dispose()


def test_a_fresh_database_holds_what_its_template_held(postgres: Postgres) -> None:
    with postgres.fresh_database() as original:
        postgres.execute("CREATE TABLE kept AS SELECT 7 AS number", database=original)

        with postgres.fresh_database(template=original) as copy:
            assert scalar(postgres.url(copy), "SELECT number FROM kept") == 7


def test_two_fresh_databases_share_nothing(postgres: Postgres) -> None:
    with postgres.fresh_database() as one, postgres.fresh_database() as other:
        postgres.execute("CREATE TABLE only_here (id int)", database=one)

        assert scalar(postgres.url(one), "SELECT to_regclass('only_here')") is not None
        assert scalar(postgres.url(other), "SELECT to_regclass('only_here')") is None


def test_a_fresh_database_is_dropped_even_while_somebody_is_connected(
    postgres: Postgres,
) -> None:
    with postgres.fresh_database() as name:
        engine = sa.create_engine(postgres.url(name))
        connection = engine.connect()
        connection.execute(sa.text("SELECT 1"))

    count = "SELECT count(*) FROM pg_database WHERE datname = :name"
    assert scalar(postgres.url("postgres"), count, name=name) == 0
    connection.invalidate()
    engine.dispose()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["in order", "crash"])
def test_a_stopped_server_refuses_and_has_its_data_again_after_the_start(
    own_postgres: Postgres, how: signal.Signals
) -> None:
    with own_postgres.fresh_database() as name:
        url = own_postgres.url(name)
        scalar(url, "CREATE TABLE kept AS SELECT 'still here' AS word")

        own_postgres.stop(how)
        with pytest.raises(sa.exc.OperationalError):
            scalar(url, "SELECT word FROM kept")

        own_postgres.start()
        assert scalar(url, "SELECT word FROM kept") == "still here"


def test_a_second_server_is_independent_of_the_shared_one(
    postgres: Postgres, own_postgres: Postgres
) -> None:
    assert own_postgres.pid != postgres.pid
    with (
        own_postgres.fresh_database() as name,
        pytest.raises(psycopg.OperationalError, match="does not exist"),
    ):
        postgres.execute("SELECT 1", database=name)


def test_a_closed_server_leaves_neither_process_nor_file() -> None:
    server = Postgres()
    server.start()
    pid, folder = server.pid, server.socket_path.parent
    assert pid is not None

    server.close()

    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_database_is_reached_over_tcp_through_a_proxy(postgres: Postgres) -> None:
    with (
        postgres.fresh_database() as name,
        FaultProxy(Endpoint.unix(postgres.socket_path)) as proxy,
    ):
        assert scalar(postgres.url(name, port=proxy.port), "SELECT current_database()") == name
