"""The archive of notes: written once, listed, found by every node."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.notes import DOOR, RATE, RATE_TEXT, ids, names
from tests.conftest import API_KEY
from tests.support.client import Api, answer, walk
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint


class TestANote:
    def test_is_shown_in_parts_and_as_the_whole_of_its_markdown(
        self, api: Api, checkpoint: str
    ) -> None:
        written = api.write_note(checkpoint, **RATE)

        note = answer(written)
        assert written.status_code == 201
        expected = {**RATE, "topic": "learnings", "name": "learning-rate", "text": RATE_TEXT}
        assert {key: note[key] for key in expected} == expected
        assert note["ref"] == "learnings/learning-rate"
        assert (note["supersedes"], note["superseded_by"]) == ([], None)
        assert note["words"] == 20
        assert answer(api.get_note(checkpoint, note["id"])) == note
        assert answer(api.notes(checkpoint))["items"] == [note]

    def test_sent_as_the_whole_of_its_markdown_keeps_every_byte(
        self, api: Api, checkpoint: str
    ) -> None:
        heading = "# Gates \N{EN DASH} 2026-05-01\r\n"
        text = f"{heading}\r\nA gate, by hand.\r\n\r\n```\n# no heading\n```"

        note = answer(api.write_note(checkpoint, "projects", name="gates", text=text))

        assert note["text"] == text
        assert (note["title"], note["date"], note["ref"]) == (
            "Gates",
            "2026-05-01",
            "projects/gates",
        )
        assert note["summary"] == "A gate, by hand."

    def test_without_a_heading_is_called_as_it_is_named_and_of_today(
        self, api: Api, checkpoint: str
    ) -> None:
        today = answer(api.session(checkpoint))["date"]

        note = answer(api.write_note(checkpoint, name="plain", text="just words"))

        assert (note["title"], note["date"], note["text"]) == ("plain", today, "just words")

    def test_of_a_taken_name_gets_a_number_behind_it(self, api: Api, checkpoint: str) -> None:
        written = [
            answer(api.write_note(checkpoint, **RATE | {"summary": f"Result {number}."}))["name"]
            for number in range(3)
        ]
        elsewhere = answer(api.write_note(checkpoint, "projects", **RATE))["name"]

        assert written == ["learning-rate", "learning-rate-2", "learning-rate-3"]
        assert elsewhere == "learning-rate"

    def test_has_its_own_title_whatever_its_name(self, api: Api, checkpoint: str) -> None:
        for number in range(2):
            sent = {"title": "rate", "name": "rate", "summary": f"Result {number}."}
            note = answer(api.write_note(checkpoint, **sent))
            assert note["title"] == "rate"
            assert answer(api.get_note(checkpoint, note["id"])) == note
            again = api.write_note(checkpoint, **sent)
            assert (again.status_code, answer(again)) == (200, note)
        assert note["name"] == "rate-2"

    def test_that_is_there_already_is_the_stored_one(self, api: Api, checkpoint: str) -> None:
        first = answer(api.write_note(checkpoint, **RATE))
        other = answer(api.write_note(checkpoint, **RATE | {"summary": "Another."}))

        again = api.write_note(checkpoint, **RATE)
        numbered = api.write_note(checkpoint, **RATE | {"summary": "Another."})

        assert (again.status_code, answer(again)) == (200, first)
        assert (numbered.status_code, answer(numbered)) == (200, other)
        assert len(answer(api.notes(checkpoint))["items"]) == 2

    def test_written_twice_at_once_is_stored_once(self, api: Api, checkpoint: str) -> None:
        with ThreadPoolExecutor(8) as pool:
            written = list(pool.map(lambda _: api.write_note(checkpoint, **RATE), range(8)))

        assert sorted(each.status_code for each in written) == [200] * 7 + [201]
        assert len({answer(each)["id"] for each in written}) == 1
        assert names(answer(api.notes(checkpoint))) == ["learning-rate"]

    def test_repeated_under_its_key_is_the_first_answer_again(
        self, api: Api, checkpoint: str
    ) -> None:
        key = unique_checkpoint("key")
        first = api.write_note(checkpoint, key=key, **RATE)
        answer(api.correct_note(checkpoint, answer(first)["id"], **DOOR))

        again = api.write_note(checkpoint, key=key, **RATE)
        other = api.write_note(checkpoint, key=key, **DOOR)

        assert (again.status_code, again.text) == (201, first.text)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.headers["ETag"] == first.headers["ETag"]
        assert other.json()["type"] == "/problems/idempotency-mismatch"
        assert names(answer(api.notes(checkpoint))) == ["learning-rate"]

    @pytest.mark.parametrize(
        "name",
        [
            "../x",
            "../../outside",
            "/etc/hosts",
            "a/../../b",
            "..%2f..%2fx",
            "..\\..\\x",
            "two\nlines",
            "..",
            ".hidden",
            "c:x",
            "",
            " ",
            "x" * 81,
            "é" * 101,
        ],
    )
    def test_of_a_name_that_leads_elsewhere_is_refused(
        self, api: Api, checkpoint: str, name: str
    ) -> None:
        written = api.write_note(checkpoint, name=name, **RATE)
        listed = api.notes(checkpoint, name=name)

        assert (written.status_code, written.json()["errors"][0]["loc"]) == (422, ["body", "name"])
        assert (listed.status_code, listed.json()["errors"][0]["loc"]) == (422, ["query", "name"])
        assert answer(api.notes(checkpoint))["items"] == []

    @pytest.mark.parametrize("name", ["日本語-のメモ", "Straße_2", "x" * 80])
    def test_has_a_name_of_any_letters(self, api: Api, checkpoint: str, name: str) -> None:
        note = answer(api.write_note(checkpoint, name=name, **RATE))

        assert note["name"] == name
        assert ids(answer(api.notes(checkpoint, topic="learnings", name=name))) == [note["id"]]

    @pytest.mark.parametrize(
        "date",
        ["2026-13-45", "../2026-01-01", "2026-02-29", "20260608", "2026-W24-1", "2026-6-8", ""],
    )
    def test_of_a_day_that_no_calendar_has_is_refused(
        self, api: Api, checkpoint: str, date: str
    ) -> None:
        refused = api.write_note(checkpoint, **RATE | {"date": date})

        assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["body", "date"])

    @pytest.mark.parametrize(
        ("change", "place"),
        [
            ({"title": "two\nlines"}, "title"),
            ({"summary": "two\nlines"}, "summary"),
            ({"summary": "x" * 201}, "summary"),
            ({"summary": " "}, "summary"),
            ({"tags": ["a, b"]}, "tags"),
            ({"topic": "gossip"}, "topic"),
            ({"topic": "../people"}, "topic"),
            ({"text": "# whole"}, "title"),
            ({"colour": "blue"}, "colour"),
        ],
    )
    def test_that_breaks_a_rule_is_refused_by_its_place(
        self, api: Api, checkpoint: str, change: dict[str, Any], place: str
    ) -> None:
        refused = api.request(
            "POST",
            f"/checkpoints/{checkpoint}/archival",
            json={"topic": "learnings", **RATE, **change},
        )

        assert refused.status_code == 422
        assert refused.json()["errors"][0]["loc"][:2] == ["body", place]
        assert answer(api.notes(checkpoint))["items"] == []

    def test_that_is_too_long_is_refused_with_the_limit(self, api: Api, checkpoint: str) -> None:
        refused = api.write_note(checkpoint, **RATE | {"details": "x" * 32_769})

        assert (refused.status_code, refused.json()["limit"]) == (413, 32_768)

    def test_of_no_checkpoint_is_404(self, api: Api) -> None:
        assert api.write_note(unique_checkpoint(), **RATE).status_code == 404
        assert api.notes(unique_checkpoint()).status_code == 404

    @pytest.mark.parametrize("note", ["..%2f..%2fx", "a%5cb", "%2e%2e", "no-such-note", "x" * 300])
    def test_that_is_nowhere_is_404(self, api: Api, checkpoint: str, note: str) -> None:
        assert api.get_note(checkpoint, note).status_code == 404
        assert api.correct_note(checkpoint, note, **RATE).status_code == 404

    def test_is_no_entry_of_another_kind_and_no_note_of_another_checkpoint(
        self, tree: Tree, api: Api, checkpoint: str
    ) -> None:
        (entry,) = tree.write("root", "blue door")
        step = answer(api.trace_step(tree.checkpoint, "blue door"))
        day = answer(api.daily_note(tree.checkpoint, "blue door"))
        note = answer(api.write_note(checkpoint, **RATE))

        for other in (entry, step, day, note):
            assert api.get_note(tree.checkpoint, other["id"]).status_code == 404
            assert api.correct_note(tree.checkpoint, other["id"], **RATE).status_code == 404


class TestNotes:
    def test_are_listed_oldest_first_by_topic_and_name_and_page_by_page(
        self, api: Api, checkpoint: str
    ) -> None:
        for topic in ("learnings", "people"):
            for number in range(7):
                answer(api.write_note(checkpoint, topic, name=f"n{number}", **RATE))

        expected = [f"n{number}" for number in range(7)]
        paged = walk(lambda cursor: api.notes(checkpoint, topic="people", cursor=cursor, limit=3))
        assert [(note["topic"], note["name"]) for note in paged] == [
            ("people", name) for name in expected
        ]
        assert names(answer(api.notes(checkpoint))) == expected * 2
        assert names(answer(api.notes(checkpoint, name="n3"))) == ["n3", "n3"]
        assert names(answer(api.notes(checkpoint, topic="people", name="none"))) == []
        assert api.notes(checkpoint, topic="gossip").status_code == 422

    def test_are_found_best_first_and_by_topic(self, api: Api, checkpoint: str) -> None:
        answer(api.write_note(checkpoint, "learnings", **RATE))
        answer(api.write_note(checkpoint, "projects", **DOOR))

        found = answer(api.search_notes(checkpoint, "which door opens?"))
        of_topic = answer(api.search_notes(checkpoint, "which door opens?", topic="learnings"))

        assert names(found) == ["doors", "learning-rate"]
        assert [hit["rank"] for hit in found["results"]] == [1, 2]
        assert found["results"][0]["score"] > found["results"][1]["score"]
        assert names(of_topic) == ["learning-rate"]

    def test_are_no_entries_of_a_node_and_no_steps(self, tree: Tree, api: Api) -> None:
        answer(api.write_note(tree.checkpoint, **DOOR))
        answer(api.daily_note(tree.checkpoint, "the blue door again"))

        assert tree.search("a1", "blue door", include_self=True) == []
        assert answer(api.search_trace(tree.checkpoint, "blue door"))["results"] == []
        assert answer(api.working_context(tree["a1"], "blue door"))["search"]["results"] == []

    def test_hold_nothing_of_nodes_and_of_the_trace(self, tree: Tree, api: Api) -> None:
        tree.write("root", "blue door of a node")
        answer(api.trace_step(tree.checkpoint, "blue door of a step"))
        answer(api.write_note(tree.checkpoint, **DOOR))

        assert names(answer(api.search_notes(tree.checkpoint, "blue door"))) == ["doors"]
        assert names(answer(api.notes(tree.checkpoint))) == ["doors"]

    def test_are_read_by_every_node_of_the_checkpoint_alike(self, tree: Tree, api: Api) -> None:
        note = answer(api.write_note(tree.checkpoint, **DOOR))

        for name in tree.names:
            claim = tree[name]
            assert ids(answer(api.notes(tree.checkpoint, claim=claim))) == [note["id"]]
            assert answer(api.get_note(tree.checkpoint, note["id"], claim=claim)) == note
            found = answer(api.search_notes(tree.checkpoint, "door", claim=claim))
            assert ids(found) == [note["id"]]

    @pytest.mark.parametrize("claim", ["exp-elsewhere.root", "x"])
    def test_are_not_read_by_a_claim_of_elsewhere(self, tree: Tree, api: Api, claim: str) -> None:
        note = answer(api.write_note(tree.checkpoint, **DOOR))

        for refused in (
            api.notes(tree.checkpoint, claim=claim),
            api.get_note(tree.checkpoint, note["id"], claim=claim),
            api.search_notes(tree.checkpoint, "door", claim=claim),
        ):
            assert (refused.status_code, refused.json()["type"]) == (
                403,
                "/problems/scope-violation",
            )

    def test_are_written_by_no_node(self, tree: Tree, api: Api) -> None:
        note = answer(api.write_note(tree.checkpoint, **DOOR))

        for refused in (
            api.write_note(tree.checkpoint, claim=tree["a"], **RATE),
            api.correct_note(tree.checkpoint, note["id"], claim=tree["a"], **RATE),
        ):
            assert (refused.status_code, refused.json()["type"]) == (
                403,
                "/problems/scope-violation",
            )
        assert names(answer(api.notes(tree.checkpoint))) == ["doors"]
        records = answer(api.access_log(tree.checkpoint))["items"]
        assert [
            (record["operation"], record["refusal"]) for record in records if record["refusal"]
        ] == [("note_write", "scope-violation")] * 2


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_node_token_reads_notes_and_writes_none(
    keyed_service: InProcessService, keyed_api: Api
) -> None:
    tree = grow_tree(keyed_api, unique_checkpoint())
    note = answer(keyed_api.write_note(tree.checkpoint, **DOOR))
    token = answer(keyed_api.token(tree["a"]))["token"]
    assert token != API_KEY

    with Api(keyed_service.base_url, bearer=token) as worker:
        assert ids(answer(worker.notes(tree.checkpoint))) == [note["id"]]
        assert answer(worker.get_note(tree.checkpoint, note["id"])) == note
        assert ids(answer(worker.search_notes(tree.checkpoint, "door"))) == [note["id"]]
        for refused in (
            worker.write_note(tree.checkpoint, **RATE),
            worker.correct_note(tree.checkpoint, note["id"], **RATE),
            worker.daily_note(tree.checkpoint, "x"),
        ):
            assert (refused.status_code, refused.json()["type"]) == (
                403,
                "/problems/forbidden-to-token",
            )


def test_what_was_read_written_and_found_is_in_the_access_log(tree: Tree, api: Api) -> None:
    note = answer(api.write_note(tree.checkpoint, **DOOR))["id"]
    new = answer(api.correct_note(tree.checkpoint, note, **DOOR | {"summary": "It is shut."}))["id"]
    answer(api.get_note(tree.checkpoint, note, claim=tree["a"]))
    answer(api.search_notes(tree.checkpoint, "door", claim=tree["a"]))
    answer(api.notes(tree.checkpoint))

    records = answer(api.access_log(tree.checkpoint))["items"]

    assert [
        (
            record["operation"],
            record["reader"],
            record["query"],
            [touched["id"] for touched in record["entries"]],
        )
        for record in reversed(records)
    ] == [
        ("note_write", None, None, [note]),
        ("note_write", None, None, [new]),
        ("archival_read", tree["a"], None, [note]),
        ("archival_search", tree["a"], "door", [new]),
        ("archival_read", None, None, [new]),
    ]
