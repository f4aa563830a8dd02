"""The pure rules: no database, no sockets."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lineage.entry import Collection, Entry, node_digest, text_digest
from app.lineage.errors import (
    CowViolation,
    CurrentNodeRequired,
    InvalidInput,
    NodeSealed,
    PreconditionRequired,
    ScopeViolation,
    StaleToken,
    TooLarge,
    VersionMismatch,
)
from app.lineage.guard import Claim, Node, check_open, check_reader, check_writer
from app.lineage.ids import NodeId, checkpoint_id, checkpoint_path
from app.lineage.json_rules import check_characters, check_object, json_equal
from app.lineage.lineage import Lineage, whole_trace
from app.lineage.texts import check_text
from app.lineage.versions import check_version

NOW = datetime(2026, 5, 2, tzinfo=UTC)
A1 = NodeId("exp", "a1")
LINEAGE = Lineage(A1, ("root", "a"))
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,20}", fullmatch=True)


def node(*, sealed: bool = False, token_epoch: int = 0) -> Node:
    return Node(
        id=A1,
        parent="a",
        depth=2,
        eval_summary=None,
        metadata={},
        created_at=NOW,
        sealed_at=NOW if sealed else None,
        token_epoch=token_epoch,
    )


def entry(
    *,
    checkpoint: str = "exp",
    name: str | None = "a",
    collection: Collection = Collection.NODE_SCOPE,
) -> Entry:
    return Entry(
        id="e",
        checkpoint=checkpoint,
        collection=collection,
        node=name,
        text="x",
        metadata={},
        created_at=NOW,
        seq=1,
        sha256=text_digest("x"),
        indexed=True,
        refused=None,
    )


class TestTheGuardOfWrites:
    def test_lets_the_nodes_own_executor_write(self) -> None:
        check_writer(node(), Claim("exp.a1"))

    def test_asks_for_a_claim(self) -> None:
        with pytest.raises(CurrentNodeRequired):
            check_writer(node(), None)

    @given(st.text().filter(lambda text: text != "exp.a1"))
    def test_refuses_any_other_claim(self, claimed: str) -> None:
        with pytest.raises(CowViolation):
            check_writer(node(), Claim(claimed))

    def test_refuses_a_token_that_was_overtaken(self) -> None:
        check_writer(node(token_epoch=2), Claim("exp.a1", epoch=2))
        with pytest.raises(StaleToken):
            check_writer(node(token_epoch=2), Claim("exp.a1", epoch=1))

    def test_does_not_fence_off_the_header(self) -> None:
        check_writer(node(token_epoch=2), Claim("exp.a1"))

    def test_refuses_a_sealed_node(self) -> None:
        check_open(node())
        with pytest.raises(NodeSealed):
            check_open(node(sealed=True))


class TestAScope:
    def test_is_the_ancestors_and_the_node_where_asked(self) -> None:
        assert LINEAGE.scope().nodes == ("root", "a")
        assert LINEAGE.scope(include_self=True).nodes == ("root", "a", "a1")

    def test_is_narrowed_by_ids_and_names_in_the_lineages_order(self) -> None:
        assert LINEAGE.scope(only=["a", "exp.root"]).nodes == ("root", "a")
        assert LINEAGE.scope(only=[]).nodes == ()

    @given(st.lists(NAMES.filter(lambda name: name not in {"root", "a"}), min_size=1))
    def test_is_never_widened(self, outside: list[str]) -> None:
        with pytest.raises(ScopeViolation) as refused:
            LINEAGE.scope(only=["root", *outside])
        assert set(refused.value.outside) == set(outside)

    def test_admits_entries_of_its_nodes_checkpoint_and_collection_only(self) -> None:
        scope = LINEAGE.scope()
        assert scope.admits(entry())
        assert not scope.admits(entry(name="b"))
        assert not scope.admits(entry(name="a1"))
        assert not scope.admits(entry(name=None))
        assert not scope.admits(entry(checkpoint="exp2"))
        assert not scope.admits(entry(collection=Collection.REACT_STEP))

    def test_of_the_trace_holds_the_lineage_and_what_has_no_node(self) -> None:
        step = Collection.REACT_STEP
        assert LINEAGE.trace().admits(entry(name=None, collection=step))
        assert LINEAGE.trace().admits(entry(name="a1", collection=step))
        assert not LINEAGE.trace().admits(entry(name="b", collection=step))
        assert whole_trace("exp").admits(entry(name="b", collection=step))
        assert not whole_trace("exp").admits(entry(name="b"))

    def test_of_a_reader_is_itself_and_its_ancestors(self) -> None:
        for name in ("root", "a", "a1"):
            check_reader(LINEAGE, NodeId("exp", name))
        for other in (NodeId("exp", "b"), NodeId("exp2", "root")):
            with pytest.raises(ScopeViolation):
                check_reader(LINEAGE, other)


class TestIds:
    @given(NAMES)
    def test_a_node_id_reads_back_as_it_was_built(self, name: str) -> None:
        if not name.startswith("exp."):
            assert NodeId.parse(str(NodeId("exp", name))) == NodeId("exp", name)

    def test_a_name_does_not_begin_with_its_checkpoint_and_a_dot(self) -> None:
        assert NodeId.parse("exp.exp.a") is None
        assert NodeId.parse("exp.other.a") == NodeId("exp", "other.a")

    @pytest.mark.parametrize("text", ["", "exp", "exp.", ".a", "Exp.a", "exp.a/b", "exp.a\n"])
    def test_other_forms_are_no_ids(self, text: str) -> None:
        assert NodeId.parse(text) is None

    def test_a_checkpoint_is_named_by_its_path_alike_everywhere(self) -> None:
        # printf /mnt/run1 | sha1sum
        assert checkpoint_id(None, checkpoint_path("/mnt/run1/")) == "df0cf87ab1f5"


class TestJson:
    @pytest.mark.parametrize("depth", [1, 16])
    def test_nesting_is_allowed_up_to_sixteen(self, depth: int) -> None:
        check_object(nested(depth), place=("m",))

    @pytest.mark.parametrize("depth", [17, 5_000])
    def test_deeper_nesting_is_refused(self, depth: int) -> None:
        with pytest.raises(InvalidInput):
            check_object(nested(depth), place=("m",))

    @pytest.mark.parametrize("value", [2**63, -(2**63) - 1, float("nan"), float("inf")])
    def test_numbers_that_stores_cannot_keep_are_refused(self, value: float) -> None:
        with pytest.raises(InvalidInput):
            check_object({"a": [{"b": value}]}, place=("m",))

    def test_the_limit_counts_bytes_of_compact_utf8(self) -> None:
        assert check_object({"k": "é" * 10}, place=("m",), max_bytes=28)
        with pytest.raises(InvalidInput):
            check_object({"k": "é" * 10}, place=("m",), max_bytes=27)

    @pytest.mark.parametrize(
        ("value", "place"),
        [
            ("a\x00", ("body",)),
            ({"a": ["x", "\ud801"]}, ("body", "a", 1)),
            ({"a\x00": 1}, ("body", "(key 1)")),
            ([{"a": {"b\udfff": 1}}], ("body", 0, "a", "(key 1)")),
        ],
    )
    def test_characters_that_do_not_survive_are_named_by_place(
        self, value: object, place: tuple[str | int, ...]
    ) -> None:
        with pytest.raises(InvalidInput) as refused:
            check_characters(value)
        assert tuple(refused.value.place) == place

    def test_a_whole_pair_is_a_character(self) -> None:
        check_characters({"fox": ["\U0001f98a"]})

    @pytest.mark.parametrize(
        ("left", "right", "equal"),
        [
            (1, 1.0, True),
            (None, None, True),
            (1, True, False),
            (0, False, False),
            ("1", 1, False),
            (None, False, False),
        ],
    )
    def test_equality_is_that_of_json(self, left: object, right: object, *, equal: bool) -> None:
        assert json_equal(left, right) is equal
        assert json_equal(right, left) is equal


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
def test_a_blank_text_is_refused(blank: str) -> None:
    with pytest.raises(InvalidInput):
        check_text(blank, max_bytes=10, place=("body", "text"))


def test_a_text_is_measured_in_bytes() -> None:
    check_text("é" * 5, max_bytes=10, place=("body", "text"))
    with pytest.raises(TooLarge):
        check_text("é" * 5 + "x", max_bytes=10, place=("body", "text"))


@given(st.lists(st.binary(min_size=32, max_size=32)))
def test_a_nodes_digest_depends_on_every_entry_and_their_order(digests: list[bytes]) -> None:
    whole = node_digest(digests)
    assert len(whole) == 64
    assert whole == node_digest(list(digests))
    if digests != digests[::-1]:
        assert whole != node_digest(digests[::-1])
    assert whole != node_digest([*digests, b"\x00" * 32])


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


class TestAVersion:
    @pytest.mark.parametrize("sent", ['"7"', "*", '"999", "7"', '"7","8"', '"seven"'])
    def test_fits_where_one_of_the_tags_sent_is_the_stored_one(self, sent: str) -> None:
        check_version(sent, '"7"', '"seven"')

    @pytest.mark.parametrize("sent", ['"8"', "7", 'W/"7"', '"8", "9"', ""])
    def test_is_another_one_where_none_of_them_is(self, sent: str) -> None:
        with pytest.raises(VersionMismatch):
            check_version(sent, '"7"')

    def test_has_to_be_sent(self) -> None:
        with pytest.raises(PreconditionRequired):
            check_version(None, '"7"')
