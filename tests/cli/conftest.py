"""What the tests of push, pull and diff start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.client import Service
from tests.cli.both import Both
from tests.cli.running import run
from tests.support.tree import Tree


@pytest.fixture
def both(tree: Tree, tmp_path: Path) -> Iterator[Both]:
    """A new folder, and the example tree in a checkpoint of its own."""
    folder = tmp_path / "notes"
    assert run("workspace", "init", str(folder)).returncode == 0
    with Service(str(tree.api.http.base_url)) as service:
        yield Both(folder, service, tree)
