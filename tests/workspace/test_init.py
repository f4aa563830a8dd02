"""Making a workspace: what is missing, and nothing over what is there."""

import json
import os
from pathlib import Path

import pytest

from app.workspace import init
from app.workspace.errors import BadTimezone, LinkRefused, NotPlain, NoWorkspace
from tests.workspace.tree import contents, everything

TEMPLATE = """# Core Memory

## Identity

## User

## Active Context

## Quick Reference
"""


def test_a_new_workspace_has_its_core_its_topics_and_its_settings(tmp_path: Path) -> None:
    root = tmp_path / "workspace"

    init(root)

    assert (root / "memory/core.md").read_text() == TEMPLATE
    assert sorted(path.name for path in (root / "memory/archival").iterdir()) == [
        "decisions",
        "learnings",
        "people",
        "projects",
        "reference",
    ]
    assert json.loads((root / ".lineage/workspace.json").read_text()) == {"timezone": "UTC"}


def test_a_folder_made_by_hand_keeps_every_byte_of_it(tmp_path: Path) -> None:
    (tmp_path / "memory" / "archival" / "people").mkdir(parents=True)
    (tmp_path / "memory" / "core.md").write_bytes(b"my own core\r\nwithout an end")
    (tmp_path / "memory" / "2026-03-14.md").write_bytes(b"\xff\xfe")
    (tmp_path / "memory" / "archival" / "people" / "ada.md").write_text("Ada")
    (tmp_path / "README.md").write_text("mine")
    before = contents(tmp_path)

    init(tmp_path)

    assert contents(tmp_path) == before
    assert (tmp_path / "memory/archival/learnings").is_dir()


def test_a_second_init_changes_nothing(tmp_path: Path) -> None:
    init(tmp_path, timezone="Asia/Tokyo")
    before = everything(tmp_path)

    assert init(tmp_path, timezone="Europe/Berlin").changes == ()

    assert everything(tmp_path) == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_zone_that_the_workspace_does_not_take_is_told(tmp_path: Path, dry_run: bool) -> None:  # noqa: FBT001  (a parameter)
    settings = tmp_path / ".lineage" / "workspace.json"
    init(tmp_path, timezone="Asia/Tokyo")

    told = init(tmp_path, timezone="Europe/Berlin", dry_run=dry_run)

    assert told.report == ("Its zone stays Asia/Tokyo, by .lineage/workspace.json.",)
    assert init(tmp_path, timezone="Asia/Tokyo", dry_run=dry_run).report == ()
    assert init(tmp_path, dry_run=dry_run).report == ()
    settings.write_text("{}")
    told = init(tmp_path, timezone="Europe/Berlin", dry_run=dry_run)
    assert told.report == ("Its zone stays UTC, by .lineage/workspace.json.",)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_zone_that_the_environment_outdoes_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dry_run: bool,  # noqa: FBT001  (a parameter)
) -> None:
    monkeypatch.setenv("LINEAGE_TIMEZONE", "Asia/Tokyo")
    wins = "Its zone is Asia/Tokyo as long as LINEAGE_TIMEZONE says so."

    made = init(tmp_path / "a", timezone="Europe/Berlin", dry_run=dry_run)

    assert made.report[-1] == wins
    init(tmp_path / "b", timezone="America/Denver")
    again = init(tmp_path / "b", timezone="Europe/Berlin", dry_run=dry_run)
    stays = "Its zone stays America/Denver, by .lineage/workspace.json."
    assert again.report == (stays, wins)


@pytest.mark.parametrize("place", ["", "workspace"])
def test_a_dry_run_shows_what_would_be_made_and_makes_nothing(tmp_path: Path, place: str) -> None:
    before = everything(tmp_path)

    outcome = init(tmp_path / place, dry_run=True)

    assert everything(tmp_path) == before
    assert "--- /dev/null\n+++ b/memory/core.md\n@@ -0,0 +1,9 @@\n+# Core Memory\n" in outcome.diff
    assert "Makes memory/archival/people/." in outcome.report
    assert init(tmp_path / place).report == outcome.report


def test_the_zone_is_that_of_the_call_or_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_TIMEZONE", "Asia/Tokyo")

    init(tmp_path / "a")
    init(tmp_path / "b", timezone="America/Denver")

    zones = [(tmp_path / name / ".lineage/workspace.json").read_text() for name in ("a", "b")]
    assert [json.loads(zone)["timezone"] for zone in zones] == ["Asia/Tokyo", "America/Denver"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_misspelt_zone_makes_nothing(tmp_path: Path, dry_run: bool) -> None:  # noqa: FBT001  (a parameter)
    with pytest.raises(BadTimezone, match="Asia/Tokio"):
        init(tmp_path / "workspace", timezone="Asia/Tokio", dry_run=dry_run)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("place", ["memory", "memory/archival", "memory/archival/people"])
def test_a_link_in_the_place_of_a_folder_is_refused(
    tmp_path: Path,
    place: str,
    dry_run: bool,  # noqa: FBT001  (a parameter)
) -> None:
    outside, root = tmp_path / "outside", tmp_path / "workspace"
    outside.mkdir()
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(outside)
    before = everything(tmp_path)

    with pytest.raises(LinkRefused, match=f"{place} is a link"):
        init(root, dry_run=dry_run)

    assert everything(tmp_path) == before


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file")

    with pytest.raises(NotPlain, match="memory is no plain folder"):
        init(tmp_path)


@pytest.mark.parametrize("place", ["file", "none/below", "file/below"])
def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NoWorkspace, match="cannot be made"):
        init(tmp_path / place)

    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208  (names are what is compared)
