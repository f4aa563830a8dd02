"""push, pull and diff of a folder and a checkpoint: nothing is lost, and nothing is deleted."""

import datetime as dt
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.cli import push_and_pull, syncing
from app.cli.remote import Remote, read_remote
from app.cli.syncing import differences, pull, push
from app.client import Layers, Service
from app.layers.daily import read_day
from tests.cli.running import run
from tests.cli.test_workspace import CORE, SECRET, files
from tests.conftest import Grow
from tests.snapshot.files import entry, header, sealed
from tests.support.client import Json, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree

pytestmark = pytest.mark.parametrize(
    ("database", "archive"), [("sqlite", "embedded")], indirect=True
)
YESTERDAY = dt.datetime.now(dt.UTC).date() - dt.timedelta(days=1)
NOTE = "# Rates — 2026-03-14\n\n## Summary\n\nRate 0.1 diverges\n"


class Both:
    """A folder and a checkpoint."""

    def __init__(self, folder: Path, service: Service, tree: Tree) -> None:
        self.folder, self.service, self.tree = folder, service, tree
        self.layers: Layers = service.layers(tree.checkpoint)

    def write(self, path: str, text: str) -> None:
        place = self.folder / "memory" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())

    def read(self, path: str) -> str:
        return (self.folder / "memory" / path).read_bytes().decode()

    def do(self, command: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        url = str(self.tree.api.http.base_url)
        done = run(
            "workspace", command, str(self.folder), self.tree.checkpoint, *arguments, url=url
        )
        assert done.returncode == code, done.stderr
        return done

    def do_on_checkpoint(self, command: str) -> subprocess.CompletedProcess[str]:
        return run(command, self.tree.checkpoint, url=str(self.tree.api.http.base_url))

    def push(self, *, overwrite: bool = False) -> None:
        push(self.folder, self.service, self.tree.checkpoint, overwrite=overwrite, dry_run=False)

    def pull(self, *, overwrite: bool = False) -> None:
        pull(self.folder, self.service, self.tree.checkpoint, overwrite=overwrite, dry_run=False)

    def differ(self) -> dict[str, str]:
        """What differs, by key, and what it asks for."""
        found, _ = differences(self.folder, self.service, self.tree.checkpoint)
        of_texts = {item.key: item.way.value for item in (*found.core, *found.notes)}
        return of_texts | {item.key: item.way.value for item in found.days}


@pytest.fixture
def both(tree: Tree, tmp_path: Path) -> Iterator[Both]:
    folder = tmp_path / "notes"
    assert run("workspace", "init", str(folder)).returncode == 0
    with Service(str(tree.api.http.base_url)) as service:
        yield Both(folder, service, tree)


def filled(both: Both) -> Both:
    both.write("core.md", CORE)
    both.write("archival/learnings/rates.md", NOTE)
    both.write("2026-03-14.md", "# 2026-03-14\n\n## Training\n- 09:30+09:00 loss 0.31\n- 東京\n")
    return both


def test_what_the_folder_holds_is_pushed_and_a_second_push_sends_nothing(both: Both) -> None:
    before = files(filled(both).folder)

    first, second = both.do("push"), both.do("push")

    assert first.stdout.splitlines() == [
        "Sent the section identity of core.",
        "Sent the section user of core.",
        "Sent the section active-context of core.",
        "Sent the note learnings/rates.",
        "Sent 2 notes of the day 2026-03-14.",
    ]
    assert second.stdout == "Nothing to send.\n"
    assert both.layers.core_markdown() == CORE
    assert [note.text for note in both.layers.notes()] == [NOTE]
    daily = [(note.text, note.heading) for note in both.layers.daily_notes(date="2026-03-14")]
    assert daily == [("loss 0.31", "Training"), ("東京", "Training")]
    after = files(both.folder)
    assert {name: after[name] for name in before if not name.startswith(".lineage/")} == {
        name: file for name, file in before.items() if not name.startswith(".lineage/")
    }


def test_what_the_checkpoint_holds_is_pulled_and_a_second_pull_changes_nothing(
    both: Both,
) -> None:
    both.layers.set_section("user", "Ada", if_match="*")
    both.layers.set_section("quick-reference", "- docs at /docs", if_match="*")
    both.layers.write_note_text("people", "東京", NOTE)
    both.layers.write_daily_note("loss 0.31", date="2026-03-14", heading="Training")
    both.write("2026-03-14.md", "# 2026-03-14\n- mine, no newline at the end")

    first = both.do("pull")
    pulled = files(both.folder)
    second = both.do("pull")

    assert first.stdout.splitlines() == [
        "Pulled the section user of core.",
        "Pulled the section quick-reference of core.",
        "Pulled the note people/東京.",
        "Pulled 1 note of the day 2026-03-14.",
    ]
    assert second.stdout == "Nothing to pull.\n"
    assert files(both.folder) == pulled
    assert both.read("core.md") == both.layers.core_markdown()
    assert both.read("archival/people/東京.md") == NOTE
    day = both.read("2026-03-14.md")
    assert day.startswith("# 2026-03-14\n- mine, no newline at the end\n")
    assert "## Training\n" in day
    assert "loss 0.31" in day


def test_a_folder_of_another_machine_gets_all_by_a_pull(both: Both, tmp_path: Path) -> None:
    filled(both).push()
    other = tmp_path / "other"
    assert run("workspace", "init", str(other)).returncode == 0
    there = Both(other, both.service, both.tree)

    there.pull()

    for path in ("core.md", "archival/learnings/rates.md"):
        assert there.read(path) == both.read(path)
    assert there.differ() == both.differ() == {}


def test_changes_of_either_side_meet_without_a_conflict(both: Both) -> None:
    filled(both).push()
    both.write("core.md", both.read("core.md").replace("- sweep runs", "- sweep is done"))
    both.layers.set_section("user", "Ada and Ben", if_match="*")

    assert both.differ() == {"active-context": "push", "user": "pull"}
    both.push()
    both.pull()

    assert both.differ() == {}
    assert both.read("core.md") == both.layers.core_markdown()
    assert "- sweep is done" in both.read("core.md")
    assert "Ada and Ben" in both.read("core.md")


@pytest.mark.parametrize("command", ["push", "pull"])
def test_what_both_sides_changed_is_told_and_left_until_somebody_settles_it(
    both: Both, command: str
) -> None:
    filled(both).push()
    [note] = both.layers.notes()
    both.layers.correct_note(note.id, f"{NOTE}\ntheirs\n", if_match=note.etag)
    both.write("archival/learnings/rates.md", f"{NOTE}\nmine\n")

    told = both.do(command, code=1)
    assert "Both sides changed the note learnings/rates." in told.stderr
    assert both.read("archival/learnings/rates.md").endswith("mine\n")
    assert [note.text[-7:] for note in both.layers.notes()] == ["theirs\n"]

    settled = both.do(command, "--overwrite")
    assert settled.stderr == ""
    word = "mine\n" if command == "push" else "theirs\n"
    assert both.read("archival/learnings/rates.md").endswith(word)
    assert [note.text.endswith(word) for note in both.layers.notes()] == [True]
    assert both.differ() == {}


def test_what_is_gone_on_one_side_is_deleted_on_no_other(both: Both) -> None:
    filled(both).push()
    (both.folder / "memory" / "archival" / "learnings" / "rates.md").unlink()

    assert both.differ() == {"learnings/rates": "gone-here"}
    both.push()
    both.pull()

    assert [note.ref for note in both.layers.notes()] == ["learnings/rates"]
    assert not (both.folder / "memory" / "archival" / "learnings" / "rates.md").exists()


def test_what_moved_from_core_to_a_note_here_moves_there_too(both: Both) -> None:
    filled(both).push()
    done = run(
        *("workspace", "demote", str(both.folder), "active-context", "sweep runs"),
        *("--topic", "projects", "--title", "Sweep"),
    )
    assert done.returncode == 0, done.stderr

    both.do("push")

    assert "See archival: projects/sweep" in both.layers.section("active-context").text
    [sweep] = both.layers.notes(topic="projects")
    assert "sweep runs" in sweep.text
    assert both.differ() == {}


def test_a_dry_run_shows_the_diff_and_changes_nothing_on_either_side(both: Both) -> None:
    filled(both)
    both.layers.set_section("quick-reference", "- docs at /docs", if_match="*")
    before, there = files(both.folder), both.layers.core_markdown()

    pushed, pulled = both.do("push", "--dry-run"), both.do("pull", "--dry-run")

    assert "--- /dev/null\n+++ b/archival/learnings/rates\n" in pushed.stdout
    assert "+loss 0.31\n" in pushed.stdout
    assert "--- a/memory/core.md\n+++ b/memory/core.md\n" in pulled.stdout
    assert "+- docs at /docs\n" in pulled.stdout
    assert files(both.folder) == before
    assert (both.layers.core_markdown(), both.layers.notes()) == (there, [])


def test_a_diff_says_what_differs_and_what_each_command_would_do(both: Both) -> None:
    assert both.do("diff").stdout == "Nothing differs.\n"
    filled(both).push()
    both.write("core.md", both.read("core.md").replace("Ada", "Ada and Ben"))
    both.layers.write_daily_note("theirs", date="2026-03-15")
    before = files(both.folder)

    shown = both.do("diff")
    told = json.loads(both.do("diff", "--json").stdout)

    assert shown.stdout.splitlines()[:2] == [
        "Push sends the section user of core.",
        "Pull brings 1 note of the day 2026-03-15.",
    ]
    assert "-Ada\n" in shown.stdout
    assert "+Ada and Ben\n" in shown.stdout
    assert [(item["key"], item["way"]) for item in told["core"]] == [("user", "push")]
    assert [(item["way"], item["local"]) for item in told["days"]] == [("pull", None)]
    assert files(both.folder) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("漢" * 3_000, 3_000),
        ("\u00a0".join(["word"] * 1_001), 1_001),
        ("\t".join(["word"] * 1_001), 1_001),
        ("\u2014".join(["word"] * 1_001), 1_001),
        ("| a | b |\n| --- | --- |\n" + "| word | word |\n" * 449, 900),
        (f"https://example.org/{'x' * 4_980}", 167),
        ("ภาษาไทย" * 20, 28),
    ],
    ids=["ideographs", "no-break spaces", "tabs", "dashes", "table", "long URL", "Thai"],
)
def test_words_are_counted_alike_by_http_and_on_a_folder(both: Both, text: str, words: int) -> None:
    both.layers.set_section("user", text, if_match="*")
    both.pull()

    done = run("workspace", "trim", str(both.folder), "--max-words", "100000", "--json")

    assert both.layers.core().words == both.layers.section("user").words == words
    counted = f"Core has {words:,} words of at most 100,000."
    assert json.loads(done.stdout)["report"] == ["Nothing to move.", counted]
    assert f" {words:,} words " in both.do_on_checkpoint("core").stdout


def test_a_credential_in_core_stops_a_push_before_anything_is_sent(both: Both) -> None:
    filled(both)
    both.write("core.md", CORE.replace("Ada", f"Ada, {SECRET}"))

    for more in ((), ("--dry-run",)):
        done = both.do("push", *more, code=2)
        assert "user holds what looks like a credential" in done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert (both.layers.core().human, both.layers.notes()) == ("", [])


def test_what_the_service_will_not_have_is_told_and_the_rest_is_sent(both: Both) -> None:
    filled(both)
    both.write("archival/people/long.md", "x" * 40_000)

    done = both.do("push", code=1)

    assert "Refused people/long: " in done.stderr
    assert "Sent the note learnings/rates." in done.stdout
    assert "people/long" not in done.stdout
    assert both.differ() == {"people/long": "push"}


def test_each_note_that_is_refused_is_named_and_sent_alone_once_it_is_mended(both: Both) -> None:
    filled(both)
    for name in ("ada", "noor"):
        both.write(f"archival/people/{name}.md", "x" * 40_000)
    before = files(both.folder)

    refused = both.do("push", code=1)
    told = json.loads(both.do("push", "--json", code=1).stdout)["refused"]

    said = [line.partition(": ")[0] for line in refused.stderr.splitlines()]
    assert said == ["Refused people/ada", "Refused people/noor"]
    assert list(told) == ["people/ada", "people/noor"]
    assert all("32768" in reason or "32,768" in reason for reason in told.values())
    assert [note.ref for note in both.layers.notes()] == ["learnings/rates"]
    assert both.layers.core_markdown() == CORE
    assert len(both.layers.daily_notes()) == 2
    changed = {name for name, file in files(both.folder).items() if before.get(name) != file}
    assert all(name.startswith(".lineage/") for name in changed)

    for name in ("ada", "noor"):
        both.write(f"archival/people/{name}.md", NOTE.replace("Rates", name))
    mended = both.do("push")

    assert mended.stdout.splitlines() == ["Sent the note people/ada.", "Sent the note people/noor."]
    assert mended.stderr == ""
    assert both.differ() == {}
    assert len(both.layers.daily_notes()) == 2


def test_what_core_and_a_note_both_say_is_sent_as_it_is(both: Both) -> None:
    both.write("core.md", CORE.replace("Ada", "- Rate 0.1 diverges\n- Ada"))
    both.write("archival/learnings/rates.md", NOTE)

    both.do("push")

    assert "- Rate 0.1 diverges\n- Ada" in both.layers.section("user").text
    assert [note.ref for note in both.layers.notes()] == ["learnings/rates"]
    assert both.differ() == {}


def test_what_somebody_edits_during_a_push_is_not_overwritten(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(both).push()
    both.write("core.md", both.read("core.md").replace("Ada", "mine"))
    both.write("archival/learnings/rates.md", f"{NOTE}\nmine\n")

    def read_and_be_late(service: Service, checkpoint: str) -> Remote:
        monkeypatch.undo()
        seen = read_remote(service, checkpoint)
        both.layers.set_section("user", "theirs", if_match="*")
        [note] = both.layers.notes()
        both.layers.correct_note(note.id, f"{NOTE}\ntheirs\n", if_match="*")
        return seen

    monkeypatch.setattr(syncing, "read_remote", read_and_be_late)
    done = push(both.folder, both.service, both.tree.checkpoint, overwrite=False, dry_run=False)

    assert {key: error.status for key, error in done.left.refused.items()} == {
        "user": 412,
        "learnings/rates": 412,
    }
    assert both.layers.section("user").text == "theirs"
    assert [note.text[-7:] for note in both.layers.notes()] == ["theirs\n"]
    assert both.differ() == {"user": "conflict", "learnings/rates": "conflict"}


def test_a_checkpoint_made_anew_is_not_taken_for_the_former_one(both: Both) -> None:
    filled(both).push()
    checkpoint = both.tree.checkpoint
    assert both.tree.api.purge(checkpoint).status_code == 204
    answer(both.tree.api.checkpoint(checkpoint))

    both.push()

    assert both.layers.core_markdown() == CORE
    assert [note.text for note in both.layers.notes()] == [NOTE]


def test_two_checkpoints_are_kept_apart(both: Both, grow: Grow) -> None:
    filled(both).push()
    other = Both(both.folder, both.service, grow())

    other.push()

    assert other.layers.core_markdown() == both.layers.core_markdown() == CORE
    assert both.differ() == other.differ() == {}


def test_an_unknown_checkpoint_is_refused(both: Both) -> None:
    url = str(both.tree.api.http.base_url)

    for command in ("push", "pull", "diff"):
        done = run("workspace", command, str(both.folder), "nowhere", url=url)
        assert (done.returncode, done.stdout) == (1, "")
        assert "There is no checkpoint 'nowhere'." in done.stderr


def test_odd_core_files_take_what_is_pulled_and_keep_their_own(both: Both) -> None:
    own = "---\r\ntags: x\r\n---\r\nMy words.\r\n\r\n## user\r\n\r\nAda\r\n\r\n## Plans\r\n- mine"
    both.write("core.md", own)
    both.push()
    both.layers.set_section("user", "Ada\nBen", if_match="*")
    both.layers.set_section("identity", "Careful.", if_match="*")

    both.pull()

    text = both.read("core.md")
    assert text.startswith(own.replace("Ada\r\n", "Ada\r\nBen\r\n"))
    assert "## Identity" in text
    assert "Careful." in text
    assert both.differ() == {}


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


def test_words_outside_the_sections_of_core_are_told_and_stay(both: Both) -> None:
    own = f"{CORE}\n## Scratch\n\n- my own words\n\n## User\n\ntwice\n"
    both.write("core.md", f"Mine.\n\n{own}")
    told = "memory/core.md: 7 words stand in no section of core, and stay in the folder alone."

    for command, more in (("diff", ()), ("push", ("--dry-run",)), ("pull", ()), ("push", ())):
        assert f"Skipped {told}" in both.do(command, *more).stderr
        assert json.loads(both.do(command, *more, "--json").stdout)["skipped"] == [told]
    assert both.read("core.md").startswith("Mine.\n")
    assert both.read("core.md").endswith("twice\n")


def test_a_core_of_sections_alone_leaves_nothing_to_tell(both: Both) -> None:
    assert filled(both).do("push").stderr == ""


def reference(text: str, *, at: float = 10.0) -> Json:
    """The snapshot's line of a note that is people/ada."""
    metadata = {"topic": "people", "name": "ada"}
    return entry(text, None, kind="reference", ts=at, metadata=metadata)


def restored(both: Both, *notes: Json) -> None:
    lines = [header(both.tree.checkpoint), *notes]
    answer(both.tree.api.restore(both.tree.checkpoint, sealed(lines), on_conflict="merge"))


def test_of_two_notes_with_one_ref_the_older_is_told_by_every_command(both: Both) -> None:
    older, newer = reference("# Ada\n"), reference("# Ada L.\n", at=11.0)
    restored(both, older, newer)
    told = f"note {older['id']} of the checkpoint, 'Ada': a newer note is people/ada too."

    assert both.do("pull").stdout == "Pulled the note people/ada.\n"

    assert both.read("archival/people/ada.md") == newer["text"]
    for command in ("pull", "push", "diff"):
        assert f"Skipped {told}" in both.do(command).stderr
        [skipped] = json.loads(both.do(command, "--json").stdout)["skipped"]
        assert skipped.startswith(told)
    assert both.do("diff").stdout == "Nothing else differs.\n"


def test_a_push_leaves_the_older_of_two_notes_with_one_ref_as_it_is(both: Both) -> None:
    older, newer = reference("# Ada\n"), reference("# Ada L.\n", at=11.0)
    restored(both, older, newer)
    both.write("archival/people/ada.md", "# Ada of mine\n")

    assert "Both sides changed the note people/ada." in both.do("push", code=1).stderr
    assert [note.text for note in both.layers.notes()] == [older["text"], newer["text"]]

    both.push(overwrite=True)
    assert [note.text for note in both.layers.notes()] == [older["text"], "# Ada of mine\n"]


def call_as_older_versions_could(service: InProcessService, note: str, name: str) -> None:
    ledger = sa.create_engine(service.app.state.services.ledger.url)
    metadata = json.dumps({"topic": "people", "name": name})
    with ledger.begin() as connection:
        connection.execute(
            sa.text("UPDATE entries SET metadata = :metadata WHERE id = :note"),
            {"metadata": metadata, "note": note},
        )
    ledger.dispose()


@pytest.mark.parametrize("name", ["../x", "two\nlines", "x" * 500], ids=["path", "lines", "long"])
def test_a_note_that_no_file_can_hold_is_told_and_not_said_to_be_pulled(
    both: Both, service: InProcessService, name: str
) -> None:
    note = both.layers.write_note_text("people", "ada", "# Ada\n")
    call_as_older_versions_could(service, note.id, name)
    before = files(both.folder)
    told = f"Skipped note {f'people/{name}'!r} of the checkpoint, which cannot be pulled: "

    for command, said in (("diff", "Nothing else differs."), ("pull", "Nothing to pull.")):
        done = both.do(command)
        assert done.stderr.startswith(told)
        assert done.stdout == f"{said}\n"
    after = files(both.folder)
    assert {path for path in after if path not in before} <= {".lineage/sync.json", ".lineage/lock"}


def test_a_day_that_cannot_be_read_is_not_said_to_be_pulled(both: Both) -> None:
    both.layers.write_daily_note("theirs", date="2026-03-14")
    (both.folder / "memory" / "2026-03-14.md").write_bytes(b"\xff mine\n")

    done = both.do("pull")

    assert done.stdout == "Nothing to pull.\n"
    assert "Skipped memory/2026-03-14.md: " in done.stderr


def test_a_note_whose_ref_another_takes_during_a_push_is_told_by_its_new_one(
    both: Both, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_and_be_late(service: Service, checkpoint: str) -> Remote:
        monkeypatch.undo()
        seen = read_remote(service, checkpoint)
        both.layers.write_note_text("people", "ada", "# Ada of theirs\n")
        return seen

    both.write("archival/people/ada.md", "# Ada of mine\n")
    monkeypatch.setattr(syncing, "read_remote", read_and_be_late)
    url = str(both.tree.api.http.base_url)
    push_and_pull.push(both.folder, both.tree.checkpoint, url=url)

    told = capsys.readouterr()
    assert told.out == "Sent the note people/ada as people/ada-2.\n"
    assert "Call yours people/ada-2 in the folder too, then pull." in told.err

    people = both.folder / "memory" / "archival" / "people"
    (people / "ada.md").rename(people / "ada-2.md")
    both.pull()
    assert both.read("archival/people/ada.md") == "# Ada of theirs\n"
    assert both.differ() == {}


def test_a_daily_note_that_is_refused_is_named_by_its_day_and_first_words(both: Both) -> None:
    both.write("2026-03-14.md", f"# 2026-03-14\n\n- the loss fell {'again ' * 8_000}\n")

    done = both.do("push", code=1)

    assert done.stderr.startswith("Refused 2026-03-14, 'the loss fell again again again again…': ")
