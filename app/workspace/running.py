"""The one frame of all calls: plan on what is read, and write only where it is no dry run."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from app.workspace.errors import NoWorkspace
from app.workspace.folder import Folder, open_folder
from app.workspace.outcome import Outcome
from app.workspace.paths import MEMORY
from app.workspace.writer import open_writer

Planner: TypeAlias = Callable[[Folder], Outcome]


def run(root: Path, plan: Planner, *, dry_run: bool) -> Outcome:
    """Plan a call on a workspace, do it unless it is a dry run, and return the outcome.

    A dry run writes nothing at all: no lock, no time of a file. NoWorkspace; what `plan` raises.
    """
    with open_folder(root) as folder:
        check_workspace(folder)
        if dry_run:
            return plan(folder)
    with open_writer(root) as writer:
        outcome = plan(writer)
        for change in outcome.changes:
            writer.write(change)
    return outcome


def check_workspace(folder: Folder) -> None:
    """Refuse a directory of which nobody has made a workspace. NoWorkspace, LinkRefused."""
    if not folder.has(MEMORY):
        raise NoWorkspace(
            f"This directory has no folder {MEMORY}. Make a workspace of it first: "
            "letta-lineage workspace init."
        )
    folder.list(MEMORY)
