"""Letta is away, slow, wrong or cut off under the service, which loses and doubles nothing.

Every fault is made by a proxy between the service and the real Letta. "Killed" is what the service
sees of a kill: its connections cut, in the middle of what it asked, and new ones refused; a Letta
of a test's own takes half a minute to come up.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conftest import StartService
from tests.letta.outage import (
    Searcher,
    Writer,
    assert_all_found,
    assert_one_passage_each,
    assert_unavailable,
    grow_roots,
    passages_of,
    reconcile,
    searched,
    settled,
    written,
)
from tests.support.client import Api, answer
from tests.support.http_proxy import Answers, Fate, HttpFaultProxy, Lost, Request
from tests.support.letta import RealLetta
from tests.support.ports import LOOPBACK
from tests.support.postgres import Postgres
from tests.support.proxy import Endpoint, FaultProxy
from tests.support.service import InProcessService
from tests.support.storage import Storage
from tests.support.wait import wait_until

pytestmark = [pytest.mark.letta, pytest.mark.timeout(300)]

HELD_UP_S = 30.0
# What waited for Letta would take as long as Letta.
PROMPT_S = HELD_UP_S / 2

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@contextmanager
def calls(service: InProcessService) -> Iterator[Api]:
    with Api(service.base_url) as api:
        yield api


@on_sqlite
def test_a_service_that_starts_before_letta_takes_writes_and_indexes_them_when_it_comes(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    way.refuse()
    service = start_behind()
    with calls(service) as api:
        tree = grow_roots(api, 2)
        writers = [Writer(tree[name]) for name in tree.names]
        with written(service.base_url, writers, each=3):
            pass
        assert not any(entry["indexed"] for writer in writers for entry in writer.acknowledged)
        state = answer(api.readyz())
        assert state["status"] == "degraded"
        assert "Letta" in state["archive"]
        searcher = Searcher(writers)
        searcher.look(api)
        assert searcher.exact == 2  # of nothing yet, and it says how many are to come

        way.restore()
        settled(api, tree.checkpoint)
        assert_all_found(api, writers)
        assert_one_passage_each(letta, tree.checkpoint, writers)
        # The state that is told may be a second old.
        wait_until(
            lambda: answer(api.readyz())["status"] == "ok", describe="nothing is degraded any more"
        )


@pytest.mark.slow
def test_a_letta_killed_and_restarted_during_500_writes_costs_none_of_them(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    service = start_behind(index_wait_s=1)
    with calls(service) as api:
        tree = grow_roots(api, 10)
        writers = [Writer(tree[name]) for name in tree.names]
        with written(service.base_url, writers, each=1):
            pass
        settled(api, tree.checkpoint)  # so that there is something to find from the start
        with (
            searched(service.base_url, writers) as searcher,
            written(service.base_url, writers, each=50) as reached,
        ):
            for killed_at, back_at in ((100, 150), (300, 350)):
                reached(killed_at)
                way.refuse()
                reached(back_at)
                way.restore()
        settled(api, tree.checkpoint)
        assert searcher.told_to_come_again
        assert searcher.exact
        assert_all_found(api, writers)
        # An insert that was cut is looked for before it is sent again.
        assert_one_passage_each(letta, tree.checkpoint, writers)


@on_sqlite
def test_a_letta_that_answers_500_to_every_third_call_is_worked_with(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    made: defaultdict[bool, Iterator[int]] = defaultdict(count)

    def every_third(request: Request) -> Fate:
        """Fail every third insert, and every third of all else, from the first one on."""
        number = next(made[request.path.endswith("/batch")])
        # Half of them are carried out all the same.
        return Answers(500, carried_out=number % 2 == 0) if number % 3 == 0 else None

    way.meddle(every_third)
    service = start_behind()
    with calls(service) as api:
        tree = grow_roots(api, 4)
        writers = [Writer(tree[name]) for name in tree.names]
        with searched(service.base_url, writers), written(service.base_url, writers, each=20):
            pass
        with searched(service.base_url, writers) as searcher:
            settled(api, tree.checkpoint)
            wait_until(
                lambda: searcher.exact and searcher.told_to_come_again,
                describe="some searches are answered and others are not",
            )

        assert any(request.path.endswith("/batch") for request in way.failed)
        way.restore()
        assert_all_found(api, writers)
        assert_one_passage_each(letta, tree.checkpoint, writers)
        assert len(letta.agents(tree.checkpoint)) == len(letta.archives(tree.checkpoint)) == 1


@on_sqlite
@pytest.mark.parametrize("fate", [Lost.CUT, Answers(500, carried_out=True)], ids=["cut", "500"])
@pytest.mark.parametrize(
    "path", ["/v1/agents/", "/v1/archives/", "/attach/", "/batch"], ids=lambda path: path.strip("/")
)
def test_what_was_done_without_an_answer_is_found_again_and_not_done_twice(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta, path: str, fate: Fate
) -> None:
    def first_only(request: Request) -> Fate:
        hit = request.method != "GET" and path in f"{request.path}/"
        return fate if hit and not way.failed else None

    way.meddle(first_only)
    with calls(start_behind(index_wait_s=0)) as api:
        tree = grow_roots(api, 1)
        writer = Writer(tree["n0"])
        for number in range(5):
            writer.acknowledged.append(answer(api.write(writer.node, f"writes {number}")))
        settled(api, tree.checkpoint)

        assert len(way.failed) == 1
        assert_all_found(api, [writer])
        assert_one_passage_each(letta, tree.checkpoint, [writer])
        assert len(letta.agents(tree.checkpoint)) == len(letta.archives(tree.checkpoint)) == 1


@on_sqlite
def test_a_letta_that_takes_30_seconds_holds_up_no_write_and_no_read_of_the_ledger(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    service = start_behind(letta_timeout_s=1.0)
    prompt = httpx.Client(base_url=service.base_url, timeout=PROMPT_S, trust_env=False)
    with calls(service) as api, prompt as client:
        tree = grow_roots(api, 1)
        writer = Writer(tree["n0"])
        writer.write(service.base_url, count=2)
        settled(api, tree.checkpoint)
        way.delay(HELD_UP_S)
        for number in range(2, 6):
            text = {"text": f"writes {number}"}
            path, claim = f"/nodes/{writer.node}/memory", {"X-Current-Node": writer.node}
            writer.acknowledged.append(answer(client.post(path, json=text, headers=claim)))
            assert len(answer(client.get(path))["items"]) == number + 1
        assert not any(entry["indexed"] for entry in writer.acknowledged[2:])
        began = time.monotonic()
        assert_unavailable(api.search(writer.node, "writes", include_self=True))
        assert time.monotonic() - began < PROMPT_S

        # What was given up on is carried out now, beside what is sent again: doubles show once.
        way.restore()
        settled(api, tree.checkpoint)
        wait_until(lambda: way.open_connections == 0, describe="Letta has done what was asked")
        assert_all_found(api, [writer])
        doubles = passages_of(letta, tree.checkpoint).total() - len(writer.acknowledged)
        mended = reconcile(api, tree.checkpoint)
        assert len(mended["doubles"]) == doubles
        assert_one_passage_each(letta, tree.checkpoint, [writer])


@on_sqlite
def test_a_search_that_ranks_here_goes_on_without_letta(
    way: HttpFaultProxy, start_behind: StartService
) -> None:
    service = start_behind(search="scoped")
    with calls(service) as api:
        tree = grow_roots(api, 1)
        writer = Writer(tree["n0"])
        writer.write(service.base_url, count=3)
        settled(api, tree.checkpoint)

        way.refuse()
        assert_all_found(api, [writer])


@on_sqlite
def test_writes_wait_for_an_embedding_endpoint_that_is_down(
    start_behind: StartService, letta: RealLetta, letta_embeddings: str
) -> None:
    port = urlsplit(letta_embeddings).port
    assert port is not None
    with FaultProxy(Endpoint.tcp(port)) as to_embeddings:
        service = start_behind(embeddings_url=f"http://{LOOPBACK}:{to_embeddings.port}/v1")
        with calls(service) as api:
            tree = grow_roots(api, 1)
            writer = Writer(tree["n0"])
            writer.write(service.base_url, count=2)
            settled(api, tree.checkpoint)

            to_embeddings.refuse()
            writer.write(service.base_url, count=4)
            assert not any(entry["indexed"] for entry in writer.acknowledged[2:])
            # Letta tries for 16 s, and answers 500.
            assert_unavailable(api.search(writer.node, "writes", include_self=True))

            to_embeddings.restore()
            settled(api, tree.checkpoint)
            assert_all_found(api, [writer])
            assert_one_passage_each(letta, tree.checkpoint, [writer])


@on_postgresql
def test_a_restart_of_our_postgresql_loses_and_doubles_nothing(
    start_behind: StartService, letta: RealLetta, tmp_path: Path
) -> None:
    with Postgres() as server:
        storage = Storage(tmp_path / "data", server.url(server.create_database()))
        service = start_behind(storage=storage)
        with calls(service) as api:
            tree = grow_roots(api, 4)
            writers = [Writer(tree[name], refusal=503) for name in tree.names]
            with written(service.base_url, writers, each=25) as reached:
                reached(40)
                server.stop()
                wait_until(
                    lambda: any(writer.refused for writer in writers), describe="writes are refused"
                )
                server.start()
            settled(api, tree.checkpoint)
            assert_all_found(api, writers)
            stored = passages_of(letta, tree.checkpoint)
            assert set(stored.values()) == {1}
            assert {entry["id"] for writer in writers for entry in writer.acknowledged} <= set(
                stored
            )
        service.stop()
