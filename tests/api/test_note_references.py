"""Core's references to a note, and facts that are in core already."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.notes import DOOR, RATE, ids
from tests.support.client import Api, Json, answer
from tests.support.tree import unique_checkpoint


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
