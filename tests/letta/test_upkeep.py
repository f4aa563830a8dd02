"""Purges, removals and core memory: told to a Letta that refuses to hear of them, until it does."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import StartService
from tests.letta.outage import passages_of, personas, settled
from tests.support.client import Api, Json, answer
from tests.support.http_proxy import Answers, Fate, Fault, HttpFaultProxy, Lost, Request
from tests.support.letta import RealLetta
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.letta,
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
]

REFUSED = Answers(500)
WAITING = 50


@contextmanager
def calls(service: InProcessService) -> Iterator[Api]:
    with Api(service.base_url) as api:
        yield api


def on(method: str, part: str, fate: Fate) -> Fault:
    """Return the fault of requests of a method, "" for any, whose path has a part."""
    return lambda request: fate if method in request.method and part in request.path else None


def lags(api: Api, kind: str, count: int) -> None:
    """Wait until readiness and the metric show so much of a kind as not told to Letta."""
    wait_until(
        lambda: answer(api.readyz())["lag"][kind] == count,
        describe=lambda: f"{count} {kind} are left: {api.readyz().text}",
        timeout=60,
    )
    wait_until(
        lambda: f'lineage_archive_lag{{kind="{kind}"}} {count:.1f}' in api.metrics().text,
        describe=f"the metric shows {count} {kind}",
    )


def caught_up(api: Api, kind: str) -> None:
    """Wait until Letta has been told all of a kind that showed, and nothing else is wrong."""
    lags(api, kind, 0)
    wait_until(lambda: answer(api.readyz())["status"] == "ok", describe=lambda: api.readyz().text)


def mirrored(letta: RealLetta, tree: Tree, persona: str) -> None:
    """Wait until the one agent has this persona."""
    wait_until(
        lambda: personas(letta, tree.checkpoint) == [persona],
        describe=lambda: f"{persona}: {personas(letta, tree.checkpoint)}",
    )


def assert_empty(tree: Tree) -> None:
    """Fail if the checkpoint shows anything that was not written since it was made."""
    api, checkpoint = tree.api, tree.checkpoint
    assert answer(api.get_checkpoint(checkpoint))["entries"] == 0
    assert tree.inherited("a1") == []
    found = answer(api.search(tree["a1"], "old", limit=100, include_self=True))
    assert (found["results"], found["pending"]) == ([], 0)
    assert answer(api.trace(checkpoint))["items"] == []
    assert answer(api.search_trace(checkpoint, "old"))["results"] == []
    assert answer(api.core_memory(checkpoint))["persona"] == ""
    assert answer(api.context(checkpoint)) == {}
    records = answer(api.access_log(checkpoint))["items"]
    assert all(record["entries"] == [] for record in records)


@pytest.mark.parametrize(
    "fate", [Answers(500), Answers(500, carried_out=True)], ids=["refused", "done all the same"]
)
def test_a_checkpoint_purged_while_letta_refuses_deletes_is_made_anew_and_empty(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta, fate: Answers
) -> None:
    with calls(start_behind()) as api:
        tree = grow_tree(api, unique_checkpoint())
        tree.write("root", "an old entry")
        answer(api.trace_step(tree.checkpoint, "an old step"))
        answer(api.put_core_memory(tree.checkpoint, persona="old", context={"goal": "old"}))
        settled(api, tree.checkpoint)
        mirrored(letta, tree, "old")
        old = all_agents(letta, tree.checkpoint)

        def refuse(request: Request) -> Fate:
            inserts, deletes = on("POST", "/batch", REFUSED), on("DELETE", "/v1/agents/", fate)
            return inserts(request) or deletes(request)

        way.meddle(refuse)
        answer(api.write_batch(tree["a"], [f"an old entry {n}" for n in range(WAITING)]))
        assert answer(api.get_checkpoint(tree.checkpoint))["pending"] == WAITING
        assert api.purge(tree.checkpoint).status_code == 202

        anew = grow_tree(api, tree.checkpoint)
        assert_empty(anew)
        if not fate.carried_out:
            lags(api, "purges", 2)
        [entry] = anew.write("root", "a new entry")

        way.restore()
        settled(api, tree.checkpoint)
        caught_up(api, "purges")
        assert passages_of(letta, tree.checkpoint) == Counter([entry["id"]])
        assert anew.search("a1", "old", limit=100) == ["a new entry"]
        new = all_agents(letta, tree.checkpoint)
        assert not {agent["id"] for agent in old} & {agent["id"] for agent in new}
        assert len(letta.archives(tree.checkpoint)) == len(letta.agents(tree.checkpoint)) == 1
        assert letta.archives(tree.checkpoint, "ari_react") == []
        for agent in old:
            for block in agent["memory"]["blocks"]:
                assert letta.http.get(f"/v1/blocks/{block['id']}").status_code == 404


def test_an_agent_that_was_being_made_when_its_checkpoint_was_purged_does_not_stay(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    with calls(start_behind(letta_timeout_s=3.0)) as api:
        tree = grow_tree(api, unique_checkpoint())
        way.meddle(on("POST", "/v1/agents/", Lost.HELD))
        tree.write("root", "not to stay")
        wait_until(lambda: letta.agents(tree.checkpoint), describe="Letta has made it")
        assert api.purge(tree.checkpoint).status_code == 202

        way.restore()
        way.cut()
        wait_until(
            lambda: not letta.agents(tree.checkpoint), describe="the agent vanishes", timeout=60
        )
        caught_up(api, "purges")
        assert letta.archives(tree.checkpoint) == []


def all_agents(letta: RealLetta, checkpoint: str) -> list[Json]:
    """Return the checkpoint's agents of both kinds."""
    return letta.agents(checkpoint) + letta.agents(checkpoint, "ari_react")


def test_cleared_entries_vanish_at_once_and_from_letta_when_it_allows(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    with calls(start_behind(letta_timeout_s=3.0)) as api:
        tree = grow_tree(api, unique_checkpoint())
        tree.write("root", *(f"of the root {number}" for number in range(5)))
        [kept] = tree.write("a", "of the child")
        settled(api, tree.checkpoint)
        way.meddle(on("DELETE", "/passages/", REFUSED))
        assert api.clear(tree["root"]).is_success

        assert tree.own("root") == []
        assert tree.inherited("a1") == ["of the child"]
        assert tree.search("a1", "of the root", limit=100) == ["of the child"]
        assert tree.search("a", "of the root", limit=100) == []
        assert answer(api.get_checkpoint(tree.checkpoint))["entries"] == 1
        lags(api, "removals", 5)
        assert way.failed
        assert passages_of(letta, tree.checkpoint).total() == 6

        way.restore()
        caught_up(api, "removals")
        assert passages_of(letta, tree.checkpoint) == Counter([kept["id"]])


def test_entries_cleared_while_they_are_on_their_way_to_letta_do_not_stay_there(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    with calls(start_behind()) as api:
        tree = grow_tree(api, unique_checkpoint())
        way.meddle(on("POST", "/batch", Lost.HELD))
        tree.write("root", "not to stay")
        wait_until(lambda: passages_of(letta, tree.checkpoint), describe="Letta has stored it")
        assert api.clear(tree["root"]).is_success
        assert tree.own("root") == []
        assert tree.search("a", "not to stay") == []

        lags(api, "removals", 1)
        way.restore()
        way.cut()
        # Looked for when the claim on it is over.
        caught_up(api, "removals")
        assert passages_of(letta, tree.checkpoint) == Counter()


@pytest.mark.parametrize("cleared_again", [False, True], ids=["stay", "go again"])
def test_cleared_entries_that_a_restore_brings_back_keep_their_passages(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta, *, cleared_again: bool
) -> None:
    with calls(start_behind(letta_timeout_s=3.0)) as api:
        tree = grow_tree(api, unique_checkpoint())
        entries = tree.write("root", "one", "two")
        settled(api, tree.checkpoint)
        snapshot = api.backup(tree.checkpoint).content
        way.meddle(on("", "/passages", REFUSED))
        assert api.clear(tree["root"]).is_success
        answer(api.restore(tree.checkpoint, snapshot))
        lags(api, "removals", 2)
        if cleared_again:
            assert api.clear(tree["root"]).is_success

        way.restore()
        caught_up(api, "removals")
        settled(api, tree.checkpoint)

        there = [] if cleared_again else [entry["id"] for entry in entries]
        assert passages_of(letta, tree.checkpoint) == Counter(there)


BLOCK = "/core-memory/blocks/"


@pytest.mark.parametrize("status", [409, 404, 500])
def test_core_memory_is_set_while_letta_refuses_its_blocks_and_mirrored_later(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta, status: int
) -> None:
    with calls(start_behind()) as api:
        tree = grow_tree(api, unique_checkpoint())
        answer(api.put_core_memory(tree.checkpoint, persona="first", human="always"))
        mirrored(letta, tree, "first")
        way.meddle(on("PATCH", BLOCK, Answers(status)))

        for persona in ("second", "third"):
            answer(api.put_core_memory(tree.checkpoint, persona=persona))
            assert answer(api.core_memory(tree.checkpoint))["persona"] == persona
        lags(api, "core_memories", 1)
        wait_until(lambda: answer(api.readyz())["archive"], describe="the failure shows")
        state = answer(api.readyz())
        assert state["status"] == "degraded"
        assert "Letta" in state["archive"]
        assert letta.blocks(tree.checkpoint)["persona"] == "first"

        way.restore()
        caught_up(api, "core_memories")
        mirrored(letta, tree, "third")
        assert letta.blocks(tree.checkpoint)["human"] == "always"


def test_a_block_update_that_met_another_one_is_made_again(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    with calls(start_behind()) as api:
        tree = grow_tree(api, unique_checkpoint())
        answer(api.put_core_memory(tree.checkpoint, persona="first"))
        mirrored(letta, tree, "first")
        patch = on("PATCH", BLOCK, Answers(409))
        way.meddle(lambda request: None if way.failed else patch(request))

        answer(api.put_core_memory(tree.checkpoint, persona="second"))
        mirrored(letta, tree, "second")
        assert len(way.failed) == 1


def test_core_memory_set_while_the_mirror_is_being_written_wins(
    way: HttpFaultProxy, start_behind: StartService, letta: RealLetta
) -> None:
    with calls(start_behind()) as api:
        tree = grow_tree(api, unique_checkpoint())
        answer(api.put_core_memory(tree.checkpoint, persona="first"))
        mirrored(letta, tree, "first")
        way.silence()
        answer(api.put_core_memory(tree.checkpoint, persona="second"))
        wait_until(lambda: way.open_connections, describe="Letta is asked")
        answer(api.put_core_memory(tree.checkpoint, persona="third"))

        way.restore()
        mirrored(letta, tree, "third")
        caught_up(api, "core_memories")


def test_an_agent_that_letta_has_lost_is_named_and_holds_up_no_other_checkpoint(
    start_behind: StartService, letta: RealLetta
) -> None:
    with calls(start_behind()) as api:
        lost, other = (grow_tree(api, unique_checkpoint()) for _ in range(2))
        for tree in (lost, other):
            tree.write("root", "an entry")
            answer(api.put_core_memory(tree.checkpoint, persona="first"))
            mirrored(letta, tree, "first")
        for agent in letta.agents(lost.checkpoint):
            letta.http.delete(f"/v1/agents/{agent['id']}").raise_for_status()

        answer(api.put_core_memory(lost.checkpoint, persona="second"))
        wait_until(
            lambda: lost.checkpoint in (answer(api.readyz())["archive"] or ""),
            describe=lambda: f"the checkpoint is named: {api.readyz().text}",
        )
        assert api.clear(other["root"]).is_success
        assert api.purge(other.checkpoint).is_success

        lags(api, "removals", 0)
        lags(api, "purges", 0)
        answer(api.request("POST", f"/checkpoints/{lost.checkpoint}/reconcile"))
        caught_up(api, "core_memories")
