"""The layers of a checkpoint by the command line: looked at, and moved between."""

import json
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.running import COMMAND, ROOT, environment, run
from tests.cli.test_workspace import SECRET
from tests.support.client import Json, answer
from tests.support.tree import Tree

pytestmark = pytest.mark.parametrize(
    ("database", "archive"), [("sqlite", "embedded")], indirect=True
)

Do = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def do(tree: Tree) -> Do:
    """Run a command on the checkpoint of the tree; it must do what it is told."""

    def call(command: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        url = str(tree.api.http.base_url)
        done = run(command, tree.checkpoint, *arguments, url=url)
        assert done.returncode == code, done.stderr
        return done

    return call


@pytest.fixture
def core(tree: Tree) -> None:
    """Something in every section but one."""
    answer(
        tree.api.put_core_memory(
            tree.checkpoint,
            persona="A careful experimenter.",
            human="Ada, 東京",
            active_context="- Locatering: survey of sites\n- sweep runs",
        )
    )


def stored(tree: Tree) -> list[Json]:
    notes = answer(tree.api.notes(tree.checkpoint))["items"]
    return [answer(tree.api.core_memory(tree.checkpoint)), *notes]


@pytest.mark.usefixtures("core")
def test_core_memory_is_shown_with_its_words(do: Do) -> None:
    shown = do("core").stdout

    assert shown.startswith("# Core Memory\n\n## Identity\n\nA careful experimenter.\n")
    assert shown.endswith("## Quick Reference\n\nCore memory has 12 words of at most 1,000.\n")


@pytest.mark.usefixtures("core")
def test_its_markdown_form_is_that_of_the_service_byte_for_byte(tree: Tree) -> None:
    url = str(tree.api.http.base_url)
    path = f"/checkpoints/{tree.checkpoint}/core-memory"
    served = tree.api.request("GET", path, headers={"Accept": "text/markdown"})

    done = subprocess.run(
        [*COMMAND, "core", tree.checkpoint, "--markdown"],
        env=environment(url),
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == served.content


@pytest.mark.usefixtures("core")
def test_core_memory_is_json_for_scripts(tree: Tree, do: Do) -> None:
    assert json.loads(do("core", "--json").stdout) == answer(tree.api.core_memory(tree.checkpoint))
    both = do("core", "--json", "--markdown", code=2)
    assert "both want standard output" in both.stderr


@pytest.mark.usefixtures("core")
def test_a_session_is_core_memory_todays_notes_and_what_helps(tree: Tree, do: Do) -> None:
    answer(tree.api.daily_note(tree.checkpoint, "The sweep began"))
    answer(tree.api.write_note(tree.checkpoint, title="Rates", summary="Rate 0.1 diverges"))

    plain, asked = do("session"), do("session", "which rate diverges")
    told = json.loads(do("session", "which rate diverges", "--json").stdout)

    assert plain.stdout.startswith("# Core Memory\n")
    assert f"# Today, {told['date']}\n\nThe sweep began\n" in plain.stdout
    assert "learnings/rates" not in plain.stdout
    assert "learnings/rates" in asked.stdout
    assert "Rate 0.1 diverges" in asked.stdout
    assert told["core"]["human"] == "Ada, 東京"
    assert [hit["note"]["ref"] for hit in told["archival"]["results"]] == ["learnings/rates"]


def test_a_session_of_nothing_says_so(do: Do) -> None:
    shown = do("session", "anything").stdout

    assert "Nothing yet.\n" in shown
    assert shown.endswith("No note was found.\n")


@pytest.mark.usefixtures("core")
def test_an_item_is_demoted_and_the_dry_run_shows_it_first(tree: Tree, do: Do) -> None:
    item = ("active-context", "sweep runs", "--topic", "projects", "--title", "Sweep")
    before = stored(tree)

    dry = do("demote", *item, "--tag", "lr", "--dry-run")
    assert "-- sweep runs\n+- See archival: projects/sweep\n" in dry.stdout
    assert stored(tree) == before

    done = do("demote", *item, "--tag", "lr")
    assert done.stdout.splitlines() == [
        "Demoted from Active Context to projects/sweep: sweep runs",
        "Core memory has 13 words of at most 1,000.",
    ]
    core, note = stored(tree)
    assert core["active_context"].endswith("- See archival: projects/sweep")
    assert (note["ref"], note["tags"]) == ("projects/sweep", ["lr"])


def test_a_note_is_promoted_by_its_ref_or_id(tree: Tree, do: Do) -> None:
    first = answer(tree.api.write_note(tree.checkpoint, title="Rates", summary="Rate 0.1 diverges"))
    answer(tree.api.write_note(tree.checkpoint, title="Depth", summary="Depth 4 is best"))

    do("promote", first["id"], "--section", "active-context")
    told = json.loads(do("promote", "learnings/depth", "--json").stdout)

    core = answer(tree.api.core_memory(tree.checkpoint))
    assert "Rate 0.1 diverges" in core["active_context"]
    assert "Depth 4 is best" in core["quick_reference"]
    assert (told["changed"], told["dry_run"]) == (True, False)
    assert [step["action"] for step in told["steps"]] == ["promoted"]
    assert do("promote", "--dry-run").stdout == "Nothing would change.\n"


def test_daily_notes_are_consolidated_once(tree: Tree, do: Do) -> None:
    answer(tree.api.daily_note(tree.checkpoint, "Decision: train in bf16."))

    first, second = do("consolidate"), do("consolidate", "--days", "30")

    assert "Extracted to decisions/" in first.stdout
    assert second.stdout.startswith("Nothing to move.\n")


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("command", ["trim", "heartbeat"])
def test_core_memory_is_brought_under_a_limit(tree: Tree, do: Do, command: str) -> None:
    done = do(command, "--max-words", "10")

    assert "Demoted from Active Context" in done.stdout
    assert answer(tree.api.core_memory(tree.checkpoint))["words"] <= 10


def test_a_credential_in_a_note_is_not_promoted(tree: Tree, do: Do) -> None:
    answer(
        tree.api.write_note(tree.checkpoint, "reference", title="Key", summary=f"It is {SECRET}")
    )

    done = do("promote", "reference/key", code=2)

    assert "looks like a credential" in done.stderr
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("demote", "active-context", "nowhere"), "No item of the section 'active-context'"),
        (("promote", "learnings/nothing"), "There is no note 'learnings/nothing'."),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(
    do: Do, command: tuple[str, ...], sentence: str
) -> None:
    done = do(*command, code=1)

    assert done.stdout == ""
    assert sentence in done.stderr


def test_an_unknown_checkpoint_is_refused_by_every_command(tree: Tree) -> None:
    url = str(tree.api.http.base_url)
    commands = (("core",), ("core", "--markdown"), ("session",), ("consolidate",), ("trim",))

    for command, *more in commands:
        done = run(command, "nowhere", *more, url=url)
        assert (done.returncode, done.stdout) == (1, "")
        assert "There is no checkpoint 'nowhere'." in done.stderr
