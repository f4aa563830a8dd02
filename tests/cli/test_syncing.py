"""push, pull and diff of a folder and a checkpoint: nothing is lost, and nothing is deleted."""

import json
from pathlib import Path

import pytest

from app.cli import syncing
from app.cli.remote import Remote, read_remote
from app.cli.syncing import push
from app.client import Service
from tests.cli.both import NOTE, Both, filled
from tests.cli.running import run
from tests.cli.test_workspace import CORE, files
from tests.conftest import Grow
from tests.support.client import answer

pytestmark = pytest.mark.parametrize(
    ("database", "archive"), [("sqlite", "embedded")], indirect=True
)


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
