"""Files that look like notes or days and are none: each is named once, with the reason."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.workspace import Outcome, consolidate, heartbeat, promote, trim
from app.workspace.folder import open_folder
from app.workspace.reading import MAX_ENTRIES, MAX_FOLDERS, MAX_TOLD, read_workspace
from tests.cli.running import run
from tests.workspace.tree import ROOT, bare, contents, everything

ENDING = "its ending is not .md"
NO_DAY = "not named as a day is (YYYY-MM-DD)"
NO_TOPIC = "in no topic's folder"
TOO_DEEP = "in a folder within a topic's"
NO_PLACE = "in no folder of notes"
NOT_PLAIN = "a link, or no plain file"

LEFT_OUT = {
    "memory/archival/projects/N.MD": ENDING,
    "memory/archival/projects/n.markdown": ENDING,
    "memory/2026-03-04.Md": ENDING,
    "memory/archival/projects/sub/n.md": TOO_DEEP,
    "memory/archival/projects/sub/and/deeper/N.MD": TOO_DEEP,
    "memory/archival/stray.md": NO_TOPIC,
    "memory/archival/unknowntopic/x.md": NO_TOPIC,
    "memory/archival/unknowntopic/sub/x.md": NO_TOPIC,
    "memory/archival/Projects/x.md": NO_TOPIC,
    "memory/2026-3-4.md": NO_DAY,
    "memory/2026-13-45.md": NO_DAY,
    "memory/plan.md": NO_DAY,
    "memory/2026/2026-03-04.md": NO_PLACE,
    "memory/Archival/projects/n.md": NO_PLACE,
}
SOMETHING_ELSE = [
    "memory/session.jsonl",
    "memory/archival/projects/picture.png",
    "memory/archival/projects/README",
    "memory/archival/.obsidian/plugins/x.md",
    "memory/archival/projects/.trash/x.md",
    "memory/archival/projects/._ada.md",
    "memory/.git/x.md",
    "memory/.hidden.md",
    "README.md",
    "docs/x.md",
]
MOVEMENTS: dict[str, Callable[[Path], Outcome]] = {
    "consolidate": consolidate,
    "trim": trim,
    "heartbeat": heartbeat,
    "a dry run": lambda root: heartbeat(root, dry_run=True),
    "promote": lambda root: promote(root, "people/ada"),
}


def put(root: Path, path: str, data: bytes = b"Decision: kept") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


def skipped(root: Path) -> tuple[str, ...]:
    with open_folder(root) as folder:
        return read_workspace(folder).skipped


@pytest.mark.parametrize(("path", "reason"), LEFT_OUT.items())
def test_a_file_that_looks_like_a_note_or_a_day_and_is_none_is_told_with_the_reason(
    workspace: Path, path: str, reason: str
) -> None:
    put(workspace, path)

    assert skipped(workspace) == (f"{path}: {reason}; left as it is.",)


@pytest.mark.parametrize("path", SOMETHING_ELSE)
def test_a_file_that_is_plainly_something_else_is_not_told(workspace: Path, path: str) -> None:
    put(workspace, path)

    assert skipped(workspace) == ()


def test_notes_days_and_core_are_not_told(workspace: Path) -> None:
    for path in ("memory/2026-03-04.md", "memory/archival/projects/n.md"):
        put(workspace, path)

    assert skipped(workspace) == ()


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_every_movement_tells_them_once_and_leaves_them_alone(
    workspace: Path, movement: str
) -> None:
    put(workspace, "memory/archival/people/ada.md", b"# Ada\n\nLikes tea\n")
    for path in LEFT_OUT:
        put(workspace, path)

    outcome = MOVEMENTS[movement](workspace)

    assert sorted(told.partition(": ")[0] for told in outcome.skipped) == sorted(LEFT_OUT)
    after = contents(workspace)
    assert {after[path] for path in LEFT_OUT} == {b"Decision: kept"}


@pytest.mark.parametrize("script", ["consolidate.py", "core-trim.py"])
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_the_scripts_tell_them(workspace: Path, script: str, more: list[str]) -> None:
    put(workspace, "memory/2026-3-4.md")
    code = f"import runpy; runpy.run_path({str(ROOT / 'scripts' / script)!r}, run_name='__main__')"

    done = bare(code, "--workspace", str(workspace), *more)

    assert done.stderr == f"Skipped memory/2026-3-4.md: {NO_DAY}; left as it is.\n"


def test_the_command_tells_them(workspace: Path) -> None:
    put(workspace, "memory/archival/stray.md")
    told = f"memory/archival/stray.md: {NO_TOPIC}; left as it is."

    assert run("workspace", "heartbeat", str(workspace)).stderr == f"Skipped {told}\n"
    done = run("workspace", "heartbeat", str(workspace), "--json")
    assert json.loads(done.stdout)["skipped"] == [told]


def test_what_is_below_a_link_is_not_looked_at(workspace: Path, outside: Path) -> None:
    (workspace / "memory/archival/projects/sub").mkdir()
    for path in ("memory/sub", "memory/archival/mine", "memory/archival/projects/sub/in"):
        (workspace / path).symlink_to(outside)
    (workspace / "memory/x.MD").symlink_to(outside / "secret.md")
    before = everything(outside)

    told = skipped(workspace)

    assert sorted(told) == [
        f"memory/archival/mine: {NOT_PLAIN}; left as it is.",
        f"memory/archival/projects/sub/in: {NOT_PLAIN}; left as it is.",
        f"memory/x.MD: {NOT_PLAIN}; left as it is.",
    ]
    assert everything(outside) == before


@pytest.mark.parametrize("path", ["memory/2026-03-04.md", "memory/archival/projects/n.md"])
def test_a_folder_with_the_name_of_a_day_or_a_note_is_told(workspace: Path, path: str) -> None:
    put(workspace, f"{path}/inside.md")

    assert skipped(workspace) == (f"{path}: {NOT_PLAIN}; left as it is.",)


def test_a_name_that_no_path_can_hold_is_told_as_python_writes_it(workspace: Path) -> None:
    put(workspace, "memory/2026-03-04\n.md")

    assert skipped(workspace) == (f"memory/'2026-03-04\\n.md': {NOT_PLAIN}; left as it is.",)


def test_a_folder_of_others_that_the_system_refuses_is_told_and_stops_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "memory/private").mkdir()
    opened = os.open

    def denied(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "private":
            raise PermissionError(13, "Permission denied", "/secret/place")
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", denied)

    assert skipped(workspace) == ("memory/private: Permission denied.",)


def test_of_very_many_the_first_are_named_and_the_others_counted(workspace: Path) -> None:
    for number in range(MAX_TOLD + 1_500):
        put(workspace, f"memory/archival/projects/n{number:05}.MD")

    *named, last = skipped(workspace)

    assert len(named) == MAX_TOLD
    assert last == "memory: 1,500 more are left as they are."


def test_folders_without_end_are_looked_into_up_to_a_limit_and_that_is_told(
    workspace: Path,
) -> None:
    deep = "memory/archival/projects/" + "d/" * MAX_FOLDERS
    put(workspace, f"{deep}n.md")
    put(workspace, f"{deep}d/n.md")

    near, far = skipped(workspace)

    assert near == f"{deep}n.md: {TOO_DEEP}; left as it is."
    assert far == f"{deep}d: one folder too many; this one and further ones are not looked into."


def test_of_a_folder_of_others_with_very_many_files_that_is_told(workspace: Path) -> None:
    for number in range(MAX_ENTRIES + 1):
        put(workspace, f"memory/data/{number}.txt")

    assert skipped(workspace) == (
        f"memory/data: more than {MAX_ENTRIES:,} files; the others are not looked at.",
    )


def test_a_topic_of_very_many_notes_is_read_whole(workspace: Path) -> None:
    for number in range(MAX_ENTRIES + 1):
        put(workspace, f"memory/archival/projects/{number}.md")

    with open_folder(workspace) as folder:
        reading = read_workspace(folder)

    assert (len(reading.notes), reading.skipped) == (MAX_ENTRIES + 1, ())
