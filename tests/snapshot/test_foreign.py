"""Files of the tool that our users come from: no header, no tree, no ids, no digests."""

from tests.conftest import Grow
from tests.snapshot.files import entry, foreign, header, node, packed, records, sealed
from tests.snapshot.sample import await_index, own, texts
from tests.support.client import Api, answer, walk
from tests.support.tree import Tree, unique_checkpoint

SEED = {"kind": "core_seed", "seeded_at": 1_700_000_000.0}


def test_unknown_nodes_become_roots(api: Api) -> None:
    checkpoint = unique_checkpoint()

    done = answer(api.restore(checkpoint, packed([foreign("one", "x"), foreign("two", "y")])))

    assert done["restored"] == {"nodes": 2, "entries": 2, "blocks": 0}
    nodes = list(walk(lambda cursor: api.nodes(checkpoint, cursor=cursor)))
    assert [(place["id"], place["parent"]) for place in nodes] == [
        (f"{checkpoint}.x", None),
        (f"{checkpoint}.y", None),
    ]


def test_a_known_node_keeps_its_place_in_the_tree(tree: Tree) -> None:
    answer(tree.api.restore(tree.checkpoint, packed([foreign("from elsewhere", "a1")])))

    assert tree.own("a1") == ["from elsewhere"]
    assert answer(tree.api.get_node(tree["a1"]))["parent"] == tree["a"]


def test_a_tree_of_node_lines_gives_the_parents(api: Api) -> None:
    checkpoint = unique_checkpoint()
    tree = [node("leaf", "top"), node("top")]

    answer(api.restore(checkpoint, packed([foreign("low", "leaf"), *tree])))

    found = answer(api.get_node(f"{checkpoint}.leaf"))
    assert found["lineage"] == [f"{checkpoint}.top"]


def test_entries_get_ids_and_are_found_by_search(api: Api) -> None:
    checkpoint = unique_checkpoint()

    answer(api.restore(checkpoint, packed([foreign("the blue door"), foreign("a red car")])))

    await_index(api, checkpoint)
    stored = own(api, f"{checkpoint}.root")
    assert len({item["id"] for item in stored}) == 2
    found = answer(api.search(f"{checkpoint}.root", "door", include_self=True, limit=1))
    assert found["results"][0]["entry_id"] == stored[0]["id"]


def test_the_same_file_again_adds_nothing(api: Api) -> None:
    checkpoint = unique_checkpoint()
    file = packed([foreign("one"), foreign("two", ts=1_700_000_002), foreign("three", "x")])
    answer(api.restore(checkpoint, file))
    await_index(api, checkpoint)
    before = own(api, f"{checkpoint}.root")

    again = answer(api.restore(checkpoint, file))

    assert again["restored"] == {"nodes": 0, "entries": 0, "blocks": 0}
    assert (again["skipped"], again["conflicts"]) == (5, 0)
    assert own(api, f"{checkpoint}.root") == before


def test_the_same_words_of_another_time_or_node_are_another_entry(api: Api) -> None:
    checkpoint = unique_checkpoint()
    answer(api.restore(checkpoint, packed([foreign("same")])))

    later = packed([foreign("same"), foreign("same", ts=1_700_000_009), foreign("same", "x")])
    done = answer(api.restore(checkpoint, later))

    assert done["restored"]["entries"] == 2
    assert done["skipped"] == 2


def test_an_entry_of_the_other_tool_is_recognised_in_a_snapshot_of_ours(api: Api) -> None:
    checkpoint = unique_checkpoint()
    answer(api.restore(checkpoint, packed([foreign("same")])))

    done = answer(api.restore(checkpoint, sealed([header(), node("root"), entry("same")])))

    assert done["restored"]["entries"] == 0
    assert texts(api, f"{checkpoint}.root") == ["same"]


def test_steps_of_the_other_tools_trace_come_in(api: Api) -> None:
    checkpoint = unique_checkpoint()
    step = {"kind": "react_step", "text": "think", "metadata": {"step": 1}, "ts": 1_700_000_000}

    answer(api.restore(checkpoint, packed([step])))

    (found,) = answer(api.trace(checkpoint))["items"]
    assert (found["text"], found["metadata"], found["node"]) == ("think", {"step": 1}, None)


def test_a_blank_block_of_the_other_tool_replaces_no_filled_one(grow: Grow) -> None:
    tree = grow()
    answer(tree.api.put_core_memory(tree.checkpoint, persona="Careful.", human="Ada"))
    file = packed([{**SEED, "persona": "", "human": "  ", "context": {"goal": "x"}}])

    answer(tree.api.restore(tree.checkpoint, file, on_conflict="overwrite"))
    overwritten = answer(tree.api.core_memory(tree.checkpoint))
    blocks = overwritten["persona"], overwritten["human"], overwritten["context"]
    assert blocks == ("Careful.", "Ada", {"goal": "x"})


def test_a_blank_block_of_the_other_tool_counts_as_never_set(api: Api) -> None:
    checkpoint = unique_checkpoint()
    blank = packed([{**SEED, "persona": "", "human": "", "context": {"goal": "x"}}])
    filled = packed([{**SEED, "persona": "Careful.", "human": "Ada", "context": {"goal": "y"}}])
    answer(api.restore(checkpoint, blank))

    answer(api.restore(checkpoint, filled))

    core = answer(api.core_memory(checkpoint))
    blocks = core["persona"], core["human"], core["context"]
    assert blocks == ("Careful.", "Ada", {"goal": "x"})


def test_kinds_that_only_the_other_tool_knows_are_counted(api: Api) -> None:
    lines = [foreign("one"), {"kind": "sparkle", "glitter": 7}, {"kind": "sparkle"}]

    done = answer(api.restore(unique_checkpoint(), packed(lines)))

    assert (done["restored"]["entries"], done["ignored"]) == (1, 2)


def test_what_came_from_the_other_tool_leaves_as_a_snapshot_of_ours(api: Api) -> None:
    checkpoint = unique_checkpoint()
    answer(api.restore(checkpoint, packed([foreign("one"), foreign("two", "x")])))

    kinds = [line["kind"] for line in records(api.backup(checkpoint).content)]

    assert kinds == ["header", "node", "node", "node_scope", "node_scope", "end"]


def test_the_other_tools_own_names_stay_readable_in_ours(tree: Tree) -> None:
    """It reads `kind`, `node_id`, `text`, `metadata`, `ts`, and knows a node by what it wrote."""
    tree.write("a", "blue door", metadata={"type": "log"})

    lines = records(tree.api.backup(tree.checkpoint).content)

    (line,) = [line for line in lines if line["kind"] == "node_scope"]
    assert (line["node_id"], line["text"], line["metadata"]) == ("a", "blue door", {"type": "log"})
    assert isinstance(line["ts"], float)


def test_two_entries_of_one_file_that_differ_in_metadata_alone_both_come_in(api: Api) -> None:
    checkpoint = unique_checkpoint()
    file = packed([foreign("same", metadata={"type": kind}) for kind in ("log", "summary")])

    done = answer(api.restore(checkpoint, file))

    assert (done["restored"]["entries"], done["skipped"]) == (2, 0)
    assert answer(api.restore(checkpoint, file))["restored"]["entries"] == 0
