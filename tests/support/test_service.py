"""The services that the tests talk to start, restart, and leave nothing behind."""

import os
import signal

import httpx
import pytest

from tests.conftest import Grow, StartLive, StartService
from tests.support.client import Api, answer, walk
from tests.support.service import InProcessService
from tests.support.tree import Tree

ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def test_two_trees_on_the_shared_service_do_not_meet(grow: Grow) -> None:
    one, other = grow(), grow()
    one.write("a", "blue door")

    assert one.own("a") == ["blue door"]
    assert other.own("a") == []


def test_the_shared_service_is_one_for_all_tests_of_a_database(
    service: InProcessService, tree: Tree
) -> None:
    assert str(tree.api.http.base_url).rstrip("/") == service.base_url


def test_a_service_started_on_anothers_storage_serves_its_entries(
    start_service: StartService,
) -> None:
    first = start_service()
    with Api(first.base_url) as api:
        answer(api.checkpoint("exp1"))
    first.stop()

    second = start_service(storage=first.storage)
    with Api(second.base_url) as api:
        found = walk(lambda cursor: api.checkpoints(cursor=cursor))
        assert [checkpoint["id"] for checkpoint in found] == ["exp1"]


@ON_SQLITE
def test_a_service_that_cannot_start_says_so(
    start_service: StartService,
) -> None:
    first = start_service()

    with pytest.raises(RuntimeError, match="ended at start"):
        start_service(storage=first.storage)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_live_service_stops_when_asked_and_comes_back_on_its_port(
    start_live: StartLive, how: signal.Signals
) -> None:
    live = start_live()
    live.terminate(how)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{live.base_url}/healthz")

    live.restart()
    assert httpx.get(f"{live.base_url}/healthz").status_code == 200


def test_a_killed_live_service_comes_back_with_what_it_acknowledged(start_live: StartLive) -> None:
    live = start_live()
    with Api(live.base_url) as api:
        answer(api.checkpoint("exp1"))

        live.kill()
        live.restart()

        assert api.get_checkpoint("exp1").status_code == 200


@ON_SQLITE
def test_a_live_service_that_cannot_start_shows_its_log(start_live: StartLive) -> None:
    with pytest.raises(RuntimeError, match="LINEAGE_MISSPELT"):
        start_live(LINEAGE_MISSPELT="1")


@ON_SQLITE
def test_the_exit_status_of_a_start_that_fails_can_be_asked_for(start_live: StartLive) -> None:
    live = start_live(until=None, LINEAGE_MISSPELT="1")

    assert live.wait() != 0


@ON_SQLITE
def test_a_closed_live_service_leaves_no_process(start_live: StartLive) -> None:
    live = start_live()
    pid = live.pid

    live.close()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
