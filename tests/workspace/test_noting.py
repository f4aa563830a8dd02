"""Daily notes on a folder: each once, on the right day, and no one's words lost."""

import datetime as dt
import signal
import subprocess
import time
from pathlib import Path

import pytest

from app.lineage.errors import InvalidInput
from app.workspace import note
from app.workspace.errors import (
    BadInput,
    BadTimezone,
    ChangedMeanwhile,
    LinkRefused,
    NotText,
    NoWorkspace,
)
from app.workspace.writer import Writer
from tests.workspace.tree import BARE, ROOT, contents, everything

NOON = dt.datetime(2026, 3, 14, 12, 30, tzinfo=dt.UTC)
DAY = "memory/2026-03-14.md"


def in_zone(workspace: Path, zone: str) -> None:
    (workspace / ".lineage" / "workspace.json").write_text(f'{{"timezone": "{zone}"}}')


def test_a_note_starts_the_file_of_its_day(workspace: Path) -> None:
    note(workspace, "the loss fell", now=NOON)

    assert (workspace / DAY).read_text() == "# 2026-03-14\n\n- 12:30+00:00 the loss fell\n"


def test_a_note_is_added_at_the_end(workspace: Path) -> None:
    note(workspace, "first", now=NOON)
    note(workspace, "second\nwith more", now=NOON + dt.timedelta(hours=1))

    assert (workspace / DAY).read_text() == (
        "# 2026-03-14\n\n- 12:30+00:00 first\n- 13:30+00:00 second\n  with more\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# 2026-03-14\n\n- old", "# 2026-03-14\n\n- old\n- 12:30+00:00 new\n"),
        ("- old\r\n- older", "- old\r\n- older\r\n- 12:30+00:00 new\r\n"),
        ("some prose\n", "some prose\n\n- 12:30+00:00 new\n"),
        ("\ufeff- old\n", "\ufeff- old\n- 12:30+00:00 new\n"),
    ],
)
def test_what_is_there_keeps_its_bytes_and_its_line_ends(
    workspace: Path, before: str, after: str
) -> None:
    (workspace / DAY).write_bytes(before.encode())

    note(workspace, "new", now=NOON)

    assert (workspace / DAY).read_bytes().decode() == after


def test_what_the_day_says_is_not_said_twice(workspace: Path) -> None:
    note(workspace, "the loss fell", now=NOON)
    before = everything(workspace)

    outcome = note(workspace, "the  loss fell", now=NOON + dt.timedelta(hours=1))

    assert outcome.report == (f"{DAY} says this already.",)
    assert everything(workspace) == before


def test_a_heading_stands_above_what_belongs_to_it(workspace: Path) -> None:
    note(workspace, "first", now=NOON, heading="Decisions")
    note(workspace, "second", now=NOON, heading="Decisions")

    assert (workspace / DAY).read_text() == (
        "# 2026-03-14\n\n## Decisions\n\n- 12:30+00:00 first\n- 12:30+00:00 second\n"
    )


def test_a_note_without_a_heading_stands_below_nobody_elses(workspace: Path) -> None:
    note(workspace, "first", now=NOON, heading="Decisions")
    note(workspace, "second", now=NOON)

    assert (workspace / DAY).read_text() == (
        "# 2026-03-14\n\n- 12:30+00:00 second\n\n## Decisions\n\n- 12:30+00:00 first\n"
    )


@pytest.mark.parametrize(
    ("zone", "instant", "day", "line"),
    [
        ("Asia/Tokyo", "2026-06-08T16:20+00:00", "2026-06-09", "- 01:20+09:00 x\n"),
        ("America/Denver", "2026-06-09T04:05+00:00", "2026-06-08", "- 22:05-06:00 x\n"),
        ("Europe/Berlin", "2026-10-25T00:30+00:00", "2026-10-25", "- 02:30+02:00 x\n"),
        ("Europe/Berlin", "2026-10-25T01:30+00:00", "2026-10-25", "- 02:30+01:00 x\n"),
    ],
)
def test_the_zone_of_the_workspace_says_which_day_it_is(
    workspace: Path, zone: str, instant: str, day: str, line: str
) -> None:
    in_zone(workspace, zone)

    note(workspace, "x", now=dt.datetime.fromisoformat(instant))

    assert (workspace / f"memory/{day}.md").read_text() == f"# {day}\n\n{line}"


def test_a_note_of_another_day_has_no_time_of_day(workspace: Path) -> None:
    note(workspace, "x", date="2026-03-01", now=NOON)

    assert (workspace / "memory/2026-03-01.md").read_text() == "# 2026-03-01\n\n- x\n"


@pytest.mark.parametrize(
    "date",
    ["2026-13-45", "../2026-01-01", "2026-01-01/../x", "20260101", "2026-1-1", "2026-01-01\n", ""],
)
def test_a_date_that_is_none_is_refused_and_writes_nothing(workspace: Path, date: str) -> None:
    before = everything(workspace.parent)

    with pytest.raises(InvalidInput) as refused:
        note(workspace, "x", date=date, now=NOON)

    assert ".." not in str(refused.value)
    assert contents(workspace.parent) == {
        path: entry.content
        for path, entry in before.items()
        if isinstance(entry.content, bytes) and ".lineage" not in path
    }


@pytest.mark.parametrize(
    ("text", "heading"),
    [(" \n", None), ("", None), ("a\0", None), ("\ud83e", None), ("x", ""), ("x", "two\nlines")],
)
def test_a_note_that_says_nothing_is_refused(
    workspace: Path, text: str, heading: str | None
) -> None:
    with pytest.raises(BadInput):
        note(workspace, text, heading=heading, now=NOON)

    assert not (workspace / DAY).exists()


def test_a_misspelt_zone_writes_nothing(workspace: Path) -> None:
    in_zone(workspace, "Asia/Tokio")

    with pytest.raises(BadTimezone):
        note(workspace, "x", now=NOON)

    assert list(workspace.glob("memory/*-*.md")) == []


def test_a_day_that_is_not_utf_8_is_left_alone(workspace: Path) -> None:
    (workspace / DAY).write_bytes(b"\xff old")

    with pytest.raises(NotText, match=DAY):
        note(workspace, "x", now=NOON)

    assert (workspace / DAY).read_bytes() == b"\xff old"


def test_a_day_that_is_a_link_is_refused(workspace: Path, outside: Path) -> None:
    (workspace / DAY).symlink_to(outside / "secret.md")

    with pytest.raises(LinkRefused, match=DAY):
        note(workspace, "x", now=NOON)

    assert (outside / "secret.md").read_text() == "the outside secret"


def test_a_directory_that_is_no_workspace_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(NoWorkspace, match="workspace init"):
        note(tmp_path, "x", now=NOON)

    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_shows_the_line_and_writes_nothing(workspace: Path) -> None:
    (workspace / DAY).write_bytes(b"- old")
    before = everything(workspace)

    outcome = note(workspace, "new", now=NOON, dry_run=True)

    assert everything(workspace) == before
    assert outcome.diff == (
        f"--- a/{DAY}\n+++ b/{DAY}\n@@ -1 +1,2 @@\n-- old\n\\ No newline at end of file\n"
        "+- old\n+- 12:30+00:00 new\n"
    )


def test_a_note_is_added_to_what_a_person_saved_at_the_same_moment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / DAY).write_text("- old\n")
    check = Writer._check
    saved = iter(["- old\n- theirs\n"])

    def saving(self: Writer, seen: object) -> None:
        if text := next(saved, None):
            (workspace / DAY).write_text(text)
        check(self, seen)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "_check", saving)

    note(workspace, "ours", now=NOON)

    assert (workspace / DAY).read_text() == "- old\n- theirs\n- 12:30+00:00 ours\n"


def test_a_person_who_saves_all_the_time_is_not_overwritten(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / DAY).write_text("- 0\n")
    check, turns = Writer._check, iter(range(1, 100))

    def saving(self: Writer, seen: object) -> None:
        (workspace / DAY).write_text(f"- {next(turns)}\n")
        check(self, seen)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "_check", saving)

    with pytest.raises(ChangedMeanwhile):
        note(workspace, "ours", now=NOON)

    assert (workspace / DAY).read_text() == "- 5\n"


# Tells each note once it is written, as a caller would count on it.
APPENDING = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import datetime as dt
from pathlib import Path
from app.workspace import note
for number in range(int(sys.argv[3])):
    said = f"{{sys.argv[2]}} {{number}}"
    note(Path(sys.argv[1]), said, now=dt.datetime(2026, 3, 14, 12, 30, tzinfo=dt.timezone.utc))
    print(said, flush=True)
"""


def test_twenty_notes_of_two_processes_a_reader_and_a_kill(workspace: Path) -> None:
    old = ["# 2026-03-14", "", "- one", "- two", "- three"]
    (workspace / DAY).write_text("\n".join(old))
    command = [*BARE, "-c", APPENDING, str(workspace)]

    def start(name: str, count: int) -> subprocess.Popen[str]:
        return subprocess.Popen([*command, name, str(count)], stdout=subprocess.PIPE, text=True)

    with start("left", 10) as left, start("right", 10) as right, start("killed", 10_000) as killed:
        seen = []
        assert killed.stdout is not None
        acknowledged = [killed.stdout.readline().strip()]
        deadline = time.monotonic() + 60
        while left.poll() is None or right.poll() is None:
            assert time.monotonic() < deadline
            seen.append((workspace / DAY).read_text())
            if len(seen) == 20:
                killed.kill()
        killed.kill()
        acknowledged += killed.stdout.read().splitlines()

    lines = (workspace / DAY).read_text().splitlines()
    assert lines[: len(old)] == old
    said = [line.removeprefix("- 12:30+00:00 ") for line in lines[len(old) :]]
    assert {f"{name} {number}" for name in ("left", "right") for number in range(10)} <= set(said)
    assert set(acknowledged) <= set(said)
    assert len(set(said)) == len(said)
    assert (left.returncode, right.returncode, killed.returncode) == (0, 0, -signal.SIGKILL)
    assert set(map(len, (text.splitlines() for text in seen))) <= set(range(5, len(lines) + 1))
    assert all("\n".join(lines).startswith(text.rstrip("\n")) for text in seen)
    assert all(text.endswith("\n") for text in seen if text != "\n".join(old))


def test_the_file_that_a_killed_writer_left_is_gone_after_the_next_note(workspace: Path) -> None:
    (workspace / "memory/.lineage-0123456789abcdef.tmp").write_text("half a no")

    note(workspace, "x", now=NOON)

    assert list(workspace.rglob("*.tmp")) == []
