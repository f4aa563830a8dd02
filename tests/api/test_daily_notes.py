"""Daily notes: what happened, on the day that one zone decides."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.conftest import StartService
from tests.support.client import Api, answer, walk
from tests.support.tree import Tree, unique_checkpoint

ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class Clock:
    """The clock of a service of the test's own, which stands until it is set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 6, 8, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def set(self, instant: str) -> None:
        self.now = datetime.fromisoformat(instant)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def zoned(
    request: pytest.FixtureRequest, start_service: StartService, clock: Clock
) -> Iterator[Api]:
    """A service in the zone of the test's mark, on its own clock, with a checkpoint `exp1`."""
    service = start_service(timezone=ZoneInfo(request.param))
    service.app.state.services = replace(service.app.state.services, clock=clock)
    with Api(service.base_url) as api:
        answer(api.checkpoint("exp1"))
        yield api


def test_a_daily_note_says_its_day_its_time_and_its_heading(api: Api, checkpoint: str) -> None:
    note = answer(api.daily_note(checkpoint, "bf16 from now on", heading="Training"))

    assert (note["text"], note["heading"], note["words"]) == ("bf16 from now on", "Training", 4)
    assert note["date"] == answer(api.session(checkpoint))["date"]
    assert datetime.fromisoformat(note["at"]).utcoffset() is not None
    assert answer(api.daily_notes(checkpoint))["items"] == [note]


def test_they_are_listed_in_the_order_of_writing_of_a_day_or_of_all(
    api: Api, checkpoint: str
) -> None:
    for number in range(6):
        day = "2026-06-08" if number % 2 else "2026-06-09"
        answer(api.daily_note(checkpoint, f"note {number}", date=day))

    of_all = walk(lambda cursor: api.daily_notes(checkpoint, cursor=cursor, limit=4))
    of_a_day = walk(
        lambda cursor: api.daily_notes(checkpoint, date="2026-06-08", cursor=cursor, limit=2)
    )

    assert [note["text"] for note in of_all] == [f"note {number}" for number in range(6)]
    assert [note["text"] for note in of_a_day] == ["note 1", "note 3", "note 5"]
    assert answer(api.daily_notes(checkpoint, date="2026-06-10"))["items"] == []


def test_a_text_that_names_a_day_is_not_of_that_day(api: Api, checkpoint: str) -> None:
    said = '"date":"2026-06-09"'
    answer(api.daily_note(checkpoint, said, date="2026-06-08", heading=said))

    assert answer(api.daily_notes(checkpoint, date="2026-06-09"))["items"] == []


@pytest.mark.parametrize("date", ["2026-13-45", "../2026-01-01", "2026-02-29", "20260608", ""])
def test_a_day_that_no_calendar_has_is_refused(api: Api, checkpoint: str, date: str) -> None:
    written = api.daily_note(checkpoint, "x", date=date)
    listed = api.daily_notes(checkpoint, date=date)

    assert (written.status_code, written.json()["errors"][0]["loc"]) == (422, ["body", "date"])
    assert (listed.status_code, listed.json()["errors"][0]["loc"]) == (422, ["query", "date"])
    assert answer(api.daily_notes(checkpoint))["items"] == []


@pytest.mark.parametrize("heading", ["two\nlines", "", " ", "x" * 201])
def test_a_heading_is_one_line(api: Api, checkpoint: str, heading: str) -> None:
    refused = api.daily_note(checkpoint, "x", heading=heading)

    assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["body", "heading"])


def test_a_blank_text_and_a_long_one_are_refused(api: Api, checkpoint: str) -> None:
    assert api.daily_note(checkpoint, " \n").status_code == 422
    assert api.daily_note(checkpoint, "x" * 32_769).status_code == 413
    assert api.daily_note(unique_checkpoint(), "x").status_code == 404


def test_one_repeated_under_its_key_is_stored_once(api: Api, checkpoint: str) -> None:
    key = unique_checkpoint("key")

    first = api.daily_note(checkpoint, "once", key=key)
    again = api.daily_note(checkpoint, "once", key=key)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.text == first.text
    assert len(answer(api.daily_notes(checkpoint))["items"]) == 1
    other = api.daily_note(checkpoint, "twice", key=key)
    assert other.json()["type"] == "/problems/idempotency-mismatch"


def test_they_are_read_by_every_node_and_written_by_none(tree: Tree, api: Api) -> None:
    note = answer(api.daily_note(tree.checkpoint, "a blue door"))

    for name in tree.names:
        assert answer(api.daily_notes(tree.checkpoint, claim=tree[name]))["items"] == [note]
        refused = api.daily_note(tree.checkpoint, "mine", claim=tree[name])
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/scope-violation")
    assert api.daily_notes(tree.checkpoint, claim="exp-elsewhere.root").status_code == 403
    assert answer(api.daily_notes(tree.checkpoint))["items"] == [note]


def test_reads_and_writes_are_in_the_access_log(tree: Tree, api: Api) -> None:
    note = answer(api.daily_note(tree.checkpoint, "a blue door"))["id"]
    answer(api.daily_notes(tree.checkpoint, claim=tree["a"]))

    records = answer(api.access_log(tree.checkpoint))["items"]

    assert [
        (record["operation"], record["reader"], [each["id"] for each in record["entries"]])
        for record in records
    ] == [("daily_note_read", tree["a"], [note]), ("daily_note_write", None, [note])]


@ONE_DATABASE
@pytest.mark.parametrize(
    ("zoned", "instant", "date", "at"),
    [
        ("UTC", "2026-06-08T23:59:59+00:00", "2026-06-08", "2026-06-08T23:59:59+00:00"),
        ("Asia/Tokyo", "2026-06-08T16:20:00+00:00", "2026-06-09", "2026-06-09T01:20:00+09:00"),
        ("America/Denver", "2026-06-09T04:05:00+00:00", "2026-06-08", "2026-06-08T22:05:00-06:00"),
        ("Europe/Berlin", "2026-10-25T00:30:00+00:00", "2026-10-25", "2026-10-25T02:30:00+02:00"),
        ("Europe/Berlin", "2026-10-25T01:30:00+00:00", "2026-10-25", "2026-10-25T02:30:00+01:00"),
        ("Pacific/Kiritimati", "2026-06-08T10:00:00Z", "2026-06-09", "2026-06-09T00:00:00+14:00"),
    ],
    indirect=["zoned"],
)
def test_one_zone_decides_the_day_for_writing_and_for_today_alike(
    zoned: Api, clock: Clock, instant: str, date: str, at: str
) -> None:
    clock.set(instant)

    note = answer(zoned.daily_note("exp1", "written now"))
    archived = answer(zoned.write_note("exp1", title="Now", summary="Written now."))
    session = answer(zoned.session("exp1"))

    assert (note["date"], note["at"]) == (date, at)
    assert archived["date"] == session["date"] == date
    assert session["notes"] == [note] == answer(zoned.daily_notes("exp1", date=date))["items"]


@ONE_DATABASE
@pytest.mark.parametrize("zoned", ["Asia/Tokyo"], indirect=True)
def test_nothing_is_lost_across_midnight(zoned: Api, clock: Clock) -> None:
    clock.set("2026-06-08T14:59:59+00:00")
    before = answer(zoned.daily_note("exp1", "before midnight"))
    clock.set("2026-06-08T15:00:00+00:00")
    after = answer(zoned.daily_note("exp1", "after midnight"))

    assert answer(zoned.daily_notes("exp1"))["items"] == [before, after]
    assert answer(zoned.daily_notes("exp1", date="2026-06-08"))["items"] == [before]
    assert answer(zoned.session("exp1"))["notes"] == [after]


@ONE_DATABASE
@pytest.mark.parametrize("zoned", ["Asia/Tokyo"], indirect=True)
def test_a_day_given_is_the_day_whatever_the_clock_says(zoned: Api, clock: Clock) -> None:
    clock.set("2026-06-08T16:20:00+00:00")

    note = answer(zoned.daily_note("exp1", "of last week", date="2026-06-01"))

    assert (note["date"], note["at"]) == ("2026-06-01", None)
    assert answer(zoned.session("exp1"))["notes"] == []
    [found] = answer(zoned.search_recall("exp1", "last week"))["results"]
    assert found["metadata"] == {"date": "2026-06-01"}


@ONE_DATABASE
@pytest.mark.parametrize("zoned", ["Asia/Tokyo"], indirect=True)
@pytest.mark.parametrize(
    "at",
    [
        "2026-06-01T03:04:00+09:00",
        "2026-06-01T23:59:59-08:00",
        "2026-06-01T00:00:00Z",
        "2026-06-01T09:15:00.25+05:45",
    ],
)
def test_a_time_given_is_kept_as_given_and_says_the_day(zoned: Api, at: str) -> None:
    note = answer(zoned.daily_note("exp1", "early bird", at=at))
    other = answer(zoned.daily_note("exp1", "told later", at=at, date="2026-06-02"))

    assert (note["date"], note["at"]) == ("2026-06-01", at)
    assert (other["date"], other["at"]) == ("2026-06-02", at)
    assert answer(zoned.daily_notes("exp1", date="2026-06-01"))["items"] == [note]


@pytest.mark.parametrize(
    "at",
    [
        "2026-06-01T03:04:00",
        "2026-06-01T03:04+09:00",
        "2026-06-01",
        "03:04:00+09:00",
        "2026-06-01 03:04:00+09:00",
        "2026-06-01T03:04:00+09",
        "2026-06-01T03:04:00+24:00",
        "2026-06-01T24:00:00Z",
        "2026-06-31T03:04:00Z",
        "0000-01-01T00:00:00Z",
        "\uff12026-06-01T03:04:00Z",
        "2026-06-01T03:04:00Z\n",
        "yesterday",
        "",
    ],
)
def test_a_time_that_no_clock_shows_is_refused(api: Api, checkpoint: str, at: str) -> None:
    refused = api.daily_note(checkpoint, "x", at=at)

    assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["body", "at"])
    assert answer(api.daily_notes(checkpoint))["items"] == []
