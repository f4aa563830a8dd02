"""The archive of notes: written once, corrected by superseding, found by every node."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import API_KEY
from tests.support.client import Api, Json, answer, walk
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint

RATE: Json = {
    "title": "Learning rate",
    "summary": "Halving the learning rate cured the divergence.",
    "details": "- loss 0.31 after 500 steps",
    "tags": ["training", "rates"],
    "date": "2026-06-08",
}
RATE_TEXT = """\
# Learning rate — 2026-06-08

## Summary

Halving the learning rate cured the divergence.

## Details

- loss 0.31 after 500 steps

## Tags

training, rates
"""
DOOR: Json = {"title": "Doors", "summary": "The blue door opens.", "date": "2026-06-08"}


@pytest.fixture
def checkpoint(api: Api) -> str:
    name = unique_checkpoint()
    answer(api.checkpoint(name))
    return name


def names(body: Json) -> list[str]:
    return [item["name"] for item in body["items" if "items" in body else "results"]]


def ids(body: Json) -> list[str]:
    return [item["id"] for item in body["items" if "items" in body else "results"]]


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


class TestACorrection:
    def test_takes_the_place_of_the_note_which_stays_readable(
        self, api: Api, checkpoint: str
    ) -> None:
        old = api.write_note(checkpoint, **RATE)
        old_id = answer(old)["id"]

        corrected = api.correct_note(
            checkpoint, old_id, if_match=old.headers["ETag"], **RATE | {"details": "- loss 0.29"}
        )

        new = answer(corrected)
        assert new["ref"] == "learnings/learning-rate"
        assert (new["supersedes"], new["superseded_by"]) == ([old_id], None)
        assert ids(answer(api.notes(checkpoint))) == [new["id"]]
        shown = api.get_note(checkpoint, old_id)
        assert answer(shown)["superseded_by"] == new["id"]
        assert answer(shown)["text"] == RATE_TEXT
        assert shown.headers["ETag"] == old.headers["ETag"] == f'"{old_id}"'
        assert corrected.headers["ETag"] == f'"{new["id"]}"'

    def test_is_found_and_the_former_note_is_not(self, api: Api, checkpoint: str) -> None:
        for number in range(12):
            answer(api.write_note(checkpoint, **DOOR | {"title": f"Door {number}"}))
        found = answer(api.search_notes(checkpoint, "The blue door opens.", limit=100))
        middle = found["results"][6]

        new = answer(api.correct_note(checkpoint, middle["id"], **RATE))

        after = ids(answer(api.search_notes(checkpoint, "The blue door opens.", limit=100)))
        assert sorted(after) == sorted({*ids(found), new["id"]} - {middle["id"]})
        assert after[:-1] == [each for each in ids(found) if each != middle["id"]]
        (best,) = ids(answer(api.search_notes(checkpoint, "divergence cured", limit=1)))
        assert best == new["id"]

    def test_of_a_superseded_note_is_one_of_the_note_that_counts(
        self, api: Api, checkpoint: str
    ) -> None:
        first = answer(api.write_note(checkpoint, **RATE))["id"]
        second = answer(api.correct_note(checkpoint, first, **RATE | {"summary": "Two."}))["id"]

        third = answer(
            api.correct_note(
                checkpoint, first, if_match=f'"{second}"', **RATE | {"summary": "Three."}
            )
        )

        assert third["supersedes"] == [second]
        assert answer(api.get_note(checkpoint, second))["superseded_by"] == third["id"]
        assert ids(answer(api.notes(checkpoint))) == [third["id"]]

    def test_made_on_the_text_of_a_superseded_note_is_told_of_the_one_that_counts(
        self, api: Api, checkpoint: str
    ) -> None:
        first = answer(api.write_note(checkpoint, **RATE))["id"]
        second = answer(api.correct_note(checkpoint, first, **RATE | {"summary": "Two."}))["id"]
        third = answer(api.correct_note(checkpoint, second, **RATE | {"summary": "Three."}))["id"]

        for old, other in ((first, second), (second, first), (first, third), (second, third)):
            seen = api.get_note(checkpoint, old).headers["ETag"]
            for named in (old, other):
                refused = api.correct_note(checkpoint, named, if_match=seen, **DOOR)
                assert (refused.status_code, refused.headers["ETag"]) == (412, f'"{third}"')
                assert refused.json()["etag"] == f'"{third}"'
        assert ids(answer(api.notes(checkpoint))) == [third]

    def test_without_the_version_it_is_made_on_is_428(self, api: Api, checkpoint: str) -> None:
        note = api.write_note(checkpoint, **RATE)

        refused = api.correct_note(checkpoint, answer(note)["id"], if_match=None, **DOOR)

        assert (refused.status_code, refused.json()["type"]) == (
            428,
            "/problems/precondition-required",
        )
        assert refused.headers["ETag"] == note.headers["ETag"]
        assert answer(api.notes(checkpoint))["items"] == [answer(note)]

    def test_of_two_with_one_version_one_is_told(self, api: Api, checkpoint: str) -> None:
        note = api.write_note(checkpoint, **RATE)
        note_id, etag = answer(note)["id"], note.headers["ETag"]

        def correct(number: int) -> int:
            sent = RATE | {"summary": f"Correction {number}."}
            return api.correct_note(checkpoint, note_id, if_match=etag, **sent).status_code

        with ThreadPoolExecutor(6) as pool:
            statuses = list(pool.map(correct, range(6)))

        assert sorted(statuses) == [200] + [412] * 5
        (counting,) = answer(api.notes(checkpoint))["items"]
        assert counting["supersedes"] == [note_id]
        late = api.correct_note(checkpoint, note_id, if_match=etag, **DOOR)
        assert late.json()["type"] == "/problems/version-mismatch"
        assert late.headers["ETag"] == f'"{counting["id"]}"'

    def test_of_whatever_counts_loses_none_of_many(self, api: Api, checkpoint: str) -> None:
        note = answer(api.write_note(checkpoint, **RATE))["id"]

        def correct(number: int) -> str:
            sent = RATE | {"summary": f"Correction {number}."}
            corrected: str = answer(api.correct_note(checkpoint, note, **sent))["id"]
            return corrected

        with ThreadPoolExecutor(6) as pool:
            made = list(pool.map(correct, range(6)))

        (counting,) = answer(api.notes(checkpoint))["items"]
        chain = [counting["id"]]
        while before := answer(api.get_note(checkpoint, chain[-1]))["supersedes"]:
            chain += before
        assert sorted(chain) == sorted([*made, note])

    def test_that_says_the_same_changes_nothing(self, api: Api, checkpoint: str) -> None:
        note = answer(api.write_note(checkpoint, **RATE))

        assert answer(api.correct_note(checkpoint, note["id"], **RATE)) == note
        assert answer(api.get_checkpoint(checkpoint))["entries"] == 1

    def test_keeps_topic_name_and_day_where_they_are_left_out(
        self, api: Api, checkpoint: str
    ) -> None:
        note = answer(api.write_note(checkpoint, "people", name="ada", **RATE))

        new = answer(
            api.correct_note(checkpoint, note["id"], title="Ada L.", summary="She wrote it.")
        )

        assert (new["ref"], new["date"], new["details"]) == ("people/ada", "2026-06-08", "")

    def test_may_move_the_note_to_another_name_that_is_free(
        self, api: Api, checkpoint: str
    ) -> None:
        answer(api.write_note(checkpoint, "people", name="ada", **RATE))
        note = answer(api.write_note(checkpoint, name="x", **DOOR))

        new = answer(api.correct_note(checkpoint, note["id"], topic="people", name="ada", **DOOR))

        assert new["ref"] == "people/ada-2"
        assert answer(api.write_note(checkpoint, name="x", **RATE))["name"] == "x"

    def test_that_breaks_a_rule_is_refused_before_the_version_is_looked_at(
        self, api: Api, checkpoint: str
    ) -> None:
        note = answer(api.write_note(checkpoint, **RATE))["id"]

        refused = api.correct_note(checkpoint, note, if_match=None, name="../x", **DOOR)

        assert refused.status_code == 422

    def test_counts_no_pending_entry(self, api: Api, checkpoint: str) -> None:
        note = answer(api.write_note(checkpoint, **RATE))["id"]
        answer(api.correct_note(checkpoint, note, **DOOR))

        counts = answer(api.get_checkpoint(checkpoint))

        assert (counts["entries"], counts["pending"], counts["refused"]) == (2, 0, 0)


class TestCoresReferencesToANote:
    """They follow a correction that gives the note another topic or name."""

    FORMER, NOW = "learnings/learning-rate", "decisions/rates"
    KEEPS = "- See archival: learnings/learning-rate-2\n- learnings/learning-rate in prose\n"

    @pytest.fixture
    def note(self, api: Api, checkpoint: str) -> str:
        note_id: str = answer(api.write_note(checkpoint, **RATE))["id"]
        answer(
            api.put_core_memory(
                checkpoint,
                human="Ada",
                active_context=f"{self.KEEPS}- See archival: {self.FORMER}\n",
                quick_reference=f"Halve it (See archival: {self.FORMER})",
            )
        )
        return note_id

    def renamed(self, api: Api, checkpoint: str, note: str, **change: str) -> Json:
        sent = RATE | {"topic": "decisions", "name": "rates"} | change
        return answer(api.correct_note(checkpoint, note, **sent))

    def test_follow_it_and_leave_the_old_name_to_others(
        self, api: Api, checkpoint: str, note: str
    ) -> None:
        assert self.renamed(api, checkpoint, note)["ref"] == self.NOW

        core = answer(api.core_memory(checkpoint))
        assert core["active_context"] == f"{self.KEEPS}- See archival: {self.NOW}\n"
        assert core["quick_reference"] == f"Halve it (See archival: {self.NOW})"
        other = answer(api.write_note(checkpoint, **RATE | {"summary": "Another."}))
        assert other["ref"] == self.FORMER
        assert answer(api.core_memory(checkpoint)) == core

    def test_follow_it_to_the_name_that_was_free(
        self, api: Api, checkpoint: str, note: str
    ) -> None:
        answer(api.write_note(checkpoint, "decisions", name="rates", **DOOR))

        self.renamed(api, checkpoint, note)

        core = answer(api.core_memory(checkpoint))
        assert core["quick_reference"] == f"Halve it (See archival: {self.NOW}-2)"

    @pytest.mark.parametrize(
        "text",
        [
            "- rates\r\n  - See archival: {}\r\n",
            "- rates are low\n  See archival: {}\n- x",
            "> See archival: {}",
            "See archival: {}  \nSee archival: {}",
            "rates (See archival: {}), and more",
            "1. See archival:\n   {}",
        ],
    )
    def test_follow_it_wherever_they_stand(
        self, api: Api, checkpoint: str, note: str, text: str
    ) -> None:
        answer(api.put_core_memory(checkpoint, human=text.replace("{}", self.FORMER)))

        self.renamed(api, checkpoint, note)

        human = answer(api.core_memory(checkpoint))["human"]
        assert " ".join(human.split()) == " ".join(text.replace("{}", self.NOW).split())

    def test_are_edits_of_their_sections_and_of_no_other(
        self, api: Api, checkpoint: str, note: str
    ) -> None:
        seen = {
            name: api.core_section(checkpoint, name).headers["ETag"]
            for name in ("user", "active-context", "quick-reference")
        }

        self.renamed(api, checkpoint, note)

        statuses = {
            name: api.put_core_section(checkpoint, name, "mine", if_match=etag).status_code
            for name, etag in seen.items()
        }
        assert statuses == {"user": 200, "active-context": 412, "quick-reference": 412}
        written = [
            record["operation"]
            for record in reversed(answer(api.access_log(checkpoint))["items"])
            if record["operation"] in ("core_write", "note_write")
        ]
        assert written == ["note_write", "core_write", "note_write", "core_write", "core_write"]

    def test_stay_and_so_does_the_version_where_the_name_does(
        self, api: Api, checkpoint: str, note: str
    ) -> None:
        before = api.core_memory(checkpoint)

        self.renamed(api, checkpoint, note, topic="learnings", name="learning-rate", summary="Two.")

        after = api.core_memory(checkpoint)
        assert (after.text, after.headers["ETag"]) == (before.text, before.headers["ETag"])

    def test_stay_where_another_note_has_that_name_too(
        self, api: Api, checkpoint: str, note: str
    ) -> None:
        snapshot = api.backup(checkpoint).content
        self.renamed(api, checkpoint, note, topic="learnings", name="learning-rate", summary="Two.")
        there = unique_checkpoint()
        answer(api.restore(there, snapshot))
        answer(api.correct_note(there, note, **RATE | {"summary": "Three."}))
        answer(api.restore(there, api.backup(checkpoint).content, on_conflict="merge"))
        first, second = answer(api.notes(there))["items"]
        assert first["ref"] == second["ref"] == self.FORMER
        before = answer(api.core_memory(there))

        self.renamed(api, there, second["id"])

        assert answer(api.core_memory(there)) == before

    def test_of_a_section_that_has_no_room_for_it_let_the_correction_be_refused(
        self, api: Api, checkpoint: str, note: str
    ) -> None:
        line = f"\n\nSee archival: {self.FORMER}"
        full = "x" * (32_768 - len(line)) + line
        answer(api.put_core_memory(checkpoint, persona=full))
        before = answer(api.core_memory(checkpoint))

        refused = api.correct_note(checkpoint, note, **RATE, name="a-longer-name-than-before")

        assert (refused.status_code, refused.json()["type"]) == (413, "/problems/too-large")
        assert ids(answer(api.notes(checkpoint))) == [note]
        assert answer(api.core_memory(checkpoint)) == before

    def test_carry_no_credential_into_core(self, api: Api, checkpoint: str, note: str) -> None:
        secret = "ghp_" + "a1B2" * 9

        refused = api.correct_note(checkpoint, note, **RATE, name=secret)

        assert refused.json()["type"] == "/problems/credential-in-core"
        assert secret not in api.core_memory(checkpoint).text
        assert ids(answer(api.notes(checkpoint))) == [note]

    def test_lose_no_edit_that_somebody_makes_at_the_same_time(
        self, api: Api, checkpoint: str, note: str
    ) -> None:
        def append(number: int) -> None:
            line = {"append": f"- line {number}"}
            answer(api.edit_core_section(checkpoint, "active-context", line, if_match="*"))

        with ThreadPoolExecutor(4) as pool:
            edits = [pool.submit(append, number) for number in range(8)]
            moves = [
                pool.submit(self.renamed, api, checkpoint, note, name=f"n{number}")
                for number in range(4)
            ]
        for move in moves:
            move.result()
        for edit in edits:
            edit.result()

        (counting,) = answer(api.notes(checkpoint))["items"]
        lines = answer(api.core_memory(checkpoint))["active_context"].splitlines()
        assert lines[:3] == [*self.KEEPS.splitlines(), f"- See archival: {counting['ref']}"]
        assert sorted(lines[3:]) == [f"- line {number}" for number in range(8)]


CORE = "- Halving the learning rate cured it.\n- loss 0.31\n"
IN_CORE: Json = {
    "title": "Rates",
    "summary": "Rates.",
    "details": "* Halving the learning\n  rate cured it.",
}


class TestAFactInCore:
    def test_is_not_written_to_the_archive_too(self, api: Api, checkpoint: str) -> None:
        answer(api.put_core_memory(checkpoint, active_context=CORE))

        refused = api.write_note(checkpoint, **IN_CORE)

        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/duplicate-fact")
        assert "Active Context" in refused.json()["where"]
        assert answer(api.notes(checkpoint))["items"] == []

    def test_does_not_keep_the_first_answer_from_being_given_again(
        self, api: Api, checkpoint: str
    ) -> None:
        key = unique_checkpoint("key")
        first = api.write_note(checkpoint, key=key, **IN_CORE)
        answer(api.correct_note(checkpoint, answer(first)["id"], **DOOR))
        answer(api.put_core_memory(checkpoint, active_context=CORE))

        again = api.write_note(checkpoint, key=key, **IN_CORE)

        assert (again.status_code, again.text) == (201, first.text)
        assert api.write_note(checkpoint, **IN_CORE).status_code == 409

    def test_is_fine_in_a_whole_text_which_is_somebodys_file(
        self, api: Api, checkpoint: str
    ) -> None:
        text = answer(api.write_note(checkpoint, **IN_CORE))["text"]
        answer(api.put_core_memory(checkpoint, active_context=CORE))

        again = api.write_note(checkpoint, text=text, name="again")

        assert again.status_code == 201

    def test_is_fine_beside_one_that_is_new(self, api: Api, checkpoint: str) -> None:
        answer(api.put_core_memory(checkpoint, active_context=CORE))
        more = IN_CORE | {"details": IN_CORE["details"] + "\n- warm-up was not needed"}

        assert api.write_note(checkpoint, **more).status_code == 201

    def test_does_not_keep_a_note_that_said_it_before_from_being_corrected(
        self, api: Api, checkpoint: str
    ) -> None:
        note = answer(api.write_note(checkpoint, **IN_CORE))
        answer(api.put_core_memory(checkpoint, active_context=CORE))

        assert api.write_note(checkpoint, **IN_CORE).status_code == 200
        tagged = api.correct_note(checkpoint, note["id"], **IN_CORE, tags=["rates"])
        assert tagged.status_code == 200


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
