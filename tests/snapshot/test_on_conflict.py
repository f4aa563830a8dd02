"""What becomes of what is there already, in each of the four ways."""

import pytest

from tests.conftest import Grow
from tests.snapshot.files import changed, entry, header, node, records, sealed
from tests.snapshot.sample import await_index, own, portrait, texts
from tests.support.client import Api, Json, answer
from tests.support.tree import Tree, unique_checkpoint

MODES = ("skip", "merge", "overwrite", "fail")
MERGING = ("skip", "merge")


def write_otherwise(lines: list[Json]) -> None:
    """Give the first entry other bytes under its id."""
    at = next(i for i, line in enumerate(lines) if line["kind"] == "node_scope")
    old = lines[at]
    lines[at] = entry("other words", old["node_id"], id=old["id"], ts=old["ts"])


@pytest.fixture
def written(tree: Tree) -> Tree:
    tree.write("root", "blue door")
    tree.write("a", "red car", metadata={"type": "log"})
    answer(tree.api.put_core_memory(tree.checkpoint, persona="Careful."))
    return tree


@pytest.mark.parametrize("mode", MERGING)
def test_what_is_there_stays_as_it_is(written: Tree, mode: str) -> None:
    snapshot = written.api.backup(written.checkpoint).content
    written.write("b", "new since")
    answer(written.api.put_core_memory(written.checkpoint, persona="Bold."))
    before = portrait(written.api, written.checkpoint)

    done = answer(written.api.restore(written.checkpoint, snapshot, on_conflict=mode))

    assert done["restored"] == {"nodes": 0, "entries": 0, "blocks": 0}
    assert (done["skipped"], done["conflicts"]) == (5 + 2 + 1, 0)
    assert portrait(written.api, written.checkpoint) == before


@pytest.mark.parametrize("mode", MERGING)
def test_what_is_missing_is_added(written: Tree, mode: str) -> None:
    snapshot = written.api.backup(written.checkpoint).content
    lost = own(written.api, written["a"])
    answer(written.api.clear(written["a"]))

    done = answer(written.api.restore(written.checkpoint, snapshot, on_conflict=mode))

    assert done["restored"]["entries"] == 1
    assert [item["id"] for item in own(written.api, written["a"])] == [item["id"] for item in lost]
    await_index(written.api, written.checkpoint)
    assert written.search("a", "car", include_self=True) == ["red car", "blue door"]


def test_skip_is_the_default(written: Tree) -> None:
    snapshot = changed(written.api.backup(written.checkpoint).content, write_otherwise)

    done = answer(written.api.restore(written.checkpoint, snapshot))

    assert done["conflicts"] == 1
    assert written.own("root") == ["blue door"]


def test_skip_leaves_out_and_counts_an_id_that_is_there_with_other_bytes(written: Tree) -> None:
    snapshot = changed(written.api.backup(written.checkpoint).content, write_otherwise)
    before = portrait(written.api, written.checkpoint)

    done = answer(written.api.restore(written.checkpoint, snapshot, on_conflict="skip"))

    assert (done["restored"]["entries"], done["conflicts"]) == (0, 1)
    assert portrait(written.api, written.checkpoint) == before


def test_merge_keeps_both_the_newcomer_under_a_new_id(written: Tree) -> None:
    snapshot = changed(written.api.backup(written.checkpoint).content, write_otherwise)
    (kept,) = own(written.api, written["root"])

    done = answer(written.api.restore(written.checkpoint, snapshot, on_conflict="merge"))

    assert (done["restored"]["entries"], done["conflicts"]) == (1, 1)
    first, second = own(written.api, written["root"])
    assert first["id"] == kept["id"]
    assert (first["text"], second["text"]) == ("blue door", "other words")
    assert second["id"] != kept["id"]
    assert second["created_at"] == kept["created_at"]


def test_merge_again_adds_nothing_more(written: Tree) -> None:
    snapshot = changed(written.api.backup(written.checkpoint).content, write_otherwise)
    answer(written.api.restore(written.checkpoint, snapshot, on_conflict="merge"))

    again = answer(written.api.restore(written.checkpoint, snapshot, on_conflict="merge"))

    assert again["restored"]["entries"] == 0
    assert texts(written.api, written["root"]) == ["blue door", "other words"]


def test_other_metadata_under_the_same_id_is_a_conflict(written: Tree) -> None:
    def change(lines: list[Json]) -> None:
        lines[-1]["metadata"] = {"type": "decision"}

    snapshot = changed(written.api.backup(written.checkpoint).content, change)

    skipped = answer(written.api.restore(written.checkpoint, snapshot, on_conflict="skip"))
    assert (skipped["restored"]["entries"], skipped["conflicts"]) == (0, 1)
    for expected in (1, 0):
        merged = answer(written.api.restore(written.checkpoint, snapshot, on_conflict="merge"))
        assert merged["restored"]["entries"] == expected
    assert [item["metadata"]["type"] for item in own(written.api, written["a"])] == [
        "log",
        "decision",
    ]


@pytest.mark.parametrize("mode", MERGING)
def test_a_block_comes_in_only_where_it_was_never_set(written: Tree, mode: str) -> None:
    seed = {"kind": "core_seed", "persona": "Bold.", "human": "Ada", "context": None}
    file = sealed([header(), {**seed, "seeded_at": 1.0}])

    done = answer(written.api.restore(written.checkpoint, file, on_conflict=mode))

    assert (done["restored"]["blocks"], done["skipped"]) == (1, 1)
    core = answer(written.api.core_memory(written.checkpoint))
    blocks = core["persona"], core["human"], core["context"]
    assert blocks == ("Careful.", "Ada", {})


def test_a_block_comes_in_as_it_is_with_what_an_edit_is_refused_for(api: Api) -> None:
    checkpoint, held = unique_checkpoint(), "the key is ghp_" + "a1B2" * 9
    seed = {"kind": "core_seed", "persona": held, "human": None, "context": None}

    answer(api.restore(checkpoint, sealed([header(checkpoint), {**seed, "seeded_at": 1.0}])))

    assert answer(api.core_memory(checkpoint))["persona"] == held
    assert api.put_core_memory(checkpoint, persona=held).status_code == 422


def test_overwrite_leaves_what_the_snapshot_holds_and_nothing_else(written: Tree) -> None:
    api, checkpoint = written.api, written.checkpoint
    before = portrait(api, checkpoint)
    snapshot = api.backup(checkpoint).content
    written.write("b", "new since")
    written.add("b1", "b")
    answer(api.put_core_memory(checkpoint, persona="Bold.", human="Ada"))
    answer(api.trace_step(checkpoint, "think"))

    done = answer(api.restore(checkpoint, snapshot, on_conflict="overwrite"))

    assert done["restored"] == {"nodes": 5, "entries": 2, "blocks": 1}
    assert (done["skipped"], done["conflicts"]) == (0, 0)
    assert portrait(api, checkpoint) == before
    assert api.backup(checkpoint).content == snapshot


def test_overwrite_takes_another_tree(written: Tree) -> None:
    file = sealed([header(), node("a1"), node("root", "a1")])

    answer(written.api.restore(written.checkpoint, file, on_conflict="overwrite"))

    root = answer(written.api.get_node(written["root"]))
    assert root["parent"] == written["a1"]


def test_overwrite_makes_an_unknown_checkpoint(written: Tree) -> None:
    other = unique_checkpoint()
    snapshot = written.api.backup(written.checkpoint).content

    done = answer(written.api.restore(other, snapshot, on_conflict="overwrite"))

    assert done["restored"]["nodes"] == 5


def test_overwrite_of_a_bad_file_loses_nothing(written: Tree) -> None:
    before = portrait(written.api, written.checkpoint)
    file = sealed([header(), node("root", "nowhere")])

    refused = written.api.restore(written.checkpoint, file, on_conflict="overwrite")

    assert refused.status_code == 422
    assert portrait(written.api, written.checkpoint) == before


@pytest.mark.parametrize("there", ["node", "trace", "core memory"])
def test_fail_is_409_if_anything_is_there(api: Api, there: str) -> None:
    checkpoint = unique_checkpoint()
    answer(api.checkpoint(checkpoint))
    match there:
        case "node":
            answer(api.node(checkpoint, "root"))
        case "trace":
            answer(api.trace_step(checkpoint, "think"))
        case _:
            answer(api.put_core_memory(checkpoint, persona="Careful."))
    before = portrait(api, checkpoint)

    refused = api.restore(checkpoint, sealed([header(), node("new")]), on_conflict="fail")

    assert refused.status_code == 409
    assert refused.json()["type"] == "/problems/restore-conflict"
    assert portrait(api, checkpoint) == before


@pytest.mark.parametrize("made", [True, False], ids=["empty", "unknown"])
def test_fail_restores_where_nothing_is_there(api: Api, made: bool) -> None:  # noqa: FBT001
    checkpoint = unique_checkpoint()
    if made:
        answer(api.checkpoint(checkpoint))

    answer(api.restore(checkpoint, sealed([header(), node("new")]), on_conflict="fail"))

    assert api.get_node(f"{checkpoint}.new").status_code == 200


@pytest.mark.parametrize("mode", MERGING)
def test_a_known_node_with_another_parent_is_409_and_nothing_changes(
    written: Tree, mode: str
) -> None:
    before = portrait(written.api, written.checkpoint)
    lines = [node("root"), node("b", "root"), node("a1", "b"), node("new"), entry("lost", "new")]

    refused = written.api.restore(written.checkpoint, sealed([header(), *lines]), on_conflict=mode)

    assert refused.status_code == 409
    assert refused.json()["type"] == "/problems/node-conflict"
    assert refused.json()["parent"] == written["a"]
    assert portrait(written.api, written.checkpoint) == before


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_checkpoint_is_created_under_its_name(written: Tree, mode: str) -> None:
    other = unique_checkpoint()
    lines = [header(name="Learning-rate study", metadata={"team": "b"}), node("root")]

    answer(written.api.restore(other, sealed(lines), on_conflict=mode))

    made = answer(written.api.get_checkpoint(other))
    assert (made["name"], made["metadata"]) == ("Learning-rate study", {"team": "b"})


def test_sealed_nodes_are_filled(written: Tree) -> None:
    snapshot = written.api.backup(written.checkpoint).content
    answer(written.api.clear(written["a"]))
    answer(written.api.seal(written["a"]))

    answer(written.api.restore(written.checkpoint, snapshot))

    assert written.own("a") == ["red car"]


def test_a_node_that_is_there_keeps_its_seal_and_direction(written: Tree, grow: Grow) -> None:
    other = grow(checkpoint=unique_checkpoint())
    for name in ("a", "a1"):
        answer(other.api.patch_node(other[name], eval_summary="another direction"))
    answer(other.api.seal(other["a"]))

    answer(written.api.restore(written.checkpoint, other.api.backup(other.checkpoint).content))

    kept = answer(written.api.get_node(written["a"]))
    assert (kept["sealed"], kept["eval_summary"]) == (False, None)


def test_an_unknown_mode_is_refused(api: Api) -> None:
    refused = api.restore(unique_checkpoint(), sealed([header()]), on_conflict="maybe")

    assert refused.status_code == 422


def test_an_id_twice_in_a_file_is_refused(api: Api) -> None:
    checkpoint = unique_checkpoint()
    twice = [entry("one", id="same"), entry("two", id="same")]

    refused = api.restore(checkpoint, sealed([header(), node("root"), *twice]))

    assert (refused.status_code, refused.json()["line"]) == (422, 4)
    assert api.get_checkpoint(checkpoint).status_code == 404


def test_the_same_words_under_two_ids_are_two_entries(api: Api) -> None:
    checkpoint = unique_checkpoint()
    twins = [entry("same", id="one"), entry("same", id="two")]
    file = sealed([header(), node("root"), *twins])

    assert answer(api.restore(checkpoint, file))["restored"]["entries"] == 2
    assert answer(api.restore(checkpoint, file))["restored"]["entries"] == 0
    assert [line["id"] for line in records(api.backup(checkpoint).content)[2:4]] == ["one", "two"]


@pytest.mark.parametrize("mode", ["skip", "merge"])
def test_an_id_twice_in_a_file_is_refused_where_it_is_known_too(api: Api, mode: str) -> None:
    checkpoint = unique_checkpoint()
    lines = [header(checkpoint), node("root"), entry("one", id="i1")]
    answer(api.restore(checkpoint, sealed(lines)))

    refused = api.restore(checkpoint, sealed([*lines, entry("two", id="i1")]), on_conflict=mode)

    assert (refused.status_code, refused.json()["line"]) == (422, 4)
    assert texts(api, f"{checkpoint}.root") == ["one"]


def test_an_entry_is_not_taken_for_one_that_has_its_own_line(api: Api) -> None:
    checkpoint = unique_checkpoint()
    lines = [header(checkpoint), node("root"), entry("same", id="i1")]
    answer(api.restore(checkpoint, sealed(lines)))

    answer(api.restore(checkpoint, sealed([*lines, entry("same", id="i2")])))

    assert [item["id"] for item in own(api, f"{checkpoint}.root")] == ["i1", "i2"]


def test_an_empty_checkpoint_without_a_name_takes_the_snapshots(api: Api) -> None:
    named, unnamed = unique_checkpoint(), unique_checkpoint()
    answer(api.checkpoint(named, name="mine", metadata={"own": 1}))
    answer(api.checkpoint(unnamed))
    file = sealed([header("exp1", name="My run", metadata={"gpu": "A100"}), node("root")])

    for checkpoint in (named, unnamed):
        answer(api.restore(checkpoint, file))

    assert _described(api, named) == ("mine", {"own": 1})
    assert _described(api, unnamed) == ("My run", {"gpu": "A100"})
    answer(api.checkpoint(checkpoint := unique_checkpoint()))
    answer(api.node(checkpoint, "root"))
    answer(api.restore(checkpoint, file))
    assert _described(api, checkpoint) == (None, {})


def _described(api: Api, checkpoint: str) -> tuple[str | None, Json]:
    shown = answer(api.get_checkpoint(checkpoint))
    return shown["name"], shown["metadata"]
