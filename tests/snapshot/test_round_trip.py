"""A checkpoint that goes to another service, on another database, and back, stays what it was."""

from collections.abc import Iterator

import pytest

from tests.conftest import SharedServices
from tests.snapshot.files import header, node, records, sealed, unpacked
from tests.snapshot.sample import fill, portrait
from tests.support.client import Api, answer
from tests.support.tree import unique_checkpoint


@pytest.fixture
def lite(sqlite_services: SharedServices) -> Iterator[Api]:
    with Api(sqlite_services.get().base_url) as api:
        yield api


@pytest.fixture
def postgres_api(postgresql_services: SharedServices) -> Iterator[Api]:
    with Api(postgresql_services.get().base_url) as api:
        yield api


def test_from_sqlite_to_postgresql_and_back_nothing_is_lost(lite: Api, postgres_api: Api) -> None:
    home = unique_checkpoint()
    fill(lite, home)
    before = portrait(lite, home)
    first = lite.backup(home).content

    answer(postgres_api.restore(home, first))
    assert portrait(postgres_api, home) == before
    second = postgres_api.backup(home).content
    assert second == first

    assert lite.purge(home).is_success
    answer(lite.restore(home, second))
    assert portrait(lite, home) == before
    assert lite.backup(home).content == first


def test_two_backups_of_the_same_checkpoint_are_the_same_bytes(api: Api) -> None:
    checkpoint = unique_checkpoint()
    fill(api, checkpoint)

    assert api.backup(checkpoint).content == api.backup(checkpoint).content


def test_a_restore_counts_what_it_stored(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    fill(api, home)
    snapshot = api.backup(home).content
    kinds = [line["kind"] for line in records(snapshot)]

    restored = answer(api.restore(other, snapshot))

    assert restored == {
        "checkpoint": other,
        "restored": {
            "nodes": kinds.count("node"),
            "entries": kinds.count("node_scope") + kinds.count("react_step"),
            "blocks": 3,
        },
        "skipped": 0,
        "conflicts": 0,
        "ignored": 0,
    }


def test_a_restore_into_another_checkpoint_takes_its_name_and_stays_there(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    fill(api, home)
    before = portrait(api, home)

    answer(api.restore(other, api.backup(home).content))

    assert portrait(api, other) == before
    assert portrait(api, home) == before


def test_the_checkpoints_own_time_does_not_travel(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    fill(api, home)

    answer(api.restore(other, api.backup(home).content))

    made = [answer(api.get_checkpoint(name))["created_at"] for name in (home, other)]
    assert made[0] < made[1]


def test_a_sealed_node_stays_sealed(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    fill(api, home)

    answer(api.restore(other, api.backup(home).content))

    refused = api.write(f"{other}.odd", "one more")
    assert refused.status_code == 409
    assert refused.json()["type"] == "/problems/node-sealed"


def test_work_goes_on_behind_what_was_restored(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    fill(api, home)
    answer(api.restore(other, api.backup(home).content))
    before = portrait(api, other)["entries"]["root"]

    written = answer(api.write(f"{other}.root", "it goes on"))

    after = portrait(api, other)["entries"]["root"]
    assert [item["id"] for item in after] == [item["id"] for item in before] + [written["id"]]


def test_tokens_and_the_access_log_stay_where_they_are(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    fill(api, home)
    token = answer(api.token(f"{home}.root"))["token"]
    snapshot = api.backup(home).content

    answer(api.restore(other, snapshot))

    assert token not in b"".join(unpacked(snapshot)).decode()
    assert answer(api.access_log(other))["items"] == []


def test_an_empty_checkpoint_has_a_snapshot_too(api: Api) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    answer(api.checkpoint(home))
    snapshot = api.backup(home).content
    assert [line["kind"] for line in records(snapshot)] == ["header", "end"]

    assert answer(api.restore(other, snapshot))["restored"]["nodes"] == 0
    assert api.get_checkpoint(other).status_code == 200


def test_an_answer_says_what_file_it_is(api: Api) -> None:
    home = unique_checkpoint()
    answer(api.checkpoint(home))

    response = api.backup(home)

    assert response.headers["content-type"] == "application/gzip"
    assert "memory_backup.jsonl.gz" in response.headers["content-disposition"]
    assert int(response.headers["content-length"]) == len(response.content)


def test_there_is_no_snapshot_of_an_unknown_checkpoint(api: Api) -> None:
    assert api.backup(unique_checkpoint()).status_code == 404


@pytest.mark.parametrize(
    "instant",
    [
        "0001-01-01T00:00:00.000001Z",
        "1969-12-31T23:59:59.999999Z",
        "2026-05-02T13:00:00.123457Z",
        "2242-03-16T12:56:31.999999Z",
        "2242-03-16T12:56:33.000001Z",
        "9999-12-31T23:59:59.999999Z",
    ],
)
def test_every_microsecond_that_is_taken_travels(api: Api, instant: str) -> None:
    home, other = unique_checkpoint(), unique_checkpoint()
    answer(api.restore(home, sealed([header(), node("root", created_at=instant)])))

    snapshot = api.backup(home).content
    answer(api.restore(other, snapshot))

    assert answer(api.get_node(f"{home}.root"))["created_at"] == instant
    assert answer(api.get_node(f"{other}.root"))["created_at"] == instant
    assert unpacked(api.backup(other).content)[1] == unpacked(snapshot)[1]
