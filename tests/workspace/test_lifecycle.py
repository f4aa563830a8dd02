"""Whatever people wrote by hand: nothing of it is lost, core gets small, and a second run rests."""

import datetime as dt
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings

from app.layers.core import CoreDocument
from app.workspace import Outcome, consolidate, heartbeat, init, trim
from app.workspace.folder import open_folder
from app.workspace.reading import read_workspace
from tests.support.examples import NEW, SAME_AND_LONG
from tests.workspace.generated import MARK, TODAY, Handmade, workspaces
from tests.workspace.tree import contents, everything

NOW = dt.datetime.combine(TODAY, dt.time(23, 59, 59), tzinfo=dt.UTC)
MAX_WORDS = 150


@contextmanager
def made(handmade: Handmade) -> Iterator[Path]:
    """Give a workspace that somebody made by hand."""
    with tempfile.TemporaryDirectory() as directory:
        handmade.write(Path(directory))
        yield Path(directory)


def live(root: Path) -> list[Outcome]:
    """Let a workspace go through everything once."""
    return [
        init(root),
        consolidate(root, days=30, now=NOW),
        trim(root, max_words=MAX_WORDS, now=NOW),
        heartbeat(root, days=30, max_words=MAX_WORDS, now=NOW),
    ]


def kept(root: Path) -> set[str]:
    """Return the marks in core and in the archive."""
    return {
        mark
        for path, data in contents(root).items()
        if path == "memory/core.md" or path.startswith("memory/archival/")
        for mark in MARK.findall(data.decode())
    }


def check_a_life(handmade: Handmade) -> None:
    with made(handmade) as root:
        live(root)

        assert handmade.marks() <= kept(root)
        with open_folder(root) as folder:
            reading = read_workspace(folder)
        assert reading.layers.words <= MAX_WORDS
        assert all("/mine/" in sentence for sentence in reading.skipped)
        after = contents(root)
        for path, data in handmade.files.items():
            if not path.startswith(("memory/core", "memory/archival/")) or "/mine/" in path:
                assert after[path] == data
        _check_core(handmade.files.get("memory/core.md"), after["memory/core.md"])

        times = everything(root / "memory")
        assert [outcome.changes for outcome in live(root)] == [()] * 4
        assert everything(root / "memory") == times


def _check_core(before: bytes | None, after: bytes) -> None:
    """Hold a core to what may not change: what is in no section, and the line ends."""
    if before is None:
        return
    was, now = (CoreDocument.read(data.decode()).document for data in (before, after))
    assert now.rest.strip() == was.rest.strip()
    assert [part.head.strip() for part in now.parts] == [part.head.strip() for part in was.parts]
    if b"\r\n" in before:
        assert after.count(b"\n") == after.count(b"\r\n")
    else:
        assert b"\r" not in after
    assert after.endswith(b"\n") == before.endswith(b"\n") or after.endswith(b"\n")


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@settings(SAME_AND_LONG, max_examples=40)
@given(workspaces())
def test_a_life_of_thirty_days_loses_nothing(handmade: Handmade) -> None:
    check_a_life(handmade)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(NEW, max_examples=1_000)
@given(workspaces())
def test_many_lives_lose_nothing(handmade: Handmade) -> None:
    check_a_life(handmade)


@settings(SAME_AND_LONG, max_examples=15)
@given(workspaces())
def test_a_dry_run_says_what_comes_and_touches_nothing(handmade: Handmade) -> None:
    with made(handmade) as root:
        init(root)
        before = everything(root)
        foretold = heartbeat(root, days=30, max_words=MAX_WORDS, now=NOW, dry_run=True)
        assert everything(root) == before

        done = heartbeat(root, days=30, max_words=MAX_WORDS, now=NOW)

        assert (done.diff, done.report) == (foretold.diff, foretold.report)
        after = contents(root)
        for change in foretold.changes:
            assert after.get(change.path) == change.data
