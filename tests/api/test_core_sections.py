"""The sections of core memory, each with a version of its own; no edit of theirs is lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.conftest import Grow
from tests.support.client import Api, Json, answer
from tests.support.tree import Tree

SECTIONS = {
    "identity": "persona",
    "user": "human",
    "active-context": "active_context",
    "quick-reference": "quick_reference",
}
SECTION = "active-context"
SECRET = "ghp_" + "a1B2" * 9

Refuse = Callable[[httpx.Response, int, str], Json]


def etag(tree: Tree, section: str = SECTION) -> str:
    return tree.api.core_section(tree.checkpoint, section).headers["ETag"]


def text(tree: Tree, section: str = SECTION) -> str:
    return str(answer(tree.api.core_section(tree.checkpoint, section))["text"])


def put(tree: Tree, value: str, section: str = SECTION) -> Json:
    return answer(tree.api.put_core_section(tree.checkpoint, section, value, if_match="*"))


def edit(tree: Tree, section: str = SECTION, **change: str) -> httpx.Response:
    return tree.api.edit_core_section(tree.checkpoint, section, change, if_match="*")


def append(tree: Tree, line: str, section: str = SECTION) -> httpx.Response:
    return edit(tree, section, append=line)


def replace(tree: Tree, old: str, new: str) -> httpx.Response:
    return edit(tree, **{"replace": old, "with": new})


def note(tree: Tree, details: str) -> Json:
    body = {"topic": "learnings", "title": "Rates", "summary": "What rates do", "details": details}
    path = f"/checkpoints/{tree.checkpoint}/archival"
    return answer(tree.api.request("POST", path, json=body))


@pytest.fixture
def refused(tree: Tree) -> Refuse:
    """Assert that a request was refused so, and that nothing was changed by it."""
    before = answer(tree.api.core_memory(tree.checkpoint))

    def check(response: httpx.Response, status: int, slug: str) -> Json:
        assert (response.status_code, response.json()["type"]) == (status, f"/problems/{slug}")
        assert answer(tree.api.core_memory(tree.checkpoint)) == before
        problem: Json = response.json()
        return problem

    return check


@pytest.mark.parametrize(("section", "block"), SECTIONS.items())
def test_a_section_is_a_block_of_core_memory(
    tree: Tree, api: Api, section: str, block: str
) -> None:
    unset = answer(api.core_section(tree.checkpoint, section))
    put(tree, "two words", section)

    shown = answer(api.core_section(tree.checkpoint, section))

    assert (unset["text"], unset["words"], unset["version"]) == ("", 0, 0)
    assert shown | {"title": ""} == {
        "section": section,
        "title": "",
        "text": "two words",
        "words": 2,
        "version": 1,
    }
    assert shown["title"].lower().replace(" ", "-") == section
    assert answer(api.core_memory(tree.checkpoint))[block] == "two words"


def test_a_text_comes_back_byte_for_byte(tree: Tree) -> None:
    odd = "\ufeff## User\r\n\r\n- 東京 🦊\t\n```\nno end  "

    put(tree, odd)

    assert text(tree) == odd


class TestVersions:
    def test_an_edit_without_one_is_told_the_present_one(
        self, tree: Tree, api: Api, refused: Refuse
    ) -> None:
        for response in (
            api.put_core_section(tree.checkpoint, SECTION, "x", if_match=None),
            api.edit_core_section(tree.checkpoint, SECTION, {"append": "x"}, if_match=None),
        ):
            problem = refused(response, 428, "precondition-required")
            assert problem["etag"] == response.headers["ETag"] == etag(tree)

    @pytest.mark.parametrize("wrong", ['"7"', "0", '""', "W/*", 'W/"0"'])
    def test_an_edit_of_another_one_is_told_the_present_one(
        self, tree: Tree, api: Api, refused: Refuse, wrong: str
    ) -> None:
        response = api.put_core_section(tree.checkpoint, SECTION, "x", if_match=wrong)

        problem = refused(response, 412, "version-mismatch")
        assert problem["etag"] == response.headers["ETag"] == etag(tree)

    def test_of_two_editors_of_a_section_the_second_is_told(self, tree: Tree, api: Api) -> None:
        seen = etag(tree)

        first = api.put_core_section(tree.checkpoint, SECTION, "first", if_match=seen)
        second = api.put_core_section(tree.checkpoint, SECTION, "second", if_match=seen)

        assert (first.status_code, second.status_code) == (200, 412)
        assert second.headers["ETag"] == first.headers["ETag"] == etag(tree) != seen
        assert text(tree) == "first"

    def test_editors_of_two_sections_do_not_meet(self, tree: Tree, api: Api) -> None:
        seen = {section: etag(tree, section) for section in SECTIONS}

        for section in SECTIONS:
            answer(api.put_core_section(tree.checkpoint, section, section, if_match=seen[section]))

        assert {section: text(tree, section) for section in SECTIONS} == {
            section: section for section in SECTIONS
        }

    def test_setting_the_whole_of_core_memory_counts_for_the_blocks_that_it_sets(
        self, tree: Tree, api: Api
    ) -> None:
        before = {section: etag(tree, section) for section in SECTIONS}

        answer(api.put_core_memory(tree.checkpoint, persona="x", context={"goal": 1}))

        after = {section: etag(tree, section) for section in SECTIONS}
        assert {name for name in SECTIONS if before[name] != after[name]} == {"identity"}

    def test_an_edit_that_changes_nothing_leaves_the_version(self, tree: Tree, api: Api) -> None:
        put(tree, "- a line")
        seen = etag(tree), api.core_memory(tree.checkpoint).headers["ETag"]

        put(tree, "- a line")
        answer(replace(tree, "- a line", "- a line"))

        assert (etag(tree), api.core_memory(tree.checkpoint).headers["ETag"]) == seen

    def test_of_many_editors_at_once_no_acknowledged_line_is_lost(
        self, tree: Tree, api: Api
    ) -> None:
        def work(number: int) -> str | None:
            edited = api.edit_core_section(
                tree.checkpoint, SECTION, {"append": f"- line {number}"}, if_match=etag(tree)
            )
            assert edited.status_code in {200, 412}
            return f"- line {number}" if edited.is_success else None

        with ThreadPoolExecutor(8) as editors:
            acknowledged = [line for line in editors.map(work, range(40)) if line]

        assert sorted(text(tree).splitlines()) == sorted(acknowledged)


class TestAppend:
    def test_puts_a_line_at_the_end_and_changes_no_byte_before_it(self, tree: Tree) -> None:
        put(tree, "- one\r\n- two")

        answer(append(tree, "- three"))
        answer(append(tree, "- four"))

        assert text(tree) == "- one\r\n- two\r\n- three\r\n- four"

    @pytest.mark.parametrize("line", ["- one", "* one", "one", "-   one  "])
    def test_of_what_core_memory_says_already_changes_nothing(self, tree: Tree, line: str) -> None:
        put(tree, "- zero\n- one", "identity")

        assert append(tree, line).status_code == 200

        assert text(tree) == ""

    def test_of_what_a_note_says_is_refused_with_the_note_that_does(
        self, tree: Tree, refused: Refuse
    ) -> None:
        kept = note(tree, "- Rate 0.1\n  diverges\n- else")

        problem = refused(append(tree, "* Rate 0.1  diverges"), 409, "duplicate-fact")

        assert problem["where"] == f"{kept['topic']}/{kept['name']}"
        assert append(tree, "- Rate 0.1 diverges at once").status_code == 200

    def test_of_what_a_corrected_note_said_is_fine(self, tree: Tree, api: Api) -> None:
        kept = note(tree, "- Rate 0.1 diverges")
        path = f"/checkpoints/{tree.checkpoint}/archival/{kept['id']}"
        corrected = {"title": "Rates", "summary": "What rates do", "details": "- Rate 0.2 diverges"}
        headers = {"If-Match": "*"}
        answer(api.request("PUT", path, json=corrected, headers=headers))

        assert append(tree, "- Rate 0.1 diverges").status_code == 200


class TestReplace:
    def test_puts_one_line_in_the_place_of_another(self, tree: Tree) -> None:
        put(tree, "- one\r\n- two\r\n\r\n- three")

        answer(replace(tree, "- two", "- 2"))

        assert text(tree) == "- one\r\n- 2\r\n\r\n- three"

    @pytest.mark.parametrize("old", ["- no", "two", "- two ", "- one\\n"])
    def test_of_a_line_that_is_not_there_is_refused(self, tree: Tree, old: str) -> None:
        put(tree, "- one\n- two")

        response = replace(tree, old, "- 2")

        assert (response.status_code, response.json()["type"]) == (409, "/problems/line-mismatch")
        assert text(tree) == "- one\n- two"

    def test_of_a_line_that_is_there_twice_is_refused(self, tree: Tree) -> None:
        put(tree, "- one\n- one")

        response = replace(tree, "- one", "- 1")

        assert (response.status_code, response.json()["type"]) == (409, "/problems/line-mismatch")
        assert text(tree) == "- one\n- one"

    def test_by_what_a_note_says_is_refused(self, tree: Tree) -> None:
        put(tree, "- one")
        note(tree, "- Rate 0.1 diverges")

        response = replace(tree, "- one", "- Rate 0.1 diverges")

        assert (response.status_code, response.json()["type"]) == (409, "/problems/duplicate-fact")

    def test_of_a_line_that_a_note_says_too_may_change_its_bullet(self, tree: Tree) -> None:
        put(tree, "- Rate 0.1 diverges")
        note(tree, "- Rate 0.1 diverges\n- and more")

        answer(replace(tree, "- Rate 0.1 diverges", "* Rate 0.1 diverges"))

        assert text(tree) == "* Rate 0.1 diverges"


class TestWhatANoteSays:
    def test_is_taken_within_a_whole_section_and_a_whole_block(self, tree: Tree, api: Api) -> None:
        note(tree, "- Rate 0.1 diverges")
        lines = "- one\n- Rate 0.1\n  diverges\n- three"

        put(tree, lines)
        answer(api.put_core_memory(tree.checkpoint, persona="x", quick_reference=lines))

        assert text(tree) == text(tree, "quick-reference") == lines

    def test_may_stay_where_core_memory_said_it_before(self, tree: Tree) -> None:
        put(tree, "- Rate 0.1 diverges", "user")
        note(tree, "- Rate 0.1 diverges\n- and more")

        answer(append(tree, "- Ada", "user"))

    def test_may_be_referred_to(self, tree: Tree) -> None:
        kept = note(tree, "- See archival: people/ada\n- Rate 0.1 diverges")

        put(tree, f"- See archival: people/ada\n- See archival: {kept['ref']}")
        answer(append(tree, f"- Rate 0.1 diverges (See archival: {kept['ref']})"))

    def test_is_found_although_the_line_goes_on_with_the_one_above(self, tree: Tree) -> None:
        put(tree, "Some prose")
        note(tree, "- Rate 0.1 diverges")

        response = append(tree, "Rate 0.1 diverges")

        assert response.json()["type"] == "/problems/duplicate-fact"
        assert text(tree) == "Some prose"


@pytest.mark.parametrize("breaking", ["a\nb", "a\n", "\na", "a\rb", "a\u2028b", "a\x85b", "a\x0bb"])
@pytest.mark.parametrize("form", ["append", "replace", "with"])
def test_a_line_with_a_line_break_is_refused(
    tree: Tree, refused: Refuse, breaking: str, form: str
) -> None:
    change = {"append": breaking} if form == "append" else {"replace": "x", "with": "y"}

    problem = refused(edit(tree, **change | {form: breaking}), 422, "invalid-input")

    assert problem["errors"][0]["loc"] == ["body", form]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"append": "x", "replace": "a", "with": "b"},
        {"replace": "a"},
        {"with": "b"},
        {"append": None},
        {"append": " "},
        {"append": ""},
        {"replace": "a", "with": ""},
        {"append": "x", "new": "y"},
        {"append": ["x"]},
        {"text": "x"},
    ],
)
def test_an_edit_that_is_none_is_refused(
    tree: Tree, api: Api, refused: Refuse, change: Json
) -> None:
    response = api.edit_core_section(tree.checkpoint, SECTION, change, if_match="*")

    refused(response, 422, "invalid-input")


def test_a_section_over_the_limit_is_refused(tree: Tree, refused: Refuse, api: Api) -> None:
    whole = api.put_core_section(tree.checkpoint, SECTION, "x" * 32_769, if_match="*")
    assert refused(whole, 413, "too-large")["limit"] == 32_768

    line = append(tree, "é" * 16_385)
    assert refused(line, 413, "too-large")["limit"] == 32_768


def test_a_section_at_the_limit_takes_no_line_more(tree: Tree) -> None:
    put(tree, "x" * 32_767)

    assert append(tree, "y").status_code == 413
    assert text(tree) == "x" * 32_767


@pytest.mark.parametrize("form", ["put", "append", "replace"])
def test_a_likely_credential_is_refused_without_being_repeated(
    tree: Tree, api: Api, form: str
) -> None:
    put(tree, "- one")
    line = f"- the token is `{SECRET}`"

    response = {
        "put": lambda: api.put_core_section(tree.checkpoint, SECTION, f"ok\n{line}", if_match="*"),
        "append": lambda: append(tree, line),
        "replace": lambda: replace(tree, "- one", line),
    }[form]()

    problem = response.json()
    assert (response.status_code, problem["type"]) == (422, "/problems/credential-in-core")
    assert (problem["where"], problem["topic"]) == (SECTION, "reference")
    assert SECRET not in response.text
    assert text(tree) == "- one"


@pytest.mark.parametrize("section", ["persona", "Identity", "active_context", "..%2fx", "%00", "x"])
def test_an_unknown_section_is_not_found(
    tree: Tree, api: Api, refused: Refuse, section: str
) -> None:
    refused(api.core_section(tree.checkpoint, section), 404, "unknown-path")
    put_there = api.put_core_section(tree.checkpoint, section, "x", if_match="*")
    refused(put_there, 404, "unknown-path")


def test_a_section_of_an_unknown_checkpoint_is_not_found(api: Api) -> None:
    for response in (
        api.core_section("nowhere", SECTION),
        api.put_core_section("nowhere", SECTION, "x", if_match="*"),
        api.edit_core_section("nowhere", SECTION, {"append": "x"}, if_match="*"),
    ):
        assert response.json()["type"] == "/problems/unknown-checkpoint"


def test_every_node_of_the_checkpoint_reads_a_section_and_none_of_another(
    tree: Tree, grow: Grow, api: Api
) -> None:
    stranger = grow()["a"]

    assert api.core_section(tree.checkpoint, SECTION, claim=tree["b"]).status_code == 200
    assert api.core_section(tree.checkpoint, SECTION, claim=stranger).status_code == 403


def test_no_node_edits_a_section_and_the_log_tells_of_it(
    tree: Tree, api: Api, refused: Refuse
) -> None:
    for response in (
        api.put_core_section(tree.checkpoint, SECTION, "x", if_match="*", claim=tree["a"]),
        api.edit_core_section(
            tree.checkpoint, SECTION, {"append": "x"}, if_match=None, claim=tree["a"]
        ),
    ):
        refused(response, 403, "scope-violation")
    records = answer(api.access_log(tree.checkpoint))["items"]
    told = [record for record in records if record["operation"] == "core_write"]
    assert [(record["reader"], record["refusal"]) for record in told] == [
        (tree["a"], "scope-violation"),
        (tree["a"], "scope-violation"),
    ]
