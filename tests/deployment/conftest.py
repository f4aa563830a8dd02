"""A Letta on the disk for the tests that start one of their own."""

import os
from pathlib import Path

import pytest

from letta.local.folder import Folder
from letta.local.installation import install, is_installed
from tests.deployment.files import ROOT

# Read before the tests' environment is cleaned of it.
OF_WHO_RUNS_THE_TESTS = Folder(ROOT / os.environ.get("LETTA_DIR", ".letta"))
PARTS = ("venv", "venv.installed", "migrations", "migrations.installed")


@pytest.fixture(scope="session")
def installed_letta(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A complete installation, to be read: what `make letta` has, for another takes two minutes."""
    if is_installed(OF_WHO_RUNS_THE_TESTS):
        return OF_WHO_RUNS_THE_TESTS
    folder = Folder(tmp_path_factory.mktemp("installed-letta"))
    install(folder)
    return folder


def link_installation(installed: Folder, folder: Path) -> None:
    """Let `folder` have the installation without a copy of its gigabyte."""
    for part in PARTS:
        (folder / part).symlink_to(installed.file(part))
