"""The layers on a folder by the command line: what it prints, refuses and leaves alone."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, ROOT, environment, run

SECRET = "ghp_" + "a1B2" * 9
CORE = """\
# Core Memory

## Identity

A careful experimenter.

## User

Ada

## Active Context

- Locatering: survey of sites
- sweep runs

## Quick Reference
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with something in its core."""
    made = run("workspace", "init", str(tmp_path / "notes"))
    assert made.returncode == 0, made.stderr
    (tmp_path / "notes" / "memory" / "core.md").write_text(CORE)
    return tmp_path / "notes"


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and its time."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def do(folder: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = run("workspace", command, str(folder), *arguments)
    assert done.returncode == 0, done.stderr
    return done


def test_init_makes_a_workspace_and_nothing_over_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "core.md").write_text("# Mine\n")

    made = run("workspace", "init", str(folder), "--timezone", "Asia/Tokyo")
    again = run("workspace", "init", str(folder), "--json")

    assert made.returncode == again.returncode == 0
    assert "Makes memory/archival/people/." in made.stdout
    assert (folder / "memory" / "core.md").read_text() == "# Mine\n"
    settings = json.loads((folder / ".lineage" / "workspace.json").read_text())
    assert settings == {"timezone": "Asia/Tokyo"}
    assert json.loads(again.stdout) == {
        "changes": [],
        "report": [],
        "skipped": [],
        "dry_run": False,
    }


def test_init_says_that_a_workspace_keeps_its_zone(folder: Path) -> None:
    done = do(folder, "init", "--timezone", "Asia/Tokyo")

    assert done.stdout == "Its zone stays UTC, by .lineage/workspace.json.\n"


def test_a_misspelt_zone_is_bad_input(tmp_path: Path) -> None:
    done = run("workspace", "init", str(tmp_path), "--timezone", "Asia/Tokio")

    assert (done.returncode, done.stdout) == (2, "")
    assert "'Asia/Tokio' is no time zone" in done.stderr


@pytest.mark.parametrize(
    ("command", "arguments", "shown"),
    [
        ("note", ("Decision: train in bf16.",), "+- "),
        ("demote", ("active-context", "sweep runs"), "+- See archival: "),
        ("trim", ("--max-words", "8"), "+- See archival: "),
        ("heartbeat", ("--max-words", "8"), "+- See archival: "),
    ],
)
def test_a_dry_run_prints_the_diff_and_changes_no_byte_and_no_time(
    folder: Path, command: str, arguments: tuple[str, ...], shown: str
) -> None:
    before = files(folder)

    dry = do(folder, command, *arguments, "--dry-run")

    assert shown in dry.stdout
    assert dry.stdout.startswith("--- ")
    assert files(folder) == before
    done = do(folder, command, *arguments, "--json")
    assert "".join(change["diff"] for change in json.loads(done.stdout)["changes"]) == dry.stdout


def test_a_dry_run_with_nothing_to_do_says_so(folder: Path) -> None:
    assert do(folder, "consolidate", "--dry-run").stdout == "Nothing would change.\n"


def test_what_is_demoted_is_in_a_note_and_core_refers_to_it(folder: Path) -> None:
    done = do(
        folder,
        "demote",
        "active-context",
        "Locatering: survey of sites",
        *("--topic", "projects", "--title", "Locatering", "--tag", "survey"),
    )

    assert "Demoted from Active Context to projects/locatering" in done.stdout
    core = (folder / "memory" / "core.md").read_text()
    assert "- See archival: projects/locatering\n- sweep runs\n" in core
    note = (folder / "memory" / "archival" / "projects" / "locatering.md").read_text()
    assert "Locatering: survey of sites" in note
    assert "survey" in note.partition("## Tags")[2]


def test_what_is_promoted_is_in_core_and_stays_a_note(folder: Path) -> None:
    note = folder / "memory" / "archival" / "learnings" / "rates.md"
    note.write_text("# Rates — 2026-03-14\n\n## Summary\n\nRate 0.1 diverges\n")

    do(folder, "promote", "learnings/rates", "--section", "active-context")

    assert "Rate 0.1 diverges" in (folder / "memory" / "core.md").read_text()
    assert "Rate 0.1 diverges" in note.read_text()


def test_consolidate_takes_decisions_of_the_last_days_into_notes_once(folder: Path) -> None:
    do(folder, "note", "Decision: train in bf16.")

    first, second = do(folder, "consolidate"), do(folder, "consolidate", "--dry-run")

    assert "Extracted to decisions/" in first.stdout
    assert second.stdout == "Nothing would change.\n"


def test_a_promotion_of_a_likely_credential_is_refused_without_repeating_it(folder: Path) -> None:
    note = folder / "memory" / "archival" / "reference" / "keys.md"
    note.write_text(f"# Keys — 2026-03-14\n\n## Summary\n\nThe token is {SECRET}\n")
    before = files(folder)

    for more in ((), ("--dry-run",), ("--json",)):
        done = run("workspace", "promote", str(folder), "reference/keys", *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert "memory/core.md holds what looks like a credential" in done.stderr
        assert "`reference`" in done.stderr
        assert SECRET not in done.stderr
    assert files(folder) == before


def test_a_credential_that_a_person_wrote_into_core_is_no_reason_to_refuse_a_trim(
    folder: Path,
) -> None:
    core = folder / "memory" / "core.md"
    core.write_text(CORE.replace("A careful experimenter.", f"token {SECRET}"))

    do(folder, "trim", "--max-words", "8")

    assert "See archival: " in core.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("demote", "{}", "active-context", "nowhere"), 1, "No item of the section"),
        (("promote", "{}", "learnings/nothing"), 1, "There is no note 'learnings/nothing'."),
        (("note", "{}", " "), 2, "blank"),
        (("note", "{}", "x", "--date", "2026-13-45"), 2, "YYYY-MM-DD"),
        (("note", "{}", "x", "--date", "../2026-01-01"), 2, "YYYY-MM-DD"),
        (("demote", "{}", "sites", "x"), 2, "sites"),
        (("trim", "{}", "--max-words", "0"), 2, "at least 1"),
        (("consolidate", "{}", "--days", "0"), 2, "The number of days"),
        (("note", "{}/none", "x"), 2, "Name a directory"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence_and_changes_nothing(
    folder: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    before = files(folder)

    done = run("workspace", *(argument.replace("{}", str(folder)) for argument in arguments))

    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert files(folder) == before


def test_a_folder_of_which_nobody_made_a_workspace_is_told_how_to(tmp_path: Path) -> None:
    done = run("workspace", "trim", str(tmp_path))

    assert done.returncode == 2
    assert "letta-lineage workspace init" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_left_alone_is_named_beside_the_result(folder: Path) -> None:
    (folder / "memory" / "archival" / "people" / "ada.md").write_bytes(b"\xff\n")

    done = do(folder, "trim")

    assert "memory/archival/people/ada.md: not UTF-8; left as it is." in done.stderr


def test_crlf_comes_out_of_a_pipe_as_it_is(folder: Path) -> None:
    core = folder / "memory" / "core.md"
    core.write_bytes(CORE.replace("\n", "\r\n").encode())

    done = subprocess.run(
        [*COMMAND, "workspace", "demote", str(folder), "user", "Ada", "--dry-run"],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert b"-Ada\r\n" in done.stdout
