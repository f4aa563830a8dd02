"""What the service makes in a real Letta for a checkpoint: once, and nothing is left behind."""

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise

import httpx
import pytest

from tests.conftest import NewStorage, StartService
from tests.letta.seen import TRACE_SIDE, everything, lose, purge, settled, texts
from tests.support.client import Api, answer
from tests.support.letta import RealLetta
from tests.support.service import InProcessService
from tests.support.storage import Storage
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.letta,
    pytest.mark.parametrize("archive", ["letta"], indirect=True),
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
]


def block_ids(letta: RealLetta, checkpoint: str) -> list[str]:
    return [
        block["id"] for agent in letta.agents(checkpoint) for block in agent["memory"]["blocks"]
    ]


# What is made


def test_the_first_entry_makes_one_agent_with_one_archive(tree: Tree, letta: RealLetta) -> None:
    assert everything(letta, tree.checkpoint) == []

    tree.write("root", "the first one")

    assert everything(letta, tree.checkpoint) == [
        f"ari_agent_{tree.checkpoint}",
        f"ari_node_{tree.checkpoint}",
    ]


def test_the_first_trace_step_makes_an_agent_with_an_archive_of_its_own(
    tree: Tree, letta: RealLetta
) -> None:
    answer(tree.api.trace_step(tree.checkpoint, "a step"))

    assert everything(letta, tree.checkpoint) == [f"ari_react_{tree.checkpoint}"] * 2


def test_agent_and_archive_carry_the_same_mark(
    tree: Tree, letta: RealLetta, letta_instance: str
) -> None:
    tree.write("root", "the first one")

    [agent], [archive] = letta.agents(tree.checkpoint), letta.archives(tree.checkpoint)
    mark = agent["metadata"]
    assert mark["instance"] == letta_instance
    assert mark["checkpoint"] == tree.checkpoint
    assert mark["incarnation"]
    assert mark["index_epoch"] == 1
    assert mark["collection"] == "node_scope"
    assert json.loads(archive["description"]) == mark


def test_an_agent_has_five_blocks_and_no_tool(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "the first one")

    [agent] = letta.agents(tree.checkpoint)
    texts = dict.fromkeys(("persona", "human", "active_context", "quick_reference"), "")
    assert letta.blocks(tree.checkpoint) == texts | {"ari_context": "{}"}
    assert (agent["tools"], agent["tool_rules"]) == ([], [])


def test_the_agent_of_the_trace_has_no_tool_either(tree: Tree, letta: RealLetta) -> None:
    answer(tree.api.trace_step(tree.checkpoint, "a step"))

    [agent] = letta.agents(tree.checkpoint, TRACE_SIDE)
    assert (agent["tools"], agent["tool_rules"]) == ([], [])


def test_entries_of_nodes_and_of_the_trace_never_share_an_archive(
    tree: Tree, letta: RealLetta
) -> None:
    tree.write("root", "of the node")
    answer(tree.api.trace_step(tree.checkpoint, "of the trace"))

    nodes, trace = letta.passages(tree.checkpoint), letta.passages(tree.checkpoint, TRACE_SIDE)
    assert [passage["text"] for passage in nodes] == ["of the node"]
    assert [passage["text"] for passage in trace] == ["of the trace"]


def test_a_passage_names_its_entry_its_node_its_kind_and_its_checkpoint_and_has_no_tags(
    tree: Tree, letta: RealLetta
) -> None:
    [entry] = tree.write("a", "tagged", metadata={"node": "another"})

    [passage] = letta.passages(tree.checkpoint)
    assert passage["metadata"] == {
        "checkpoint": tree.checkpoint,
        "entry": entry["id"],
        "kind": "node_scope",
        "node": tree["a"],
    }
    # For each passage with any, Letta would commit once more.
    assert not passage["tags"]


def test_a_passage_of_a_trace_step_without_a_node_names_none(tree: Tree, letta: RealLetta) -> None:
    step = answer(tree.api.trace_step(tree.checkpoint, "a step"))

    [passage] = letta.passages(tree.checkpoint, TRACE_SIDE)
    assert passage["metadata"] == {
        "checkpoint": tree.checkpoint,
        "entry": step["id"],
        "kind": "react_step",
        "node": None,
    }


def test_the_instants_of_passages_strictly_increase_in_the_order_of_their_entries(
    tree: Tree, letta: RealLetta
) -> None:
    sent = [f"number {number}" for number in range(120)]
    answer(tree.api.write_batch(tree["root"], sent))
    settled(tree.api, tree.checkpoint)

    passages = letta.passages(tree.checkpoint)
    assert [passage["text"] for passage in passages] == sent
    instants = [datetime.fromisoformat(passage["created_at"]) for passage in passages]
    assert all(former < later for former, later in pairwise(instants))


def test_the_instant_of_a_passage_is_that_of_its_entry_give_or_take_a_batch(
    tree: Tree, letta: RealLetta
) -> None:
    [entry] = tree.write("root", "timed")

    [passage] = letta.passages(tree.checkpoint)
    behind = datetime.fromisoformat(passage["created_at"]) - datetime.fromisoformat(
        entry["created_at"]
    )
    assert timedelta(0) <= behind <= timedelta(microseconds=100)


@pytest.mark.parametrize(
    "text", ["🦊 日本語\tand\ttabs ", "\u200b", "x" * 32_768, "???", " leading"], ids=len
)
def test_a_text_comes_to_letta_as_it_was_written(tree: Tree, letta: RealLetta, text: str) -> None:
    [entry] = tree.write("root", text)

    [passage] = letta.passages(tree.checkpoint)
    assert passage["text"] == text
    assert entry["indexed"]


# Once and no more


def test_parallel_first_writes_make_one_agent_and_one_archive(tree: Tree, letta: RealLetta) -> None:
    names = ["root", "a", "b", "a1", "a2"] * 3

    with ThreadPoolExecutor(len(names)) as pool:
        written = list(pool.map(lambda item: tree.write(item[1], f"{item[0]}"), enumerate(names)))

    settled(tree.api, tree.checkpoint)
    assert everything(letta, tree.checkpoint) == [
        f"ari_agent_{tree.checkpoint}",
        f"ari_node_{tree.checkpoint}",
    ]
    assert len(letta.passages(tree.checkpoint)) == len(written)


class Restarted:
    """A service of a test's own: stopped, changed from below, started again on what it had."""

    def __init__(self, storage: Storage, start: StartService, settings: dict[str, object]) -> None:
        self.storage = storage
        self._start, self._settings = start, settings
        self._service: InProcessService | None = None
        self._api: Api | None = None

    def start(self, **settings: object) -> Api:
        """Start it, ending the former start, and return a client."""
        self.stop()
        self._service = self._start(storage=self.storage, **self._settings | settings)
        self._api = Api(self._service.base_url)
        return self._api

    def stop(self) -> None:
        """Stop it, and close the client."""
        if self._api is not None:
            self._api.close()
        if self._service is not None:
            self._service.stop()
        self._service = self._api = None

    @contextmanager
    def sql(self) -> Iterator[sqlite3.Connection]:
        """Stop it and open its database, committed on leaving."""
        self.stop()
        connection = sqlite3.connect(self.storage.data_dir / "lineage.db")
        with connection:
            yield connection
        connection.close()


@pytest.fixture
def restarted(
    new_storage: NewStorage, start_service: StartService, archive_settings: dict[str, object]
) -> Iterator[Restarted]:
    restarted = Restarted(new_storage(), start_service, archive_settings)
    yield restarted
    restarted.stop()


@pytest.mark.parametrize("lost", ["agent_id", "archive_id", "agent_id, archive_id", "nothing"])
def test_what_was_made_and_not_recorded_is_found_again(
    restarted: Restarted, letta: RealLetta, lost: str
) -> None:
    tree = grow_tree(restarted.start(), unique_checkpoint())
    tree.write("root", "before")
    with restarted.sql() as database:
        database.execute("UPDATE letta_agents SET ready = 0")
        for column in lost.split(", ") if lost != "nothing" else []:
            database.execute(f"UPDATE letta_agents SET {column} = NULL")  # noqa: S608
    tree.api = restarted.start()

    [after] = tree.write("root", "after")

    assert after["indexed"]
    assert len(everything(letta, tree.checkpoint)) == 2
    assert texts(letta, tree.checkpoint) == ["before", "after"]


def test_what_another_instance_made_under_the_same_name_is_left_alone(
    restarted: Restarted, letta: RealLetta
) -> None:
    tree = grow_tree(restarted.start(), unique_checkpoint())
    tree.write("root", "of the first")
    [theirs], [their_archive] = letta.agents(tree.checkpoint), letta.archives(tree.checkpoint)
    with restarted.sql() as database:
        database.execute("DELETE FROM letta_agents")
    tree.api = restarted.start(letta_instance=f"{theirs['metadata']['instance']}-other")

    tree.write("root", "of the second")
    purge(tree)
    wait_until(
        lambda: answer(tree.api.readyz())["lag"]["purges"] == 0, describe="the purge is done"
    )

    assert [agent["id"] for agent in letta.agents(tree.checkpoint)] == [theirs["id"]]
    assert [item["id"] for item in letta.archives(tree.checkpoint)] == [their_archive["id"]]


# Nothing is left


def test_a_purge_leaves_no_agent_archive_block_or_passage(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "of the node")
    answer(tree.api.trace_step(tree.checkpoint, "of the trace"))
    answer(tree.api.put_core_memory(tree.checkpoint, persona="careful"))
    blocks = block_ids(letta, tree.checkpoint)
    [archive] = letta.archives(tree.checkpoint)
    assert len(blocks) == 5

    assert tree.api.purge(tree.checkpoint).status_code == httpx.codes.NO_CONTENT

    assert everything(letta, tree.checkpoint) == []
    paths = [f"/v1/blocks/{block}" for block in blocks] + [f"/v1/archives/{archive['id']}"]
    assert {letta.http.get(path).status_code for path in paths} == {httpx.codes.NOT_FOUND}


def test_a_purge_finds_an_agent_that_somebody_renamed(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "an entry")
    [agent] = letta.agents(tree.checkpoint)
    url = f"/v1/agents/{agent['id']}"
    letta.http.patch(url, json={"name": "renamed"}).raise_for_status()

    assert tree.api.purge(tree.checkpoint).status_code == 204

    assert letta.http.get(url).status_code == 404


def test_a_purge_leaves_a_block_that_somebody_attached(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "an entry")
    [agent] = letta.agents(tree.checkpoint)
    made = letta.http.post("/v1/blocks/", json={"label": "team_rules", "value": "be kind"})
    block = made.raise_for_status().json()["id"]
    try:
        url = f"/v1/agents/{agent['id']}/core-memory/blocks/attach/{block}"
        letta.http.patch(url).raise_for_status()

        assert tree.api.purge(tree.checkpoint).status_code == 204

        assert letta.http.get(f"/v1/blocks/{block}").is_success
    finally:
        letta.http.delete(f"/v1/blocks/{block}")


def test_a_purge_of_a_checkpoint_without_entries_is_done_at_once(tree: Tree) -> None:
    assert tree.api.purge(tree.checkpoint).status_code == httpx.codes.NO_CONTENT


def test_a_purge_leaves_nothing_of_former_indexes_either(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "kept through two indexes")
    answer(tree.api.reindex(tree.checkpoint))
    settled(tree.api, tree.checkpoint)
    answer(tree.api.reindex(tree.checkpoint))

    purge(tree)

    wait_until(lambda: not everything(letta, tree.checkpoint), describe="nothing is left")


def test_a_checkpoint_made_anew_after_a_purge_finds_nothing_of_the_old(
    tree: Tree, letta: RealLetta
) -> None:
    tree.write("root", "a word of the old one")
    purge(tree)

    anew = grow_tree(tree.api, tree.checkpoint)
    anew.write("root", "a word of the new one")

    assert anew.search("a", "a word of the old one") == ["a word of the new one"]
    assert texts(letta, tree.checkpoint) == ["a word of the new one"]


def test_cleared_entries_leave_letta(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "stays")
    tree.write("a", "goes", "goes too")

    answer(tree.api.clear(tree["a"]))

    wait_until(
        lambda: texts(letta, tree.checkpoint) == ["stays"],
        describe="Letta lets go of the cleared entries",
    )


# Made anew


def test_a_reindex_makes_a_new_archive_and_removes_the_old(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "one", "two")
    [old] = letta.archives(tree.checkpoint)

    answer(tree.api.reindex(tree.checkpoint))

    def renewed() -> bool:
        archives = letta.archives(tree.checkpoint)
        return len(archives) == 1 and archives[0]["id"] != old["id"]

    settled(tree.api, tree.checkpoint)
    wait_until(renewed, describe="the old archive is gone")
    assert texts(letta, tree.checkpoint) == ["one", "two"]
    assert tree.search("a", "two", limit=1) == ["two"]


def test_one_reindex_rebuilds_what_letta_lost_altogether(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "one", "two")
    answer(tree.api.trace_step(tree.checkpoint, "a step"))
    answer(tree.api.put_core_memory(tree.checkpoint, persona="careful"))
    lose(letta, tree.checkpoint)

    answer(tree.api.reindex(tree.checkpoint))

    settled(tree.api, tree.checkpoint)
    assert texts(letta, tree.checkpoint) == ["one", "two"]
    trace = letta.passages(tree.checkpoint, TRACE_SIDE)
    assert [passage["text"] for passage in trace] == ["a step"]
    assert letta.blocks(tree.checkpoint)["persona"] == "careful"


# Readiness


def test_readiness_shows_lettas_version_and_the_embedding(api: Api) -> None:
    ready = answer(api.readyz())

    assert ready["status"] == "ok"
    assert ready["facts"]["letta"] == "0.16.7"
    assert ready["facts"]["embedding"].startswith("letta/")


def test_a_changed_address_of_the_embeddings_is_named(
    restarted: Restarted, service: InProcessService
) -> None:
    tree = grow_tree(restarted.start(), unique_checkpoint())
    tree.write("root", "embedded at the former address")

    ready = answer(restarted.start(embeddings_url=f"{service.base_url}/v1").readyz())

    assert ready["status"] == "degraded"
    assert f"{tree.checkpoint!r} embeds with" in ready["archive"]
    assert f"{service.base_url}/v1" in ready["archive"]
    assert "reindex" in ready["archive"]


def test_a_reindex_settles_a_changed_address_of_the_embeddings(
    restarted: Restarted, service: InProcessService
) -> None:
    tree = grow_tree(restarted.start(), unique_checkpoint())
    tree.write("root", "embedded at the former address")
    tree.api = restarted.start(embeddings_url=f"{service.base_url}/v1")

    answer(tree.api.reindex(tree.checkpoint))

    settled(tree.api, tree.checkpoint)
    assert tree.search("a", "embedded", limit=1) == ["embedded at the former address"]
    wait_until(
        lambda: answer(tree.api.readyz())["status"] == "ok", describe="the service is ready again"
    )


# Embedding handles of Letta's own


def test_a_handle_of_other_dimensions_is_named_and_indexes_nothing(
    start_service: StartService, archive_settings: dict[str, object], letta: RealLetta
) -> None:
    service = start_service(
        storage=None,
        **archive_settings,
        letta_embedding="letta/letta-free",
        embedding_dim=8,
        index_wait_s=0.5,
    )
    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        [entry] = tree.write("root", "kept all the same")

        assert not entry["indexed"]
        assert tree.own("root") == ["kept all the same"]
        wait_until(
            lambda: len(letta.agents(tree.checkpoint)) == 1, describe="an agent was tried with"
        )
        assert answer(api.get_checkpoint(tree.checkpoint))["pending"] == 1
        purge(tree)
        wait_until(lambda: not everything(letta, tree.checkpoint), describe="nothing is left")


def test_an_unknown_handle_loses_nothing(
    start_service: StartService, archive_settings: dict[str, object]
) -> None:
    service = start_service(
        storage=None,
        **archive_settings,
        letta_embedding="nobody/knows",
        embedding_dim=8,
        index_wait_s=0.5,
    )
    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        [entry] = tree.write("root", "kept all the same")

        assert not entry["indexed"]
        assert tree.own("root") == ["kept all the same"]
