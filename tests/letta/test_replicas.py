"""Two replicas on one PostgreSQL and one Letta: they share the work, and one takes over."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from tests.letta.outage import (
    Writer,
    assert_all_found,
    assert_one_passage_each,
    grow_roots,
    personas,
    settled,
)
from tests.support.client import Api, answer
from tests.support.http_proxy import HttpFaultProxy, Lost
from tests.support.letta import RealLetta
from tests.support.ports import LOOPBACK
from tests.support.postgres import Postgres
from tests.support.service import LiveService
from tests.support.storage import fresh_storage
from tests.support.tree import Tree
from tests.support.wait import wait_until

pytestmark = [pytest.mark.letta, pytest.mark.timeout(300)]

NODES = 4
EACH = 90
# Of the node's entries and of the trace: the agent's name and the archive's.
PAIRS = (("ari_agent", "ari_node"), ("ari_react", "ari_react"))


@pytest.fixture
def replicas(  # noqa: PLR0917  (fixtures)
    way: HttpFaultProxy,
    postgres: Postgres,
    letta: RealLetta,
    letta_instance: str,
    letta_embeddings: str,
    tmp_path: Path,
) -> Iterator[tuple[LiveService, LiveService]]:
    """Two services as processes, the first behind the proxy; Letta embeds at a third one."""
    environment = {
        **letta.environment(letta_instance),
        "LINEAGE_EMBEDDINGS_URL": letta_embeddings,
        "LINEAGE_INDEX_WAIT_S": "0",
        # A claim on the making of an agent lasts five times as long.
        "LINEAGE_LETTA_TIMEOUT_S": "8",
    }
    addresses = {"first": f"http://{LOOPBACK}:{way.port}", "second": letta.base_url}
    with ExitStack() as opened:
        storage = opened.enter_context(fresh_storage(tmp_path / "data", server=postgres))
        running = []
        for name, address in addresses.items():
            (scratch := tmp_path / name).mkdir()
            its_own = {**environment, "LETTA_BASE_URL": address}
            running.append(opened.enter_context(LiveService(storage, scratch=scratch, **its_own)))
        yield running[0], running[1]


def write_many(api: Api, writers: list[Writer]) -> None:
    """Let each node get its entries in one batch."""
    for writer in writers:
        texts = [f"{writer.node} writes {number}" for number in range(EACH)]
        writer.acknowledged += answer(api.write_batch(writer.node, texts))["items"]


def keep_silent(way: HttpFaultProxy, _: RealLetta, __: Tree) -> Callable[[], object]:
    """Let Letta get nothing; return what tells that something was sent."""
    way.silence()
    return lambda: way.open_connections


def hold_the_answer(way: HttpFaultProxy, letta: RealLetta, tree: Tree) -> Callable[[], object]:
    """Let Letta store what it is sent, and nobody know; return what tells that it has."""
    before = len(letta.passages(tree.checkpoint))
    way.meddle(lambda request: Lost.HELD if request.path.endswith("/passages/batch") else None)
    return lambda: len(letta.passages(tree.checkpoint)) > before


@pytest.mark.parametrize(
    ("moment", "prepared"),
    [
        pytest.param(keep_silent, False, marks=pytest.mark.slow),
        (keep_silent, True),
        (hold_the_answer, True),
    ],
    ids=["making the agent", "before Letta stored it", "after Letta stored it"],
)
def test_what_a_killed_replica_was_at_is_finished_by_the_other(
    replicas: tuple[LiveService, LiveService],
    way: HttpFaultProxy,
    letta: RealLetta,
    moment: Callable[[HttpFaultProxy, RealLetta, Tree], Callable[[], object]],
    *,
    prepared: bool,
) -> None:
    killed, survivor = replicas
    with Api(killed.base_url) as to_killed, Api(survivor.base_url) as api:
        tree = grow_roots(to_killed, NODES)
        writers = [Writer(tree[name]) for name in tree.names]
        if prepared:
            writers[0].write(killed.base_url, count=1)
            settled(to_killed, tree.checkpoint)
        is_there = moment(way, letta, tree)
        write_many(to_killed, writers)
        wait_until(is_there, describe="the replica is in the middle of it")
        killed.kill()
        assert answer(api.get_checkpoint(tree.checkpoint))["pending"]

        # What the killed one had claimed is anybody's after some 40 s.
        settled(api, tree.checkpoint, timeout=150)
        assert_all_found(api, writers)
        assert_one_passage_each(letta, tree.checkpoint, writers)
        assert len(letta.agents(tree.checkpoint)) == len(letta.archives(tree.checkpoint)) == 1


def test_replicas_that_prepare_a_checkpoint_at_once_make_one_agent_and_one_archive(
    replicas: tuple[LiveService, LiveService], letta: RealLetta
) -> None:
    with ExitStack() as opened:
        apis = [opened.enter_context(Api(replica.base_url)) for replica in replicas]
        threads = opened.enter_context(ThreadPoolExecutor(len(apis)))
        for number in range(5):
            tree = grow_roots(apis[0], len(apis))
            together = Barrier(len(apis))
            work = partial(first_calls, tree, together, persona=number % 2 == 0)
            list(threads.map(work, apis, tree.names))
            settled(apis[0], tree.checkpoint)
            if number % 2 == 0:
                wait_until(
                    lambda of=tree.checkpoint: any(personas(letta, of)),  # type: ignore[misc]
                    describe="core memory is mirrored",
                )
            for agent, archive in PAIRS:
                assert len(letta.agents(tree.checkpoint, agent)) == 1
                assert len(letta.archives(tree.checkpoint, archive)) == 1


def first_calls(tree: Tree, together: Barrier, api: Api, name: str, *, persona: bool) -> None:
    """Make the calls that need an agent, each the checkpoint's first one at its replica."""
    together.wait()
    answer(api.write(tree[name], "the first entry"))
    answer(api.trace_step(tree.checkpoint, "the first step"))
    if persona:
        answer(api.put_core_memory(tree.checkpoint, persona=f"set by {name}"))
