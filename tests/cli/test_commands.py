"""The command line against a running service."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT, run
from tests.support.client import Api, answer
from tests.support.ports import port_of, reserve_port
from tests.support.service import InProcessService
from tests.support.tree import unique_checkpoint

EXAMPLE = ROOT / "examples" / "run.jsonl"
ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@ONE_DATABASE
def test_a_run_is_loaded_once_however_often_it_is_asked_for(
    service: InProcessService, api: Api
) -> None:
    checkpoint = unique_checkpoint()

    for _ in range(2):
        done = run("load", str(EXAMPLE), "--checkpoint", checkpoint, "--json", url=service.base_url)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"checkpoint": checkpoint, "nodes": 12, "entries": 60}

    counts = answer(api.get_checkpoint(checkpoint))
    assert (counts["nodes"], counts["entries"]) == (12, 60)
    node = answer(api.get_node(f"{checkpoint}.trees_lag"))
    assert node["lineage"] == [f"{checkpoint}.{name}" for name in ("root", "trees", "trees_depth")]
    assert node["eval_summary"] == "Add lagged weather as features."


@ONE_DATABASE
@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: not a JSON object"),
        ('{"kind": "node", "name": "a"}\n\n{"kind": "fox"}', "line 3: unknown kind 'fox'"),
        ('{"kind": "entry", "node": "a", "text": "x"}', "line 1: no 'a' is known here"),
        ('{"kind": "node", "name": "a", "parent": "b"}', "line 1: parent 'b' is not above"),
        ('{"kind": "node"}', "line 1: no 'name' is known here"),
        ('{"kind": "node", "name": ["a"]}', "line 1: 'name' is not a string"),
        ('{"kind": "node", "name": "a"}\n' * 2, "line 2: node 'a' is already above"),
    ],
)
def test_a_bad_file_is_told_by_its_line_and_loads_nothing(
    service: InProcessService, api: Api, tmp_path: Path, lines: str, complaint: str
) -> None:
    file = tmp_path / f"{unique_checkpoint()}.jsonl"
    file.write_text(lines)

    done = run("load", str(file), url=service.base_url)

    assert (done.returncode, complaint in done.stderr) == (2, True)
    assert api.get_checkpoint(file.stem).status_code == 404


@ONE_DATABASE
def test_an_entry_that_the_service_refuses_is_told_by_its_line(
    service: InProcessService, tmp_path: Path
) -> None:
    # The 120th entry is in the second batch, behind a blank line and two nodes.
    entries = ['{"kind": "entry", "node": "b", "text": "x"}'] * 150
    entries[119] = '{"kind": "entry", "node": "b", "text": " "}'
    file = tmp_path / f"{unique_checkpoint()}.jsonl"
    nodes = ['{"kind": "node", "name": "a"}', "", '{"kind": "node", "name": "b", "parent": "a"}']
    file.write_text("\n".join([*nodes, *entries]))

    done = run("load", str(file), url=service.base_url)

    assert done.returncode == 2
    assert f"line {len(nodes) + 120}: A blank text is not allowed." in done.stderr


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:eight", "http://127.0.0.1:99999", "ftp://x", "http://", "localhost"]
)
def test_what_is_no_address_is_told_by_its_setting(url: str) -> None:
    done = run("reindex", "exp1", url=url)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"letta-lineage: LINEAGE_URL is {url!r}: ")
    assert done.stderr.count("\n") == 1


def test_the_version_is_the_one_that_the_description_names() -> None:
    done = run("--version")

    described = json.loads(run("openapi").stdout)["info"]["version"]
    assert (done.returncode, done.stdout) == (0, f"{described}\n")


@pytest.mark.parametrize("key", ["k\r", "a key", "kéy"])
def test_a_key_that_can_be_none_is_told_by_its_setting_and_not_shown(key: str) -> None:
    done = run("tree", "exp1", url="http://127.0.0.1:9", LINEAGE_API_KEY=key)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "letta-lineage: LINEAGE_API_KEY holds a character that no key has.\n"


@ONE_DATABASE
def test_a_reindex_waits_until_nothing_is_pending(service: InProcessService, api: Api) -> None:
    checkpoint = unique_checkpoint()
    run("load", str(EXAMPLE), "--checkpoint", checkpoint, url=service.base_url)

    done = run("reindex", checkpoint, "--json", url=service.base_url)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pending"] == 0
    assert answer(api.search(f"{checkpoint}.linear", "metric"))["results"]


@ONE_DATABASE
def test_what_the_service_refuses_is_said_in_a_sentence(service: InProcessService) -> None:
    done = run("reindex", "nowhere", url=service.base_url)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip().endswith("letta-lineage: There is no checkpoint 'nowhere'.")


def test_a_service_that_is_not_there_is_named() -> None:
    # Bound, and never listened on: nobody can answer there.
    with reserve_port() as bound:
        url = f"http://127.0.0.1:{port_of(bound)}"
        done = run("reindex", "exp1", url=url)

    assert done.returncode == 3
    assert url in done.stderr
    assert "Traceback" not in done.stderr


@ONE_DATABASE
@pytest.mark.timeout(400)
def test_the_demonstration_shows_no_leak(service: InProcessService) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        env={**os.environ, "LINEAGE_URL": service.base_url},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "12 nodes, 60 entries" in done.stdout
    assert " 0 leaks, 0 missed" in " ".join(done.stdout.split())


def test_the_demonstration_starts_a_service_where_the_one_named_does_not_answer() -> None:
    # Bound, and never listened on: nobody can answer there.
    with reserve_port() as bound:
        url = f"http://127.0.0.1:{port_of(bound)}"
        done = subprocess.run(
            [sys.executable, "-m", "examples.demo"],
            env={**os.environ, "LINEAGE_URL": url, "COLUMNS": "160"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    assert done.returncode == 0, done.stderr
    assert f"Nothing answers at {url}" in done.stdout
    assert " 0 leaks" in done.stdout


def test_the_demonstration_starts_a_service_of_its_own_and_leaves_other_databases_alone(
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "precious.db"
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        env={
            **{name: v for name, v in os.environ.items() if not name.startswith("LINEAGE_")},
            "LINEAGE_DATABASE_URL": f"sqlite:///{elsewhere}",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert (done.returncode, " 0 leaks" in done.stdout) == (0, True), done.stderr
    assert not elsewhere.exists()
