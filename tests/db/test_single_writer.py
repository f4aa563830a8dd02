"""On SQLite, one process serves a file; a second is told so at its start."""

import pytest

from tests.conftest import NewStorage, StartLive, StartService

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def test_a_second_service_on_the_same_file_is_refused_with_what_to_do(
    new_storage: NewStorage, start_live: StartLive
) -> None:
    storage = new_storage()
    first = start_live(storage=storage)

    second = start_live(storage=storage, until=None)

    assert second.wait() != 0
    assert "another letta-lineage serves this SQLite database" in second.log
    assert "LINEAGE_DATA_DIR" in second.log
    assert "Traceback" not in second.log
    assert first._answers("/readyz")


def test_a_killed_service_leaves_no_lock_behind(start_live: StartLive) -> None:
    live = start_live()

    live.kill()
    live.start()

    assert live._answers("/readyz")


def test_a_stopped_service_makes_room_for_the_next(
    new_storage: NewStorage, start_service: StartService
) -> None:
    storage = new_storage()
    start_service(storage=storage).stop()

    start_service(storage=storage)
