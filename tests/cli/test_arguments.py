"""Arguments that can be nothing: told by their names before anything is sent, exit code 2."""

import gzip
import json
from pathlib import Path

import pytest

from app import workspace
from tests.cli.running import run
from tests.support.client import Api
from tests.support.service import InProcessService
from tests.support.tree import Tree

# What is read of the arguments does not depend on who ranks.
EMBEDDED = pytest.mark.parametrize(("database", "archive"), [("sqlite", "embedded")], indirect=True)
# Nothing listens there: what is sent ends with another exit code.
NOBODY = "http://127.0.0.1:9"
SNAPSHOT = "memory_backup.jsonl.gz"
OF_A_CHECKPOINT = (
    ("tree",),
    ("core",),
    ("session",),
    ("demote", "user", "Ada"),
    ("promote",),
    ("consolidate",),
    ("trim",),
    ("heartbeat",),
    ("backup",),
    ("reindex",),
    ("reconcile",),
)
NO_IDS = ("a/../b", "bikes?format=mermaid#", "Bad Id", "", "..", "q\udcff")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all that the commands read."""
    header = {"kind": "header", "format": 1, "checkpoint": "exp1"}
    (tmp_path / SNAPSHOT).write_bytes(gzip.compress(json.dumps(header).encode() + b"\n"))
    (tmp_path / "run.jsonl").write_text('{"kind": "node", "name": "a"}\n')
    workspace.init(tmp_path / "notes")
    return tmp_path


def refused(folder: Path, *arguments: str) -> str:
    """Return the complaint about a bad argument."""
    done = run(*arguments, url=NOBODY, cwd=folder)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("command", OF_A_CHECKPOINT, ids=" ".join)
def test_a_command_takes_no_checkpoint_that_can_be_none(
    command: tuple[str, ...], folder: Path
) -> None:
    name, *rest = command

    assert "'checkpoint'" in refused(folder, name, "a/../b", *rest)


@pytest.mark.parametrize("command", ["push", "pull", "diff"])
def test_a_folder_is_compared_with_no_checkpoint_that_can_be_none(
    command: str, folder: Path
) -> None:
    assert "'checkpoint'" in refused(folder, "workspace", command, "notes", "a/../b")


@pytest.mark.parametrize("command", [("restore", SNAPSHOT), ("load", "run.jsonl")], ids=" ".join)
@pytest.mark.parametrize("given", NO_IDS)
def test_a_file_goes_into_no_checkpoint_that_can_be_none(
    command: tuple[str, ...], given: str, folder: Path
) -> None:
    assert "'--checkpoint'" in refused(folder, *command, "--checkpoint", given)


@pytest.mark.parametrize("given", NO_IDS)
def test_no_tree_is_asked_for_by_what_is_no_id(given: str, folder: Path) -> None:
    assert "'checkpoint'" in refused(folder, "tree", given)


@pytest.mark.parametrize("given", ["exp1", "exp1.", "exp1.a/b", "exp1/../b.a", "exp1.q\udcff", ""])
def test_no_node_is_searched_by_what_is_no_id(given: str, folder: Path) -> None:
    assert "'node'" in refused(folder, "search", given, "rate")


@pytest.mark.parametrize("command", ["restore", "resume"])
def test_a_snapshot_names_no_checkpoint_that_can_be_none(command: str, folder: Path) -> None:
    header = b'{"kind": "header", "format": 1, "checkpoint": "a/../b"}\n'
    (folder / SNAPSHOT).write_bytes(gzip.compress(header))

    said = refused(folder, command, SNAPSHOT if command == "restore" else ".")

    assert f"{SNAPSHOT} names 'a/../b', which is no checkpoint's id." in said


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("search", "exp1.a", "q\udcff"), "'query'"),
        (("session", "exp1", "q\udcff"), "'query'"),
        (("demote", "exp1", "user", "q\udcff"), "'item'"),
        (("demote", "exp1", "user", "Ada", "--tag", "q\udcff"), "'--tag'"),
        (("promote", "exp1", "q\udcff"), "'note'"),
        (("tree", "exp1", "--url", "http://q\udcff"), "'--url'"),
        (("workspace", "demote", "notes", "user", "q\udcff"), "'item'"),
        (("workspace", "note", "notes", "q\udcff"), "'text'"),
    ],
)
def test_a_word_that_is_not_utf_8_is_told_by_its_name(
    arguments: tuple[str, ...], name: str, folder: Path
) -> None:
    said = refused(folder, *arguments)

    assert name in said
    assert "This is not UTF-8." in said


@EMBEDDED
def test_a_file_may_have_a_name_that_is_not_utf_8(
    service: InProcessService, tree: Tree, tmp_path: Path
) -> None:
    arguments = ("backup", tree.checkpoint, "-o", "q\udcff.gz")

    done = run(*arguments, url=service.base_url, cwd=tmp_path, PYTHONIOENCODING="utf-8:strict")

    assert (done.returncode, (tmp_path / "q\udcff.gz").is_file()) == (0, True), done.stderr
    assert done.stdout.endswith(" bytes in q\N{REPLACEMENT CHARACTER}.gz.\n")


@EMBEDDED
def test_a_restore_overwrites_no_checkpoint_that_it_was_not_told(
    service: InProcessService, tree: Tree, api: Api, folder: Path
) -> None:
    before = api.tree(tree.checkpoint).text

    done = run(
        *("restore", SNAPSHOT, "--on-conflict", "overwrite"),
        *("--checkpoint", f"elsewhere/../{tree.checkpoint}"),
        url=service.base_url,
        cwd=folder,
    )

    assert done.returncode == 2
    assert api.tree(tree.checkpoint).text == before
