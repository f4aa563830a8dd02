"""Which day it is: by one zone, and never by a guess."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.workspace.clock import local, zone_of
from app.workspace.errors import BadConfiguration, BadTimezone
from app.workspace.folder import open_folder


def write_settings(root: Path, text: str) -> None:
    (root / ".lineage").mkdir(exist_ok=True)
    (root / ".lineage" / "workspace.json").write_text(text)


def now_in(root: Path, instant: str) -> str:
    with open_folder(root) as folder:
        return local(datetime.fromisoformat(instant), zone_of(folder)).isoformat()


@pytest.mark.parametrize(
    ("zone", "instant", "shown"),
    [
        ("Asia/Tokyo", "2026-06-08T16:20:00+00:00", "2026-06-09T01:20:00+09:00"),
        ("America/Denver", "2026-06-09T04:05:00+00:00", "2026-06-08T22:05:00-06:00"),
        ("Europe/Berlin", "2026-10-25T00:30:00+00:00", "2026-10-25T02:30:00+02:00"),
        ("Europe/Berlin", "2026-10-25T01:30:00+00:00", "2026-10-25T02:30:00+01:00"),
        ("UTC", "2026-06-08T16:20:00+00:00", "2026-06-08T16:20:00+00:00"),
    ],
)
def test_the_settings_of_the_workspace_say_which_zone(
    tmp_path: Path, zone: str, instant: str, shown: str
) -> None:
    write_settings(tmp_path, f'{{"timezone": "{zone}", "mine": 1}}')

    assert now_in(tmp_path, instant) == shown


def test_the_environment_says_it_louder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(tmp_path, '{"timezone": "Asia/Tokyo"}')
    monkeypatch.setenv("LINEAGE_TIMEZONE", "America/Denver")

    assert now_in(tmp_path, "2026-06-09T04:05:00+00:00") == "2026-06-08T22:05:00-06:00"


@pytest.mark.parametrize("settings", [None, "{}"])
def test_without_a_word_it_is_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str | None
) -> None:
    if settings is not None:
        write_settings(tmp_path, settings)
    monkeypatch.setenv("LINEAGE_TIMEZONE", " ")

    with open_folder(tmp_path) as folder:
        assert zone_of(folder) is UTC


@pytest.mark.parametrize(
    "zone",
    ['"Asia/Tokio"', '"Asia"', '""', '"../../../etc/passwd"', '"+09:00"', "9", "null", '"\\u0000"'],
)
def test_a_misspelt_zone_is_an_error_that_says_where_it_stands(tmp_path: Path, zone: str) -> None:
    write_settings(tmp_path, f'{{"timezone": {zone}}}')

    with (
        open_folder(tmp_path) as folder,
        pytest.raises(BadTimezone, match=r"\.lineage/workspace\.json: "),
    ):
        zone_of(folder)


def test_a_misspelt_zone_of_the_environment_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(tmp_path, '{"timezone": "Asia/Tokyo"}')
    monkeypatch.setenv("LINEAGE_TIMEZONE", "Asia/Tokio")

    with open_folder(tmp_path) as folder, pytest.raises(BadTimezone, match="LINEAGE_TIMEZONE: "):
        zone_of(folder)


@pytest.mark.parametrize("settings", ["", "[]", "{", '"UTC"', "\x00"])
def test_settings_that_are_no_object_are_told(tmp_path: Path, settings: str) -> None:
    write_settings(tmp_path, settings)

    with open_folder(tmp_path) as folder, pytest.raises(BadConfiguration, match="no JSON object"):
        zone_of(folder)
