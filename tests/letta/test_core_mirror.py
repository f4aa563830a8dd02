"""Core memory, which the ledger holds, as the blocks of the agent in Letta."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.letta.seen import everything, lose, settled
from tests.support.client import Json, answer
from tests.support.letta import RealLetta
from tests.support.tree import Tree
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.letta,
    pytest.mark.parametrize("archive", ["letta"], indirect=True),
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
]


def mirrored(tree: Tree, letta: RealLetta, **blocks: str) -> None:
    """Return once the agent's blocks are these, the others as they are without any."""
    texts = dict.fromkeys(("persona", "human", "active_context", "quick_reference"), "")
    wanted = texts | {"ari_context": "{}"} | blocks

    def shown() -> bool:
        return bool(letta.agents(tree.checkpoint)) and letta.blocks(tree.checkpoint) == wanted

    wait_until(shown, describe=lambda: f"{wanted}, not {letta.blocks(tree.checkpoint)}")


def put(tree: Tree, **blocks: str) -> Json:
    return answer(tree.api.put_core_memory(tree.checkpoint, **blocks))  # type: ignore[arg-type]


def test_core_memory_set_before_any_entry_is_mirrored(tree: Tree, letta: RealLetta) -> None:
    put(tree, persona="careful", human="Ada")

    mirrored(tree, letta, persona="careful", human="Ada")


def test_an_agent_is_made_with_the_core_memory_that_there_is(tree: Tree, letta: RealLetta) -> None:
    put(tree, persona="careful")
    tree.write("root", "the first entry")

    mirrored(tree, letta, persona="careful")
    assert len(letta.agents(tree.checkpoint)) == 1


def test_a_change_is_mirrored(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "an entry")
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")

    put(tree, persona="bold", human="Ada")

    mirrored(tree, letta, persona="bold", human="Ada")


def test_every_edit_of_a_section_is_mirrored(tree: Tree, letta: RealLetta) -> None:
    api, checkpoint = tree.api, tree.checkpoint
    put(tree, persona="careful", quick_reference="- docs at /docs")
    mirrored(tree, letta, persona="careful", quick_reference="- docs at /docs")
    rest = {"persona": "careful", "quick_reference": "- docs at /docs"}

    answer(api.put_core_section(checkpoint, "active-context", "- sweep runs", if_match="*"))
    mirrored(tree, letta, **rest, active_context="- sweep runs")

    answer(api.edit_core_section(checkpoint, "active-context", {"append": "- 東京"}, if_match="*"))
    mirrored(tree, letta, **rest, active_context="- sweep runs\n- 東京")

    edit = {"replace": "- sweep runs", "with": "- sweep is done"}
    answer(api.edit_core_section(checkpoint, "active-context", edit, if_match="*"))
    mirrored(tree, letta, **rest, active_context="- sweep is done\n- 東京")


def test_a_refused_edit_of_a_section_changes_nothing_there(tree: Tree, letta: RealLetta) -> None:
    api, checkpoint = tree.api, tree.checkpoint
    put(tree, active_context="- sweep runs")
    mirrored(tree, letta, active_context="- sweep runs")

    stale = api.put_core_section(checkpoint, "active-context", "- stale", if_match='"0"')
    secret = api.edit_core_section(
        checkpoint, "active-context", {"append": "password: tr0ub4dor&3"}, if_match="*"
    )

    assert (stale.status_code, secret.status_code) == (412, 422)
    put(tree, human="Ada")  # whatever was queued before it is mirrored by now
    mirrored(tree, letta, human="Ada", active_context="- sweep runs")


def test_after_every_movement_the_blocks_are_core_memory(tree: Tree, letta: RealLetta) -> None:
    api, checkpoint = tree.api, tree.checkpoint
    lines = "- Depth 4 is best\n- sweep runs\n- 東京 is next"
    put(tree, persona="careful", human="- Ada", active_context=lines)
    answer(api.write_note(checkpoint, title="Rates", summary="Rate 0.1 diverges"))
    answer(api.daily_note(checkpoint, "Decision: train in bf16."))
    movements: list[tuple[str, Json]] = [
        ("demote", {"section": "active-context", "item": "sweep runs", "topic": "projects"}),
        ("promote", {"note": "learnings/rates"}),
        ("consolidate", {"days": 7}),
        ("heartbeat", {"max_words": 14}),
        ("trim", {"max_words": 8}),
    ]

    for movement, body in movements:
        moved = answer(api.request("POST", f"/checkpoints/{checkpoint}/{movement}", json=body))
        assert moved["changed"], (movement, moved)
        core = answer(api.core_memory(checkpoint))
        names = ("persona", "human", "active_context", "quick_reference")
        mirrored(tree, letta, **{name: core[name] for name in names})


def test_an_agent_of_a_former_version_gets_the_blocks_it_lacks(
    tree: Tree, letta: RealLetta
) -> None:
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")
    [agent] = letta.agents(tree.checkpoint)
    for block in agent["memory"]["blocks"]:
        if block["label"] in {"active_context", "quick_reference"}:
            letta.http.delete(f"/v1/blocks/{block['id']}").raise_for_status()
    assert letta.blocks(tree.checkpoint).keys() == {"persona", "human", "ari_context"}

    put(tree, active_context="- sweep runs")

    mirrored(tree, letta, persona="careful", active_context="- sweep runs")


def test_the_context_is_mirrored_as_its_json(tree: Tree, letta: RealLetta) -> None:
    context = {"ziel": "Größe 🦊", "steps": [1, 2.5, None], "nested": {"a": True}}

    answer(tree.api.put_core_memory(tree.checkpoint, context=context))

    wait_until(
        lambda: (
            bool(letta.agents(tree.checkpoint))
            and json.loads(letta.blocks(tree.checkpoint)["ari_context"]) == context
        ),
        describe="the context is mirrored",
    )


@pytest.mark.parametrize(
    "value", ["🦊 日本語\n\ttabs ", '{"looks": "like JSON"}', " blanks ", "x" * 32_000], ids=len
)
def test_a_block_comes_to_letta_as_it_was_set(tree: Tree, letta: RealLetta, value: str) -> None:
    put(tree, persona=value)

    mirrored(tree, letta, persona=value)


def test_an_emptied_block_is_emptied_there(tree: Tree, letta: RealLetta) -> None:
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")

    put(tree, persona="")

    mirrored(tree, letta)


def test_a_block_past_the_limit_changes_nothing_here_and_there(
    tree: Tree, letta: RealLetta
) -> None:
    put(tree, persona="careful", human="Ada")
    mirrored(tree, letta, persona="careful", human="Ada")

    refused = tree.api.put_core_memory(tree.checkpoint, human="Bob", persona="x" * 32_769)

    assert refused.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    stored = answer(tree.api.core_memory(tree.checkpoint))
    assert (stored["persona"], stored["human"]) == ("careful", "Ada")
    put(tree, human="Ada")  # whatever was queued before it is mirrored by now
    mirrored(tree, letta, persona="careful", human="Ada")


def test_a_deleted_block_comes_back_with_the_next_change(tree: Tree, letta: RealLetta) -> None:
    put(tree, persona="careful", human="Ada")
    mirrored(tree, letta, persona="careful", human="Ada")
    [agent] = letta.agents(tree.checkpoint)
    [persona] = [item for item in agent["memory"]["blocks"] if item["label"] == "persona"]
    letta.http.delete(f"/v1/blocks/{persona['id']}").raise_for_status()

    put(tree, human="Bob")

    mirrored(tree, letta, persona="careful", human="Bob")


def test_a_block_that_somebody_changed_is_set_right_with_the_next_change(
    tree: Tree, letta: RealLetta
) -> None:
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")
    [agent] = letta.agents(tree.checkpoint)
    letta.http.patch(
        f"/v1/agents/{agent['id']}/core-memory/blocks/persona", json={"value": "somebody else's"}
    ).raise_for_status()

    put(tree, human="Ada")

    mirrored(tree, letta, persona="careful", human="Ada")


def test_what_somebody_wrote_into_a_block_is_not_core_memory(tree: Tree, letta: RealLetta) -> None:
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")
    [agent] = letta.agents(tree.checkpoint)
    letta.http.patch(
        f"/v1/agents/{agent['id']}/core-memory/blocks/persona", json={"value": "somebody else's"}
    ).raise_for_status()

    assert answer(tree.api.core_memory(tree.checkpoint))["persona"] == "careful"


def test_of_many_changes_at_once_the_latest_is_mirrored(tree: Tree, letta: RealLetta) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: put(tree, persona=f"version {number}"), range(24)))

    latest = answer(tree.api.core_memory(tree.checkpoint))["persona"]
    mirrored(tree, letta, persona=latest)


def test_core_memory_is_set_while_somebody_else_changes_the_same_block(
    tree: Tree, letta: RealLetta
) -> None:
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")
    [agent] = letta.agents(tree.checkpoint)
    path = f"/v1/agents/{agent['id']}/core-memory/blocks/human"

    with ThreadPoolExecutor(4) as pool:
        others = [
            pool.submit(letta.http.patch, path, json={"value": f"other {number}"})
            for number in range(12)
        ]
        for number in range(6):
            put(tree, human=f"ours {number}")
        for other in others:
            other.result()
    put(tree, human="ours at last")

    mirrored(tree, letta, persona="careful", human="ours at last")


def test_the_agent_of_a_new_index_has_the_core_memory_too(tree: Tree, letta: RealLetta) -> None:
    tree.write("root", "an entry")
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")
    [former] = letta.agents(tree.checkpoint)

    answer(tree.api.reindex(tree.checkpoint))

    def renewed() -> bool:
        agents = letta.agents(tree.checkpoint)
        return len(agents) == 1 and agents[0]["id"] != former["id"]

    settled(tree.api, tree.checkpoint)
    wait_until(renewed, describe="the former agent is gone")
    mirrored(tree, letta, persona="careful")


def test_a_mirror_that_has_caught_up_lags_by_nothing(tree: Tree, letta: RealLetta) -> None:
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")

    wait_until(
        lambda: answer(tree.api.readyz())["lag"]["core_memories"] == 0,
        describe="readiness shows no lag",
    )
    wait_until(
        lambda: 'lineage_archive_lag{kind="core_memories"} 0.0' in tree.api.metrics().text,
        describe="the metric shows no lag",
    )


def test_a_reconcile_brings_back_an_agent_that_is_gone_where_there_is_no_entry(
    tree: Tree, letta: RealLetta
) -> None:
    put(tree, persona="careful")
    mirrored(tree, letta, persona="careful")
    lose(letta, tree.checkpoint)

    answer(tree.api.request("POST", f"/checkpoints/{tree.checkpoint}/reconcile"))

    mirrored(tree, letta, persona="careful")


def test_a_reconcile_makes_no_agent_where_there_was_none(tree: Tree, letta: RealLetta) -> None:
    answer(tree.api.request("POST", f"/checkpoints/{tree.checkpoint}/reconcile"))

    assert everything(letta, tree.checkpoint) == []
