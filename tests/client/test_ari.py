"""A worker of ari's memory skill changes its import, and goes on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.client import (
    CowViolation,
    ScopeViolation,
    add_memory,
    clear_node_memory,
    get_experiment_context,
    get_node_memory,
    search_memory,
)
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, unique_checkpoint

PAGE = Path(__file__).parents[2] / "docs" / "moving-from-ari.md"

pytestmark = pytest.mark.usefixtures("default_worker")


@pytest.fixture
def run(service: InProcessService, api: Api, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A run as ari has it: a directory, named nodes, the current one in the environment."""
    directory = f"/runs/{unique_checkpoint()}"
    tree = Tree(api, answer(api.checkpoint(path=directory))["id"])
    tree.add("node_root")
    tree.add("node_1", "node_root")
    tree.add("node_2", "node_root")
    monkeypatch.setenv("LINEAGE_URL", service.base_url)
    monkeypatch.setenv("ARI_CHECKPOINT_DIR", directory)
    monkeypatch.setenv("ARI_CURRENT_NODE_ID", "node_1")
    return tree


def test_the_five_calls_take_and_answer_what_they_did(run: Tree) -> None:
    run.write("node_root", "Rate 0.1 diverges.", metadata={"type": "log"})
    answer(run.api.put_core_memory(run.checkpoint, context={"goal": "loss"}))

    added = add_memory("node_1", "Rate 0.01 converges.", {"step": 3})
    results = search_memory("rate", ["node_root"], 5)["results"]
    entries = get_node_memory("node_1")["entries"]

    own = run.api.entries(run["node_1"]).json()["items"]
    assert added == {"ok": True, "id": own[0]["id"]}
    assert [set(hit) for hit in results] == [{"entry_id", "node_id", "text", "metadata", "score"}]
    assert (results[0]["node_id"], results[0]["text"]) == ("node_root", "Rate 0.1 diverges.")
    assert results[0]["metadata"] == {"type": "log"}
    assert [(entry["text"], entry["metadata"]) for entry in entries] == [
        ("Rate 0.01 converges.", {"step": 3})
    ]
    assert isinstance(entries[0]["ts"], float)
    assert get_experiment_context() == {"goal": "loss"}
    assert clear_node_memory("node_1") == {"removed": 1}
    assert get_node_memory("node_1") == {"entries": []}


def test_the_current_node_may_be_left_out(run: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    add_memory(None, "first")
    monkeypatch.setenv("ARI_CURRENT_NODE_ID", "node_2")
    add_memory(None, "second")

    assert [entry["text"] for entry in get_node_memory()["entries"]] == ["second"]
    assert clear_node_memory() == {"removed": 1}
    assert (run.own("node_1"), run.own("node_2")) == (["first"], [])


def test_all_ancestors_are_searched_or_those_given_with_oneself_among_them(run: Tree) -> None:
    run.write("node_root", "a blue door")
    run.write("node_1", "my own door")

    def found(given: list[str] | None = None) -> list[str]:
        return sorted(hit["text"] for hit in search_memory("door", given)["results"])

    assert found() == ["a blue door"]
    assert found(["node_root"]) == ["a blue door"]
    assert found(["node_root", "node_1"]) == ["a blue door", "my own door"]
    assert found([]) == []


def test_what_leaked_in_silence_is_an_error_now(run: Tree) -> None:
    run.write("node_2", "beside")

    with pytest.raises(ScopeViolation):
        get_node_memory("node_2")
    with pytest.raises(ScopeViolation):
        search_memory("beside", ["node_root", "node_2"])
    with pytest.raises(CowViolation):
        add_memory("node_2", "mine")
    with pytest.raises(CowViolation):
        clear_node_memory("node_2")
    assert run.own("node_2") == ["beside"]


def test_the_page_about_moving_shows_code_that_runs(service: InProcessService, api: Api) -> None:
    worker, loop = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    directory = f"/runs/{unique_checkpoint()}"
    environment = {"LINEAGE_URL": service.base_url, "ARI_CHECKPOINT_DIR": directory}

    execute(loop, environment)
    tree = Tree(api, answer(api.checkpoint(path=directory))["id"])
    tree.names += ["node_root", "node_fast"]
    tree.write("node_root", "Rate 0.1 diverges.")
    answer(api.put_core_memory(tree.checkpoint, context={"goal": "lowest loss"}))
    printed = execute(worker, environment | {"ARI_CURRENT_NODE_ID": "node_fast"})

    assert re.fullmatch(r"node_root 0\.\d+ Rate 0\.1 diverges\.\n1 lowest loss\n", printed), printed
    assert tree.own("node_fast") == ["Rate 0.01 converges, loss 0.31."]


def execute(code: str, environment: dict[str, str]) -> str:
    """Run code as a program of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PAGE.parents[1]), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
