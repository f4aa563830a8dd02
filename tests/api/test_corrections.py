"""A correction supersedes a note: the old one is kept, and out of lists and searches."""

from concurrent.futures import ThreadPoolExecutor

from tests.api.notes import DOOR, RATE, RATE_TEXT, ids
from tests.support.client import Api, answer


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
