"""On SQLite, one process serves a file; a second is told so at its start."""

from pathlib import Path

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


def test_another_name_of_the_same_file_is_the_same_database(
    new_storage: NewStorage, start_live: StartLive, tmp_path: Path
) -> None:
    storage = new_storage()
    start_live(storage=storage)
    database = storage.data_dir / "lineage.db"
    (tmp_path / "soft.db").symlink_to(database)
    by_link = f"sqlite:///{tmp_path / 'soft.db'}"

    second = start_live(storage=new_storage(), until=None, LINEAGE_DATABASE_URL=by_link)
    assert second.wait() != 0
    assert "another letta-lineage serves this SQLite database" in second.log

    (tmp_path / "hard.db").hardlink_to(database)
    by_link = f"sqlite:///{tmp_path / 'hard.db'}"
    third = start_live(storage=new_storage(), until=None, LINEAGE_DATABASE_URL=by_link)
    assert third.wait() != 0
    assert "has a second name" in third.log
