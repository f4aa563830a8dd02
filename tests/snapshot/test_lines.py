"""What a line of a snapshot may not be, each refusal by its line and with its reason."""

import gzip

import pytest

from tests.snapshot.files import (
    Line,
    changed,
    encoded,
    entry,
    foreign,
    header,
    node,
    packed,
    records,
    sealed,
    unpacked,
    without,
)
from tests.snapshot.sample import texts
from tests.support.client import Api, Json, answer
from tests.support.tree import Tree, unique_checkpoint

FOX = r"\ud83e\udd8a"
SEED = {"kind": "core_seed", "persona": "Careful.", "human": None, "context": None}


def refused(api: Api, file: bytes, *, status: int = 422) -> Json:
    """Restore a file that must be refused, see that nothing came of it, and return the problem."""
    checkpoint = unique_checkpoint()
    response = api.restore(checkpoint, file)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert api.get_checkpoint(checkpoint).status_code == 404
    problem: Json = response.json()
    return problem


def raw(line: Json, old: str, new: str) -> bytes:
    """Return a line as bytes that no careful writer would make of an object."""
    before = encoded(line)
    after = before.replace(old.encode(), new.encode("utf-8", "surrogatepass"))
    assert after != before
    return after


BROKEN: dict[str, tuple[Line, str]] = {
    "node that is not in the file": (entry(node_id="ghost"), "'ghost' is not in the snapshot"),
    "entry with a path for a node": (entry(node_id="../x"), "as no node may be called"),
    "node with a path for a name": (node("../x"), "as no node may be called"),
    "node with a number for a name": ({**node("x"), "name": 7}, "as no node may be called"),
    "parent that is nowhere": (node("x", "nowhere"), "'nowhere'"),
    "node as its own parent": (node("z", "z"), "its own ancestor"),
    "node of another checkpoint": (entry(node_id="exp2/root"), "as no node may be called"),
    "root once more": (node("root"), "was there before"),
    "40 KB of text": (entry("a" * 40_000), "32768 bytes"),
    "blank text": (entry(" \n "), "blank text"),
    "no text": (without(entry(), "text"), "no text"),
    "number for a text": (entry(text=7), "no text"),
    "NUL in the text": (entry("run 7\u0000 loss 0.31"), "NUL"),
    "NUL in a metadata key": (entry(metadata={"a\u0000": 1}), "NUL"),
    "NUL in a persona": ({**SEED, "seeded_at": 1.0, "persona": "\u0000"}, "NUL"),
    "NUL in a node's metadata": (node("x", metadata={"a": ["\u0000"]}), "NUL"),
    "half an emoji in the text": (raw(entry("tail cut"), "tail", r"\ud801"), "surrogate"),
    "half an emoji in metadata": (
        raw(entry(metadata={"a": "tail"}), "tail", r"\ud801"),
        "surrogate",
    ),
    "half an emoji in a metadata key": (
        raw(entry(metadata={"tail": 1}), "tail", r"\ud801"),
        "surrogate",
    ),
    "half an emoji in an unknown field's name": (
        raw(entry(tail=1), '"tail"', r'"\ud801"'),
        "surrogate",
    ),
    "half an emoji in bytes": (raw(entry("tail cut"), "tail", "\ud801"), "not JSON in UTF-8"),
    "NaN in metadata": (entry(metadata={"loss": float("nan")}), "NaN"),
    "infinity in metadata": (entry(metadata={"loss": float("inf")}), "Infinity"),
    "1e999 in metadata": (raw(entry(metadata={"loss": 4711}), "4711", "1e999"), "infinity"),
    "65 bits in metadata": (entry(metadata={"n": 2**63}), "64 bits"),
    "metadata of 17 KiB": (entry(metadata={"a": "x" * 17_000}), "16384 bytes"),
    "metadata as a list": (entry(metadata=[]), "no JSON object"),
    "hash that does not fit": (entry(sha256="0" * 64), "not that of its text"),
    "hash in capitals": (entry(sha256=entry()["sha256"].upper()), "not that of its text"),
    "no hash": (without(entry(), "sha256"), "not that of its text"),
    "no id": (without(entry(), "id"), "its id"),
    "id with a slash": (entry(id="a/b"), "its id"),
    "missing time": (without(entry(), "ts"), "its time"),
    "time as true": (entry(ts=True), "its time"),
    "time as a word": (entry(ts="yesterday"), "its time"),
    "time as a week": (entry(ts="2026-W01-1"), "its time"),
    "time without its marks": (entry(ts="20260101T000000Z"), "its time"),
    "time as a day": (entry(ts="2026-01-01"), "its time"),
    "time on no calendar": (entry(ts="2026-02-30T00:00:00Z"), "its time"),
    "time beyond all calendars": (entry(ts=1e18), "its time"),
    "time as NaN": (entry(ts=float("nan")), "NaN"),
    "unknown kind": ({"kind": "sparkle"}, "'sparkle'"),
    "no kind": ({"text": "x"}, "its kind"),
    "kind as a list": ({"kind": ["node"]}, "its kind"),
    "second header": (header(), "first line alone"),
    "half a JSON object": ('{"kind": "node"', "not JSON"),
    "two objects in a line": ("{} {}", "not JSON"),
    "list": ("[]", "no JSON object"),
    "key named twice": ('{"kind": "node", "kind": "node"}', "a key twice"),
    "bytes that are no UTF-8": (b'{"kind": "\xff"}', "not JSON in UTF-8"),
    "deeper than any parser goes": ("[" * 200_000, "not JSON"),
    "direction of 17 KiB": (node("x", eval_summary="x" * 17_000), "16384 bytes"),
    "blank direction": (node("x", eval_summary=" "), "blank eval_summary"),
    "persona of 40 KB": ({**SEED, "seeded_at": 1.0, "persona": "x" * 40_000}, "32768 bytes"),
    "label of core_seed": (
        {"kind": "core_block", "label": "human", "value": "", "updated_at": 1.0},
        "its label",
    ),
    "label of 4 KB": (
        {"kind": "core_block", "label": "x" * 4_000, "value": "", "updated_at": 1.0},
        "its label",
    ),
    "label that nobody reads": (
        {"kind": "core_block", "label": "style", "value": "", "updated_at": 1.0},
        "its label",
    ),
    "block without a value": (
        {"kind": "core_block", "label": "active_context", "updated_at": 1.0},
        "no value",
    ),
    "context as a list": ({**SEED, "seeded_at": 1.0, "context": []}, "no JSON object"),
    "core memory without a time": (SEED, "its time"),
    "line of 600 KB": (entry(surprise="x" * 600_000), "longer than"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_line_is_refused_by_its_number_and_reason(api: Api, case: str) -> None:
    line, reason = BROKEN[case]

    problem = refused(api, sealed([header(), node("root"), entry("good"), line]))

    assert problem["type"] == "/problems/snapshot-refused"
    assert reason in problem["detail"]
    assert problem["line"] == 4
    assert "Line 4 " in problem["detail"]
    problem["detail"].encode()  # no half of a pair is echoed


def test_nodes_that_are_each_others_parents_are_refused(api: Api) -> None:
    problem = refused(api, sealed([header(), node("x", "y"), node("y", "x")]))

    assert "its own ancestor" in problem["detail"]


def test_a_newer_format_is_refused_with_the_one_that_is_read(api: Api) -> None:
    problem = refused(api, sealed([header(format=2), {"kind": "new in 2"}]))

    assert problem["line"] == 1
    assert "its format is 2; this service reads format 1" in problem["detail"]


@pytest.mark.parametrize("version", [None, True, "1", 1.5])
def test_a_format_that_is_no_version_is_refused(api: Api, version: object) -> None:
    assert refused(api, sealed([header(format=version)]))["line"] == 1


@pytest.mark.parametrize(
    "fields", [{"checkpoint": "../x"}, {"name": 7}, {"metadata": []}, {"name": "x" * 501}]
)
def test_a_header_that_breaks_a_rule_is_refused(api: Api, fields: Json) -> None:
    assert refused(api, sealed([header(**fields)]))["line"] == 1


def test_a_whole_pair_is_the_fox(api: Api) -> None:
    checkpoint = unique_checkpoint()
    line = raw(entry("🦊"), "🦊", FOX)

    answer(api.restore(checkpoint, sealed([header(), node("root"), line])))

    assert texts(api, f"{checkpoint}.root") == ["🦊"]


def test_a_blank_line_in_a_foreign_file_is_no_line_and_the_numbers_count_it(api: Api) -> None:
    checkpoint = unique_checkpoint()
    good: list[Line] = [foreign("one"), "", " \t", foreign("two", ts=1_700_000_009)]

    answer(api.restore(checkpoint, packed(good)))

    assert texts(api, f"{checkpoint}.root") == ["one", "two"]
    assert refused(api, packed([*good, foreign(" ")]))["line"] == 5


def test_a_blank_line_in_a_snapshot_of_ours_is_tampering(tree: Tree) -> None:
    lines = unpacked(tree.api.backup(tree.checkpoint).content)

    problem = refused(tree.api, packed([*lines[:2], b"", *lines[2:]]))

    assert "not those that it was written with" in problem["detail"]


def test_windows_line_ends_are_read_in_a_foreign_file(api: Api) -> None:
    checkpoint = unique_checkpoint()
    lines = [encoded(foreign(text)) + b"\r" for text in ("one", "two\r\nof two lines")]

    answer(api.restore(checkpoint, packed(lines)))

    assert texts(api, f"{checkpoint}.root") == ["one", "two\r\nof two lines"]


def test_windows_line_ends_in_a_snapshot_of_ours_are_tampering(tree: Tree) -> None:
    lines = unpacked(tree.api.backup(tree.checkpoint).content)

    refused(tree.api, packed([line + b"\r" for line in lines]))


def test_the_last_line_feed_may_be_missing(api: Api) -> None:
    checkpoint = unique_checkpoint()

    answer(api.restore(checkpoint, gzip.compress(encoded(foreign("one")))))

    assert texts(api, f"{checkpoint}.root") == ["one"]


def test_a_node_may_be_named_by_its_id_in_the_target(api: Api) -> None:
    checkpoint = unique_checkpoint()

    answer(api.restore(checkpoint, packed([foreign("one", f"{checkpoint}.root")])))

    assert texts(api, f"{checkpoint}.root") == ["one"]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"lines": 1}, "not those that it was written with"),
        ({"sha256": "0" * 64}, "not those that it was written with"),
        ({"counts": {"node": 7}}, "not those that it was written with"),
        ({"counts": {}}, "not those that it was written with"),
        ({"counts": [1]}, "lacks"),
        ({"lines": "2"}, "lacks"),
        ({"sha256": None}, "lacks"),
    ],
    ids=repr,
)
def test_a_last_line_that_does_not_fit_is_refused(api: Api, end: Json, reason: str) -> None:
    lines = records(sealed([header(), node("root")]))
    lines[-1] |= end

    problem = refused(api, packed(lines))

    assert problem["line"] == 3
    assert reason in problem["detail"]


def test_a_snapshot_without_its_last_line_is_refused_as_cut_off(tree: Tree) -> None:
    lines = unpacked(tree.api.backup(tree.checkpoint).content)

    assert "cut off" in refused(tree.api, packed(lines[:-1]))["detail"]


def test_nothing_may_stand_behind_the_last_line(tree: Tree) -> None:
    lines = unpacked(tree.api.backup(tree.checkpoint).content)

    problem = refused(tree.api, packed([*lines, encoded(node("more"))]))

    assert problem["line"] == len(lines) + 1


def test_a_header_behind_other_lines_makes_no_snapshot_of_ours(tree: Tree) -> None:
    lines = unpacked(tree.api.backup(tree.checkpoint).content)

    refused(tree.api, packed([*lines[1:], lines[0]]))


@pytest.mark.parametrize(
    "file", [b"", b"\x1f\x8b", b"not gzip", packed([]), packed(["", ""])], ids=repr
)
def test_what_holds_nothing_is_refused(api: Api, file: bytes) -> None:
    refused(api, file)


def test_an_entry_may_not_hide_in_a_changed_text(tree: Tree) -> None:
    tree.write("root", "blue door")

    def change(lines: list[Json]) -> None:
        lines[-1]["text"] = "blue  door"

    refused(tree.api, changed(tree.api.backup(tree.checkpoint).content, change))


def test_a_snapshot_that_lost_its_header_is_not_taken_for_a_foreign_file(tree: Tree) -> None:
    tree.write("root", "blue door")
    lines = unpacked(tree.api.backup(tree.checkpoint).content)

    for left in (lines[1:], lines[1:-1]):
        assert "lost its header" in refused(tree.api, packed(left))["detail"]
