"""Daily notes of both sides: each gets the facts that it lacks, with their times."""

import datetime as dt
from pathlib import Path

import pytest

from app.layers.daily import read_day
from tests.cli.both import Both
from tests.cli.running import run

pytestmark = pytest.mark.parametrize(
    ("database", "archive"), [("sqlite", "embedded")], indirect=True
)
YESTERDAY = dt.datetime.now(dt.UTC).date() - dt.timedelta(days=1)


def other_folder(both: Both, path: Path) -> Both:
    """Another folder, which has pulled what the checkpoint holds."""
    assert run("workspace", "init", str(path)).returncode == 0
    other = Both(path, both.service, both.tree)
    other.pull()
    return other


def test_times_go_there_and_come_back_and_none_is_made_up(both: Both, tmp_path: Path) -> None:
    day = "# 2026-03-14\n\n- 03:04+09:00 early bird\n- 23:59:58-08:00 late one\n- whenever\n"
    both.write("2026-03-14.md", day)
    both.push()

    assert other_folder(both, tmp_path / "other").read("2026-03-14.md") == day
    assert [note.at and note.at.isoformat() for note in both.layers.daily_notes()] == [
        "2026-03-14T03:04:00+09:00",
        "2026-03-14T23:59:58-08:00",
        None,
    ]


def test_a_time_of_another_day_is_not_written_into_a_file(both: Both) -> None:
    both.layers.write_daily_note("told later", date="2026-03-14", at="2026-03-15T09:00:00Z")

    both.pull()

    assert both.read("2026-03-14.md") == "# 2026-03-14\n\n- told later\n"


MIXED = """- Lesson: warm up
  - five hundred steps
- 09:30+09:00 Decision: AdamW

  a second paragraph

      indented = code
- # c
- a list
  # with a mark
- lazy
goes on

Some prose
of two lines.

```python
print("x")

# y
```

## People

- Noor keeps the keys
"""


def facts_of(folder: Both) -> list[tuple[str, str | None, str | None]]:
    items = read_day(folder.read(f"{YESTERDAY}.md"), YESTERDAY)
    return sorted(((item.fact, item.at, item.heading) for item in items), key=repr)


def test_items_of_several_lines_stay_one_fact_each_on_both_sides(
    both: Both, tmp_path: Path
) -> None:
    both.write(f"{YESTERDAY}.md", MIXED)
    done = run("workspace", "consolidate", str(both.folder))
    assert done.returncode == 0, done.stderr
    both.do("push")

    moved = both.do_on_checkpoint("consolidate")

    assert "Nothing to move." in moved.stdout
    assert both.layers.daily_notes()[0].text == "- Lesson: warm up\n  - five hundred steps"
    assert both.differ() == {}
    there = other_folder(both, tmp_path / "other")
    assert facts_of(there) == facts_of(both)
    assert there.differ() == {}


def test_a_note_that_says_several_things_is_several_facts_on_both_sides(both: Both) -> None:
    text = "Decision: AdamW\n\n- Lesson: warm up\n  - slowly\n\n## People\n\nNoor has the keys"
    both.layers.write_daily_note(text)
    assert "Extracted" in both.do_on_checkpoint("consolidate").stdout
    both.pull()

    done = run("workspace", "consolidate", str(both.folder))

    assert done.stdout.startswith("Nothing to move.\n"), done.stdout
    assert both.differ() == {}


def test_a_file_that_is_no_day_and_no_note_is_told_once_by_push_pull_and_diff(both: Both) -> None:
    both.write("2026-3-4.md", "- never sent\n")
    both.write("archival/projects/N.MD", "never sent either\n")

    for command, more in (("push", ["--dry-run"]), ("push", []), ("pull", []), ("diff", [])):
        assert both.do(command, *more).stderr.splitlines() == [
            "Skipped memory/2026-3-4.md: not named as a day is (YYYY-MM-DD); left as it is.",
            "Skipped memory/archival/projects/N.MD: its ending is not .md; left as it is.",
        ]
    assert both.do("diff").stdout == "Nothing else differs.\n"
    assert (both.layers.notes(), both.layers.daily_notes()) == ([], [])


def test_core_counts_alike_over_http_and_in_a_folder_that_pulled_it(both: Both) -> None:
    fence = "```" + "a" * 27
    both.layers.set_section("user", f"## heading\n{fence}\nopen fence text", if_match="*")
    both.pull()

    done = run("workspace", "heartbeat", str(both.folder))

    assert f"Core has {both.layers.core().words} words of at most" in done.stdout
