"""What the repository's files promise of each other."""

import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.main import create_app
from app.settings import CLIENT_VARIABLES, LETTA_VARIABLES, PREFIX, Settings, variable

ROOT = Path(__file__).resolve().parents[1]
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?P<rest>.*)$", re.MULTILINE)
FIRST_CELL = re.compile(r"^\| `([\w-]+)`", re.MULTILINE)


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def group(name: str) -> list[Requirement]:
    """Return the requirements of a dependency group and the groups it includes."""
    found: list[Requirement] = []
    for item in project()["dependency-groups"][name]:
        if isinstance(item, str):
            found.append(Requirement(item))
        else:
            found += group(item["include-group"])
    return found


def runtime() -> list[Requirement]:
    """Return what the service itself requires."""
    return [Requirement(text) for text in project()["project"]["dependencies"]]


def pins(lock: str) -> dict[str, set[str]]:
    """Return the versions of each package in a lock file: several where they differ by platform."""
    found = defaultdict(set)
    for pin in PIN.finditer((ROOT / lock).read_text()):
        found[pin["name"]].add(pin["version"])
    return dict(found)


def not_covered(requirements: list[Requirement], lock: str) -> list[str]:
    """Return the requirements that a lock file leaves out or pins to an unfit version."""
    pinned = pins(lock)
    return [
        str(wanted)
        for wanted in requirements
        if not (versions := pinned.get(canonicalize_name(wanted.name)))
        or not all(wanted.specifier.contains(version) for version in versions)
    ]


def test_the_imports_point_inwards() -> None:
    assert (
        lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
        == EXIT_STATUS_SUCCESS
    )


def test_the_lock_file_covers_what_the_service_requires() -> None:
    assert not_covered(runtime() + group("build"), "requirements.lock") == []


def test_the_development_lock_file_covers_what_the_tests_require() -> None:
    assert not_covered(runtime() + group("dev"), "requirements-dev.lock") == []


def test_a_requirement_that_a_lock_file_lacks_or_contradicts_is_found() -> None:
    wanted = [Requirement("no-such-package"), Requirement("fastapi>=1000")]

    assert not_covered(wanted, "requirements.lock") == ["no-such-package", "fastapi>=1000"]


def test_the_tests_run_on_the_versions_that_serve() -> None:
    development = pins("requirements-dev.lock")

    assert {name: development.get(name) for name in pins("requirements.lock")} == pins(
        "requirements.lock"
    )


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_pin_has_its_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    bare = [
        pin["name"]
        for pin in PIN.finditer(text)
        if not text[pin.end() :].lstrip().startswith("--hash=sha256:")
    ]

    assert bare == []


def test_every_runtime_dependency_is_explained() -> None:
    explained = FIRST_CELL.findall((ROOT / "docs" / "dependencies.md").read_text())

    assert explained == sorted(wanted.name for wanted in runtime())


def test_every_setting_is_in_the_readme_and_nothing_else_is() -> None:
    rows = FIRST_CELL.findall((ROOT / "README.md").read_text())
    documented = {name for name in rows if name.startswith(PREFIX) or name in LETTA_VARIABLES}
    settings = {variable(field) for field in Settings.model_fields}

    assert documented - CLIENT_VARIABLES == settings


def test_the_committed_openapi_file_is_what_the_app_serves(tmp_path: Path) -> None:
    app = create_app(Settings(_env_file=None, data_dir=tmp_path))

    committed = json.loads((ROOT / "openapi" / "openapi.json").read_text())

    assert committed == app.openapi()


def test_the_migrations_are_one_line_from_one_base_to_one_head() -> None:
    migrations = ScriptDirectory(str(ROOT / "migrations"))

    assert len(migrations.get_bases()) == 1
    assert len(migrations.get_heads()) == 1
