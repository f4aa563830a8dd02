"""Movements on a folder: what people wrote keeps its bytes, and nothing gets lost on the way."""

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.layers.core import CoreDocument, Section
from app.layers.errors import UnknownItem, UnknownNote
from app.layers.note import Topic
from app.layers.words import count_words
from app.workspace import Outcome, consolidate, demote, heartbeat, note, promote, trim
from app.workspace.errors import (
    BadInput,
    BadTimezone,
    ChangedMeanwhile,
    InTheWay,
    LinkRefused,
    NotText,
    NoWorkspace,
)
from app.workspace.outcome import Change
from app.workspace.writer import Writer, open_writer
from tests.workspace.generated import MARK
from tests.workspace.tree import bare, contents, everything

NOW = dt.datetime(2026, 6, 9, 12, 30, tzinfo=dt.UTC)
CORE = "memory/core.md"
DAY = "memory/2026-06-09.md"
ADA = "memory/archival/people/ada.md"

MOVEMENTS: dict[str, Callable[[Path], Outcome]] = {
    "demote": lambda root: demote(root, Section.USER, "old t0001", now=NOW),
    "promote": lambda root: promote(root, "people/ada", now=NOW),
    "consolidate": lambda root: consolidate(root, now=NOW),
    "trim": lambda root: trim(root, max_words=8, now=NOW),
    "heartbeat": lambda root: heartbeat(root, max_words=8, now=NOW),
}


@pytest.fixture
def root(workspace: Path) -> Path:
    """A workspace with something for every movement to do."""
    (workspace / CORE).write_bytes(
        b"---\nmine: yes\n---\n# Core Memory\n\nmy preamble\n\n"
        b"## User\n\n- old t0001\n- new t0002\n\n"
        b"## My Own\n\nwords of mine t0003\n\n## Active Context\n\n- run t0004\n  - inner t0005\n"
    )
    (workspace / ADA).write_bytes(
        b"---\nalias: ada\n---\n# Ada\n\nShe likes tea t0006\n\n<!-- ! -->"
    )
    for name, mark in (("one", "t0008"), ("two", "t0012")):
        (workspace / f"memory/archival/projects/{name}.md").write_text(
            "# Twice \u2014 2026-05-02\n\n## Summary\n\nSame\n\n"
            f"## Details\n\n- same t0007\n- {name} {mark}\n"
        )
    (workspace / DAY).write_bytes(b"Decision: keep it t0009\r\n\r\n```\r\ncode t0010\r\n```")
    return workspace


def text(root: Path, path: str = CORE) -> str:
    return (root / path).read_bytes().decode()


def marks(root: Path) -> set[str]:
    return {
        mark
        for path, data in contents(root).items()
        if path == CORE or path.startswith("memory/archival/")
        for mark in MARK.findall(data.decode())
    }


def test_a_demoted_item_goes_to_a_note_and_leaves_a_reference(root: Path) -> None:
    before = text(root)

    outcome = demote(root, Section.USER, "old t0001", topic=Topic.PEOPLE, title="Tea", now=NOW)

    assert text(root) == before.replace("- old t0001", "- See archival: people/tea")
    assert text(root, "memory/archival/people/tea.md").startswith("# Tea \u2014 2026-06-09\n")
    assert outcome.report[0] == "Demoted from User to people/tea: old t0001"
    assert [change.path for change in outcome.changes] == ["memory/archival/people/tea.md", CORE]


def test_a_promoted_note_says_where_its_summary_went(root: Path) -> None:
    promote(root, "projects/one", section=Section.USER, now=NOW)

    assert "- new t0002\n- Same (See archival: projects/one)\n\n## My Own" in text(root)
    assert text(root, "memory/archival/projects/one.md").endswith(
        "- one t0008\n- Promoted to core: User\n"
    )


def test_a_promoted_note_of_another_form_keeps_its_bytes(root: Path) -> None:
    before = text(root, ADA)

    promote(root, "people/ada", section=Section.USER, now=NOW)

    assert "- She likes tea t0006 (See archival: people/ada)\n" in text(root)
    assert text(root, ADA) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## Quick Reference", "## Quick Reference\n- {}"),
        ("## Quick Reference\r\n\r\n- a", "## Quick Reference\r\n\r\n- a\r\n- {}"),
        ("# C\n## Quick Reference\n- a\n\n## X\n", "# C\n## Quick Reference\n- a\n- {}\n\n## X\n"),
    ],
)
def test_a_core_keeps_its_manner(root: Path, before: str, after: str) -> None:
    (root / CORE).write_bytes(before.encode())

    promote(root, "people/ada", now=NOW)

    assert text(root) == after.format("She likes tea t0006 (See archival: people/ada)")


def test_a_folder_without_a_core_gets_one_when_there_is_something_to_say(root: Path) -> None:
    (root / CORE).unlink()

    consolidate(root, now=NOW)
    assert not (root / CORE).exists()
    promote(root, "people/ada", now=NOW)

    assert list(CoreDocument.read(text(root)).texts.values()) == [
        "",
        "",
        "",
        "- She likes tea t0006 (See archival: people/ada)",
    ]


def test_consolidate_takes_what_a_day_says_and_leaves_the_day_alone(root: Path) -> None:
    before = contents(root)

    outcome = consolidate(root, now=NOW)

    after = contents(root)
    assert {path: after[path] for path in before} == before
    assert sorted(after.keys() - before.keys()) == [
        "memory/archival/decisions/2026-06-09.md",
        "memory/archival/reference/2026-06-09.md",
    ]
    assert b"- ```\n  code t0010\n  ```\n" in after["memory/archival/reference/2026-06-09.md"]
    assert "Extracted to decisions/2026-06-09: Decision: keep it t0009" in outcome.report


def test_consolidate_looks_as_far_back_as_asked(root: Path) -> None:
    for back in (0, 6, 7):
        (root / f"memory/{dt.date(2026, 6, 9) - dt.timedelta(days=back)}.md").write_text(
            f"{back} days ago"
        )

    consolidate(root, days=7, now=NOW)

    archive = "".join(data.decode() for path, data in contents(root).items() if "archival" in path)
    assert [back for back in (0, 6, 7) if f"{back} days ago" in archive] == [0, 6]


def test_trim_says_how_many_words_are_left_and_touches_no_section_that_it_does_not_know(
    root: Path,
) -> None:
    outcome = trim(root, max_words=20, now=NOW)

    document = CoreDocument.read(text(root))
    words = sum(count_words(said) for said in document.texts.values()) + document.other_words
    assert words <= 20
    assert outcome.report[-1] == f"Core has {words} words of at most 20."
    assert "## My Own\n\nwords of mine t0003\n" in text(root)
    assert text(root).startswith("---\nmine: yes\n---\n# Core Memory\n\nmy preamble\n")


def test_a_core_that_grew_for_years_goes_to_as_many_notes_as_a_note_has_room_for(
    root: Path,
) -> None:
    items = [f"- item {number} of this and that, and of something else" for number in range(1_200)]
    (root / CORE).write_text("# Core Memory\n\n## Active Context\n\n" + "\n".join(items) + "\n")

    outcome = trim(root, max_words=20, now=NOW)

    notes = [change for change in outcome.changes if change.path != CORE]
    assert len(notes) == 3
    assert max(len(change.data or b"") for change in notes) <= 32 * 1024
    said = [line for change in notes for line in (change.data or b"").decode().splitlines()]
    assert [said.count(item) for item in items[:-1]] == [1] * (len(items) - 1)
    assert text(root).endswith(f"{items[-1]}\n")


def test_a_heartbeat_merges_notes_that_are_one(root: Path) -> None:
    heartbeat(root, now=NOW)

    (left,) = (root / "memory/archival/projects").glob("*.md")
    assert "- same t0007\n" in left.read_text()
    assert {"one t0008", "two t0012"} <= {
        line.removeprefix("- ") for line in left.read_text().splitlines()
    }


@pytest.mark.parametrize("extra", ["---\nowner: me\n---\n", "<!-- ! -->\n\n"])
def test_a_note_with_something_of_its_own_is_not_merged_away(root: Path, extra: str) -> None:
    for name, before in (("first", ""), ("second", extra)):
        (root / f"memory/archival/learnings/{name}.md").write_text(
            f"{before}# Same\n\nsaid t0011\n"
        )

    heartbeat(root, now=NOW)

    assert text(root, "memory/archival/learnings/second.md") == f"{extra}# Same\n\nsaid t0011\n"


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_a_movement_done_twice_changes_nothing_more(root: Path, movement: str) -> None:
    MOVEMENTS[movement](root)
    before = everything(root / "memory")

    if movement == "demote":
        with pytest.raises(UnknownItem):
            MOVEMENTS[movement](root)
    else:
        assert MOVEMENTS[movement](root).changes == ()

    assert everything(root / "memory") == before


@pytest.mark.parametrize("movement", ["demote", "trim", "heartbeat", "promote"])
def test_what_a_person_saves_meanwhile_is_kept_and_the_next_run_does_the_rest(
    root: Path, movement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, saved = marks(root), text(root) + "\n- saved t0042\n"
    write = Writer.write

    def saving(self: Writer, change: Change) -> None:
        (root / CORE).write_text(saved)
        write(self, change)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write", saving)
        with pytest.raises(ChangedMeanwhile, match=CORE):
            MOVEMENTS[movement](root)

    assert text(root) == saved
    assert known | {"t0042"} <= marks(root)
    MOVEMENTS[movement](root)
    assert known | {"t0042"} <= marks(root)


# Does a heartbeat in a copy of the workspace after the other, and is killed in each one step later.
KILLED = """
import os, sys
import datetime as dt
from pathlib import Path
from app.workspace import heartbeat
CHANGES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.chmod"}
def dying(steps):
    def hook(event, arguments):
        nonlocal steps
        if event in CHANGES or (event == "open" and arguments[2] & os.O_CREAT):
            if not steps:
                os._exit(9)
            steps -= 1
    return hook
now = dt.datetime(2026, 6, 9, 12, 30, tzinfo=dt.timezone.utc)
for steps, copy in enumerate(sys.argv[1:]):
    child = os.fork()
    if not child:
        sys.addaudithook(dying(steps))
        heartbeat(Path(copy), max_words=8, now=now)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_heartbeat_may_be_killed_at_any_step(root: Path, tmp_path: Path) -> None:
    known = marks(root) | {"t0009", "t0010"}
    copies = [tmp_path / f"copy-{steps}" for steps in range(60)]
    for copy in copies:
        shutil.copytree(root, copy)

    codes = bare(KILLED, *map(str, copies)).stdout.split()

    assert codes[-1] == "0"
    assert codes.count("9") > 20
    heartbeat(root, max_words=8, now=NOW)
    for copy in copies:
        days = set(MARK.findall((copy / DAY).read_text()))
        assert known <= marks(copy) | days, copy
        heartbeat(copy, max_words=8, now=NOW)
        assert known <= marks(copy), copy
        assert contents(copy).keys() == contents(root).keys(), copy
        assert text(copy) == text(root), copy
        assert heartbeat(copy, max_words=8, now=NOW).changes == (), copy
        assert list(copy.rglob("*.tmp")) == [], copy


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_a_dry_run_touches_nothing_not_even_a_lock(root: Path, movement: str) -> None:
    shutil.rmtree(root / ".lineage")
    before = everything(root)
    calls: dict[str, Callable[[], Outcome]] = {
        "demote": lambda: demote(root, Section.USER, "old t0001", now=NOW, dry_run=True),
        "promote": lambda: promote(root, "people/ada", now=NOW, dry_run=True),
        "consolidate": lambda: consolidate(root, now=NOW, dry_run=True),
        "trim": lambda: trim(root, max_words=8, now=NOW, dry_run=True),
        "heartbeat": lambda: heartbeat(root, max_words=8, now=NOW, dry_run=True),
    }

    foretold = calls[movement]()

    assert everything(root) == before
    assert foretold.changes
    done = MOVEMENTS[movement](root)
    assert (done.diff, done.report) == (foretold.diff, foretold.report)


def test_what_cannot_be_read_is_skipped_and_named_and_keeps_its_bytes(root: Path) -> None:
    odd = {
        "memory/2026-06-08.md": b"- fine \xff",
        "memory/archival/people/broken.md": b"\xfe\xff# Note",
        "memory/archival/people/a:b.md": b"# colon",
        "memory/archival/people/picture.png": b"\x89PNG",
        "memory/archival/mine/own.md": b"# of no topic",
        "memory/2026-13-45.md": b"no day",
        "memory/plan.md": b"no day either",
    }
    for path, data in odd.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(data)

    outcome = heartbeat(root, max_words=8, now=NOW)

    assert {path: contents(root)[path] for path in odd} == odd
    assert sorted(sentence.split(": ")[0] for sentence in outcome.skipped) == [
        "memory/2026-06-08.md",
        "memory/2026-13-45.md",
        "memory/archival/mine/own.md",
        "memory/archival/people/a:b.md",
        "memory/archival/people/broken.md",
        "memory/plan.md",
    ]


def test_a_core_that_is_not_utf_8_stops_everything(root: Path) -> None:
    (root / CORE).write_bytes(b"# Core \xff")
    before = contents(root)

    with pytest.raises(NotText, match=r"memory/core\.md is not UTF-8"):
        heartbeat(root, now=NOW)

    assert contents(root) == before


def test_a_file_that_is_skipped_is_not_overwritten_by_a_note_of_its_name(root: Path) -> None:
    path = "memory/archival/decisions/2026-06-09.md"
    (root / path).write_bytes(b"\xff")

    with pytest.raises(InTheWay, match=path):
        consolidate(root, now=NOW)

    assert (root / path).read_bytes() == b"\xff"


@pytest.mark.parametrize("target", ["secret.md", ".", "none-such"])
def test_links_in_the_archive_are_named_and_not_followed(
    root: Path, outside: Path, target: str
) -> None:
    for place in ("memory/archival/people/link.md", "memory/archival/learnings"):
        path = root / place
        if path.is_dir():
            path.rmdir()
        path.symlink_to(outside / target)
    (root / "memory/2026-06-08.md").symlink_to(outside / "secret.md")
    before = everything(outside)

    outcome = heartbeat(root, max_words=8, now=NOW)

    assert everything(outside) == before
    told = "\n".join((outcome.diff, *outcome.report, *outcome.skipped))
    assert "secret" not in told
    assert str(outside) not in told
    assert sorted(sentence.split(": ")[0] for sentence in outcome.skipped) == [
        "memory/2026-06-08.md",
        "memory/archival/learnings",
        "memory/archival/people/link.md",
    ]
    assert "secret" not in "".join(str(data) for data in contents(root / "memory").values() if data)


@pytest.mark.parametrize(
    "place", ["memory", "memory/core.md", "memory/archival", "memory/archival/decisions"]
)
def test_nothing_is_written_through_a_link(root: Path, outside: Path, place: str) -> None:
    moved = root / place
    if moved.is_dir():
        shutil.rmtree(moved)
    else:
        moved.unlink()
    moved.symlink_to(outside)
    if place != "memory":
        (root / DAY).write_text("Decision: out with it")
    before = everything(outside)

    with pytest.raises(LinkRefused, match=f"{place} is a link") as refused:
        consolidate(root, now=NOW)

    assert str(outside) not in str(refused.value)
    assert everything(outside) == before


@pytest.mark.parametrize(
    "ref",
    ["../../outside", "people/../../../outside", "/etc/hosts", "people/..%2fx", "people\\x", ""],
)
def test_a_note_that_is_none_cannot_be_promoted(root: Path, outside: Path, ref: str) -> None:
    before = everything(outside), contents(root)

    with pytest.raises(UnknownNote):
        promote(root, ref, now=NOW)

    assert (everything(outside), contents(root)) == before


@pytest.mark.parametrize("title", ["../../outside", "/etc/hosts", "..%2f..%2fx", "..\\..\\x", ".."])
def test_a_title_that_looks_like_a_path_becomes_a_name(
    root: Path, outside: Path, title: str
) -> None:
    before = everything(outside)

    demote(root, Section.USER, "old t0001", topic=Topic.PEOPLE, title=title, now=NOW)

    made = [
        path.name for path in (root / "memory/archival/people").iterdir() if path.name != "ada.md"
    ]
    assert len(made) == 1
    assert made[0].removesuffix(".md").replace("-", "").isalnum()
    assert everything(outside) == before


@pytest.mark.parametrize("days", [0, -1, 36_501, 10**12])
def test_a_number_of_days_that_is_none_is_refused(root: Path, days: int) -> None:
    with pytest.raises(BadInput, match="days"):
        consolidate(root, days=days)
    with pytest.raises(BadInput, match="days"):
        heartbeat(root, days=days)


@pytest.mark.parametrize("words", [0, -5])
def test_a_limit_of_words_that_is_none_is_refused(root: Path, words: int) -> None:
    with pytest.raises(BadInput, match="words"):
        trim(root, max_words=words)
    with pytest.raises(BadInput, match="words"):
        heartbeat(root, max_words=words)


def test_a_misspelt_zone_moves_nothing(root: Path) -> None:
    (root / ".lineage/workspace.json").write_text('{"timezone": "Asia/Tokio"}')
    before = contents(root)

    with pytest.raises(BadTimezone):
        heartbeat(root, now=NOW)

    assert contents(root) == before


def test_a_directory_without_memory_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(NoWorkspace, match="workspace init"):
        consolidate(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_nothing_is_lost_across_midnight(root: Path) -> None:
    midnight = dt.datetime(2026, 6, 10, tzinfo=dt.UTC)
    before, after = midnight - dt.timedelta(seconds=1), midnight + dt.timedelta(seconds=1)
    note(root, "before it t0101", now=before)

    consolidate(root, now=before)
    note(root, "still that day t0102", now=before)
    note(root, "after it t0103", now=after)
    consolidate(root, now=after)

    assert {"t0101", "t0102", "t0103"} <= marks(root)
    assert {path.name for path in (root / "memory/archival/reference").iterdir()} == {
        "2026-06-09.md",
        "2026-06-10.md",
    }


def test_the_zone_of_the_workspace_decides_which_days_are_the_last(root: Path) -> None:
    (root / ".lineage/workspace.json").write_text('{"timezone": "Asia/Tokyo"}')
    (root / "memory/2026-06-10.md").write_text("in Tokyo it is the tenth t0104")

    consolidate(root, days=1, now=dt.datetime(2026, 6, 9, 15, 30, tzinfo=dt.UTC))

    assert "t0104" in marks(root)
    assert "t0009" not in marks(root)


def test_writers_of_all_kinds_wait_for_each_other(root: Path) -> None:
    code = (
        "from pathlib import Path\nfrom app.workspace import consolidate\n"
        "print('started', flush=True)\nconsolidate(Path(sys.argv[1]), days=30000)\nprint('done')"
    )
    with open_writer(root):
        told = bare(f"import signal; signal.alarm(2)\n{code}", str(root))

    assert told.stdout == "started\n"
    assert bare(code, str(root)).stdout == "started\ndone\n"
