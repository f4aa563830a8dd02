"""tree and search: what is drawn, on a terminal and in a pipe."""

import json
import os
import pty
import re
import subprocess
from contextlib import suppress

import pytest

from app.cli.tree_drawing import drawn
from tests.cli.running import COMMAND, ROOT, environment, run
from tests.conftest import API_KEY, Grow
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, unique_checkpoint

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
HEAVY = {"app.main", "app.db", "sqlalchemy", "fastapi", "numpy", "detect_secrets"}
ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
# What is shown of an answer does not depend on who ranked it.
EMBEDDED = pytest.mark.parametrize(("database", "archive"), [("sqlite", "embedded")], indirect=True)


def in_a_terminal(*arguments: str, url: str, **variables: str) -> str:
    """Return what a command writes to a terminal of 60 columns."""
    parent, child = pty.openpty()
    variables = {"TERM": "xterm-256color", "COLUMNS": "60", **variables}
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(url, **variables),
        cwd=ROOT,
        stdin=child,
        stdout=child,
        stderr=child,
    ) as process:
        os.close(child)
        shown = b""
        with suppress(OSError):  # how Linux says that the other end is closed
            while part := os.read(parent, 4096):
                shown += part
        os.close(parent)
    assert process.returncode == 0, shown
    return shown.decode()


@EMBEDDED
def test_a_tree_is_drawn_with_counts_seals_and_directions(
    service: InProcessService, tree: Tree
) -> None:
    tree.add("a3", "a", eval_summary="Look\nbehind   the door.")
    tree.write("a", "one", "two")
    tree.write("b", "three")
    answer(tree.api.seal(tree["b"]))

    done = run("tree", tree.checkpoint, url=service.base_url)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{tree.checkpoint}  6 nodes, 3 entries",
        "root  0 entries",
        "├─ a  2 entries",
        "│  ├─ a1  0 entries",
        "│  ├─ a2  0 entries",
        "│  └─ a3  0 entries  Look behind the door.",
        "└─ b  1 entry  sealed",
    ]


@EMBEDDED
def test_a_tree_for_scripts_is_what_the_service_answers(
    service: InProcessService, api: Api, tree: Tree
) -> None:
    done = run("tree", tree.checkpoint, "--json", url=service.base_url)

    assert json.loads(done.stdout) == answer(api.tree(tree.checkpoint))


@EMBEDDED
def test_only_a_terminal_gets_colours_and_cut_lines(service: InProcessService, tree: Tree) -> None:
    tree.add("c", "root", eval_summary="far " * 100)

    piped = run("tree", tree.checkpoint, url=service.base_url).stdout
    shown = in_a_terminal("tree", tree.checkpoint, url=service.base_url)
    plain = in_a_terminal("tree", tree.checkpoint, url=service.base_url, NO_COLOR="1")

    assert ("\x1b" in piped, ("far " * 100).strip() in piped) == (False, True)
    assert "\x1b[1;36mroot" in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", plain)
    lines = ESCAPES.sub("", shown).splitlines()
    assert lines == ESCAPES.sub("", plain).splitlines()
    assert lines[-1].startswith("└─ c  0 entries  far far")
    assert (lines[-1][-1], len(lines[-1]) <= 60) == ("…", True)


@EMBEDDED
def test_words_of_others_cannot_steer_the_terminal(service: InProcessService, tree: Tree) -> None:
    evil = "red \x1b[31m title \x1b]0;gotcha\x07 \u202eback"
    tree.add("c", "root", eval_summary=evil)
    tree.write("root", evil)

    drawn_tree = run("tree", tree.checkpoint, url=service.base_url).stdout
    hits = run("search", tree["a"], "red title", url=service.base_url).stdout

    for output in (drawn_tree, hits):
        assert "gotcha" in output
        assert not {"\x1b", "\x07", "\u202e"} & set(output)


@EMBEDDED
def test_a_terminal_without_line_drawing_gets_letters(
    service: InProcessService, tree: Tree
) -> None:
    done = run("tree", tree.checkpoint, url=service.base_url, PYTHONIOENCODING="ascii")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2:4] == ["|- a  0 entries", "|  |- a1  0 entries"]


def test_a_chain_of_thousands_is_drawn_in_short_lines() -> None:
    chain = [
        {
            "id": f"exp1.n{depth}",
            "name": f"n{depth}",
            "parent": f"exp1.n{depth - 1}" if depth else None,
            "depth": depth,
            "eval_summary": None,
            "sealed": False,
            "entry_count": 0,
            "children": [f"exp1.n{depth + 1}"] if depth < 4999 else [],
        }
        for depth in range(5000)
    ]

    lines = [line.plain for line in drawn(chain, width=60, ascii_only=False)]

    assert len(lines) == 5000
    assert max(map(len, lines)) <= 60
    assert lines[2] == "   └─ n2  0 entries"
    assert lines[-1].startswith("⋯4989 ")


@ONE_DATABASE
def test_a_search_shows_the_scope_of_the_node_and_no_more(
    service: InProcessService, tree: Tree
) -> None:
    tree.write("root", "a blue door")
    tree.write("b", "another blue door")

    done = run("search", tree["a"], "blue door", url=service.base_url)
    found = json.loads(run("search", tree["a"], "blue door", "--json", url=service.base_url).stdout)

    assert ("a blue door" in done.stdout, "another" in done.stdout) == (True, False)
    assert tree["root"] in done.stdout
    assert [hit["text"] for hit in found["results"]] == ["a blue door"]


@EMBEDDED
def test_a_long_text_is_cut_unless_asked_for(service: InProcessService, tree: Tree) -> None:
    tree.write("root", "blue " * 200 + "door")

    cut = run("search", tree["a"], "blue door", url=service.base_url).stdout
    full = run("search", tree["a"], "blue door", "--full", url=service.base_url).stdout

    assert ("…" in cut, "door" in cut) == (True, False)
    assert ("…" in full, "door" in full) == (False, True)


@EMBEDDED
def test_a_table_is_folded_by_a_terminal_and_whole_in_a_pipe(
    service: InProcessService, tree: Tree
) -> None:
    text = "blue door " * 20
    tree.write("root", text)

    piped = run("search", tree["a"], "blue", url=service.base_url, COLUMNS="80").stdout
    shown = in_a_terminal("search", tree["a"], "blue", url=service.base_url)

    assert text.strip() in piped
    assert max(map(len, ESCAPES.sub("", shown).splitlines())) <= 60


@EMBEDDED
@pytest.mark.parametrize(
    ("node", "code", "said"),
    [("nonode", 2, "no node's id"), ("{checkpoint}.nobody", 1, "There is no node")],
)
def test_a_search_of_no_node_is_told(
    service: InProcessService, tree: Tree, node: str, code: int, said: str
) -> None:
    done = run("search", node.format(checkpoint=tree.checkpoint), "x", url=service.base_url)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


@EMBEDDED
def test_nothing_found_is_no_failure(service: InProcessService, tree: Tree) -> None:
    done = run("search", tree["root"], "anything", url=service.base_url)

    assert done.returncode == 0
    assert done.stdout == "Nothing found. Searched: no ancestors.\n"


@EMBEDDED
def test_a_reader_that_has_had_enough_gets_no_traceback(
    service: InProcessService, grow: Grow, api: Api
) -> None:
    tree = grow()
    for number in range(200):
        answer(api.node(tree.checkpoint, f"x{number}", "root", eval_summary="far " * 200))
    with subprocess.Popen(
        [*COMMAND, "tree", tree.checkpoint],
        env=environment(service.base_url),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read()

    assert (process.returncode, complaints) == (1, b"")


@EMBEDDED
def test_a_key_is_asked_for_and_taken(keyed_service: InProcessService, keyed_api: Api) -> None:
    checkpoint = unique_checkpoint()
    answer(keyed_api.checkpoint(checkpoint))

    without = run("tree", checkpoint, url=keyed_service.base_url)
    given = run("tree", checkpoint, url=keyed_service.base_url, LINEAGE_API_KEY=API_KEY)

    assert (without.returncode, given.returncode) == (1, 0)
    assert given.stdout == f"{checkpoint}  0 nodes, 0 entries\n"


def test_every_command_has_help_with_examples_and_exit_codes() -> None:
    listed = run("--help").stdout
    commands = ("serve", "migrate", "openapi", "tree", "search", "backup", "restore", "resume")
    layers = ("core", "session", "demote", "promote", "consolidate", "trim", "heartbeat")
    for command in (*commands, *layers, "load", "reindex", "reconcile", "doctor"):
        text = run(command, "--help").stdout
        assert f" {command} " in listed
        assert "Example" in text, command
        assert f"letta-lineage {command}" in text, command
        assert "Exit codes: 0 done, 1 the service refused" in text, command


def test_every_command_of_a_folder_has_help_with_examples() -> None:
    listed = run("workspace", "--help").stdout
    moves = ("demote", "promote", "consolidate", "trim", "heartbeat")
    for command in ("init", "note", *moves, "push", "pull", "diff"):
        text = run("workspace", command, "--help").stdout
        assert f" {command} " in listed
        assert f"letta-lineage workspace {command} notes" in text, command


def test_a_client_command_loads_no_part_of_the_service() -> None:
    done = subprocess.run(
        [COMMAND[0], "-c", f"import sys, app.cli; print({HEAVY} & set(sys.modules))"],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == "set()\n"
