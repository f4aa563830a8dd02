"""The two commands that need nothing but a Python and what lies beside them."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.workspace.tree import ROOT, contents, everything

# The interpreter without site packages, without the environment and without the current directory.
PYTHON = (sys.executable, "-I", "-S")
CONSOLIDATE = ("scripts/consolidate.py", "--days", "7")
TRIM = ("scripts/core-trim.py", "--max-words", "10")
SCRIPTS = pytest.mark.parametrize("script", [CONSOLIDATE, TRIM], ids=["consolidate", "core-trim"])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the scripts may need of the repository, and nothing else of it."""
    place = tmp_path / "checkout"
    for name in ("__init__", "lineage/__init__", "lineage/errors", "lineage/instants"):
        part = f"app/{name}.py"
        (place / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, place / part)
    for part in ("app/layers", "app/workspace", "scripts"):
        shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture
def root(workspace: Path) -> Path:
    today = datetime.now(UTC).date()
    (workspace / f"memory/{today}.md").write_bytes("決定: 学習率は 3e-4\r\n- just a note".encode())
    (workspace / "memory/core.md").write_text(
        "# Core Memory\n\n## Active Context\n\n" + "".join(f"- item {at}\n" for at in range(20))
    )
    return workspace


def run(
    checkout: Path, *command: str, cwd: Path = Path("/"), **environment: str
) -> subprocess.CompletedProcess[str]:
    script, *options = command
    return subprocess.run(
        [*PYTHON, str(checkout / script), *options],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


@SCRIPTS
def test_it_does_its_work_from_anywhere_and_says_what_it_did(
    checkout: Path, root: Path, script: tuple[str, ...]
) -> None:
    before = contents(root)

    done = run(checkout, *script, "--workspace", str(root))

    assert (done.returncode, done.stderr) == (0, "")
    assert contents(root) != before
    assert done.stdout.splitlines()[-1].startswith("Core has ")
    again = run(checkout, *script, "--workspace", str(root))
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "Nothing to move.")


@SCRIPTS
def test_a_workspace_may_be_named_from_where_one_stands(
    checkout: Path, root: Path, script: tuple[str, ...]
) -> None:
    done = run(checkout, *script, "--workspace", "workspace", cwd=root.parent)

    assert (done.returncode, done.stderr) == (0, "")


@SCRIPTS
def test_a_dry_run_prints_a_diff_and_writes_nothing(
    checkout: Path, root: Path, script: tuple[str, ...]
) -> None:
    shutil.rmtree(root / ".lineage")
    before = everything(root)

    shown = run(checkout, *script, "--workspace", str(root), "--dry-run")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert everything(root) == before
    assert "\n+++ b/memory/archival/" in shown.stdout


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
@SCRIPTS
def test_patch_does_from_the_diff_what_the_script_does(
    checkout: Path, root: Path, tmp_path: Path, script: tuple[str, ...]
) -> None:
    patched = tmp_path / "patched"
    shutil.copytree(root, patched)
    shown = run(checkout, *script, "--workspace", str(root), "--dry-run")

    subprocess.run(
        ["patch", "-p1", "--binary", "--quiet"],  # noqa: S607  (whichever there is)
        cwd=patched,
        input=shown.stdout.encode(),
        check=True,
    )
    run(checkout, *script, "--workspace", str(root))

    assert contents(patched) == contents(root)


# Runs a script where packages could be imported, and tells from which file each module came.
MODULES = """
import json, runpy, sys
before = set(sys.modules)
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    assert not end.code
print(json.dumps({
    name: getattr(module, "__file__", None)
    for name, module in sys.modules.items()
    if name not in before
}))
"""


@SCRIPTS
def test_it_imports_nothing_that_python_does_not_bring_along(
    checkout: Path, root: Path, script: tuple[str, ...]
) -> None:
    path, *options = script
    command = [sys.executable, "-I", "-c", MODULES, str(checkout / path), *options]
    told = subprocess.run(
        [*command, "--workspace", str(root)], capture_output=True, check=True, timeout=60
    )

    modules: dict[str, str | None] = json.loads(told.stdout.splitlines()[-1])
    ours = {name for name in modules if name.partition(".")[0] == "app"}
    assert "app.workspace.moving" in ours
    assert {name for name in ours if not name.startswith(("app.layers", "app.workspace"))} == {
        "app",
        "app.lineage",
        "app.lineage.errors",
        "app.lineage.instants",
    }
    places = {Path(file) for name, file in modules.items() if file and name not in ours}
    library = Path(sysconfig.get_path("stdlib"))
    assert [place for place in places if not place.is_relative_to(library)] == []
    assert [place for place in places if "site-packages" in place.parts] == []


@SCRIPTS
def test_it_leaves_no_bytecode_beside_itself(
    checkout: Path, root: Path, script: tuple[str, ...]
) -> None:
    before = everything(checkout)

    run(checkout, *script, "--workspace", str(root))

    assert everything(checkout) == before


@pytest.mark.parametrize(
    "command",
    [
        ("scripts/consolidate.py",),
        ("scripts/consolidate.py", "--days", "many"),
        ("scripts/consolidate.py", "--days", "0"),
        ("scripts/core-trim.py", "--max-words", "0"),
        ("scripts/core-trim.py", "--max-words", "10", "--unknown"),
    ],
    ids=" ".join,
)
def test_bad_input_ends_with_2_and_changes_nothing(
    checkout: Path, root: Path, command: tuple[str, ...]
) -> None:
    before = everything(root)
    given = () if len(command) == 1 else ("--workspace", str(root))

    refused = run(checkout, *command, *given)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr
    assert "Traceback" not in refused.stderr
    assert everything(root) == before


@SCRIPTS
def test_a_directory_that_is_no_workspace_is_bad_input(
    checkout: Path, tmp_path: Path, script: tuple[str, ...]
) -> None:
    for place in ("none-such", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        refused = run(checkout, *script, "--workspace", str(tmp_path / place))

        assert (refused.returncode, refused.stdout) == (2, "")
        assert len(refused.stderr.splitlines()) == 1


@SCRIPTS
def test_a_misspelt_zone_is_bad_input(checkout: Path, root: Path, script: tuple[str, ...]) -> None:
    refused = run(checkout, *script, "--workspace", str(root), LINEAGE_TIMEZONE="Asia/Tokio")

    assert refused.returncode == 2
    assert "LINEAGE_TIMEZONE: 'Asia/Tokio' is no time zone" in refused.stderr


@SCRIPTS
def test_what_is_refused_ends_with_1_and_a_sentence(
    checkout: Path, root: Path, outside: Path, script: tuple[str, ...]
) -> None:
    (root / "memory/core.md").unlink()
    (root / "memory/core.md").symlink_to(outside / "secret.md")

    refused = run(checkout, *script, "--workspace", str(root))

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("memory/core.md is a link")
    assert "secret" not in refused.stderr


def test_what_is_skipped_is_named_beside_the_report(checkout: Path, root: Path) -> None:
    today = datetime.now(UTC).date()
    (root / f"memory/{today}.md").write_bytes(b"\xff")

    done = run(checkout, *CONSOLIDATE, "--workspace", str(root))

    assert done.returncode == 0
    assert done.stderr == f"Skipped memory/{today}.md: not UTF-8; left as it is.\n"


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1", "POSIX"])
def test_no_locale_stops_the_report(checkout: Path, root: Path, locale: str) -> None:
    done = run(
        checkout,
        *CONSOLIDATE,
        "--workspace",
        str(root),
        LC_ALL=locale,
        PYTHONIOENCODING="ascii",
        PATH=os.environ["PATH"],
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "学習率は 3e-4" in done.stdout


@SCRIPTS
def test_a_reader_who_has_seen_enough_is_no_failure(
    checkout: Path, root: Path, script: tuple[str, ...]
) -> None:
    path, *options = script
    read, write = os.pipe()
    os.close(read)
    command = [*PYTHON, str(checkout / path), *options, "--workspace", str(root)]

    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=60
    )
    os.close(write)

    assert (done.returncode, done.stderr) == (0, "")
