"""Whatever people wrote by hand goes to a checkpoint and comes back, and nothing of it is lost."""

import datetime as dt
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from app.cli.syncing import differences, pull, push
from app.client import Service
from app.layers.core import CoreDocument
from app.layers.note import Topic
from app.workspace.folder import open_folder
from app.workspace.moving import MAX_DAYS
from app.workspace.reading import read_workspace
from tests.conftest import Grow
from tests.support.client import Api
from tests.support.examples import NEW, SAME_AND_LONG
from tests.workspace.generated import MARK, Handmade, workspaces
from tests.workspace.test_lifecycle import kept, live
from tests.workspace.tree import contents, everything

# What is under another name than a topic's is the person's own, and stays in the folder.
OURS = (
    "memory/core.md",
    "memory/20",
    *(f"memory/archival/{topic.value}/" for topic in Topic),
)


pytestmark = pytest.mark.parametrize(
    ("database", "archive"), [("sqlite", "embedded")], indirect=True
)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def sections_and_notes(root: Path) -> set[str]:
    return {mark for mark in kept(root) if mark not in own(root)}


def own(root: Path) -> set[str]:
    """The marks that no section of core, no topic and no day holds."""
    files = contents(root)
    ours = {path for path in files if path.startswith(OURS)}
    found = {
        mark
        for path, data in files.items()
        if path not in ours
        for mark in MARK.findall(data.decode(errors="replace"))
    }
    core = CoreDocument.read(files["memory/core.md"].decode())
    return found | set(MARK.findall(core.document.rest))


def days_of(root: Path) -> dict[tuple[dt.date, str], tuple[str | None, str | None]]:
    """The facts of each day with the time and the heading that the first of them has."""
    with open_folder(root) as folder:
        items = read_workspace(folder).layers.days
    return {(item.date, item.fact): (item.at, item.heading) for item in reversed(list(items))}


def check(handmade: Handmade, service: Service, checkpoint: str) -> None:
    layers = service.layers(checkpoint)
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        first, second = Path(here), Path(there)
        handmade.write(first)
        live(first)
        before = everything(first / "memory")

        pushed = push(first, service, checkpoint, overwrite=False, dry_run=False)

        assert (pushed.left.refused, bool(pushed.left.conflicts)) == ({}, False)
        assert everything(first / "memory") == before
        stored = [layers.core_markdown(), *(note.text for note in layers.notes())]
        assert sections_and_notes(first) <= set(MARK.findall("\n".join(stored)))
        said = "\n".join(note.text for note in layers.daily_notes())
        assert handmade.marks("memory/20") <= set(MARK.findall(said))
        again = push(first, service, checkpoint, overwrite=False, dry_run=False)
        assert not again.sent
        assert not differences(first, service, checkpoint)[0]
        moved = service.movements(checkpoint).consolidate(days=MAX_DAYS)
        assert moved.steps == ()

        live(second)
        pulled = pull(second, service, checkpoint, overwrite=False, dry_run=False)
        assert not pulled.left.conflicts
        assert pulled.left.skipped == ()
        assert sections_and_notes(first) <= kept(second)
        assert days_of(first) == days_of(second)
        times = everything(second)
        assert not pull(second, service, checkpoint, overwrite=False, dry_run=False).taken
        assert everything(second) == times
        assert not differences(second, service, checkpoint)[0]


@settings(SAME_AND_LONG, max_examples=10)
@given(handmade=workspaces(days=6))
def test_a_workspace_goes_there_and_comes_back(grow: Grow, api: Api, handmade: Handmade) -> None:
    with Service(str(api.http.base_url)) as service:
        check(handmade, service, grow({"root": {}}).checkpoint)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(NEW, max_examples=100)
@given(handmade=workspaces(days=12))
def test_many_workspaces_go_there_and_come_back(grow: Grow, api: Api, handmade: Handmade) -> None:
    with Service(str(api.http.base_url)) as service:
        check(handmade, service, grow({"root": {}}).checkpoint)
