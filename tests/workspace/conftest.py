"""A workspace, and the directory beside it that nothing may touch."""

from pathlib import Path

import pytest

from app.workspace import init


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the workspace with a file that nobody may read."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.md").write_text("the outside secret")
    return place


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace as `init` makes it."""
    place = tmp_path / "workspace"
    init(place)
    return place
