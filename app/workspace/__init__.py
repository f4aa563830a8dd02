"""The three layers as a plain folder of Markdown, with no service; the standard library alone.

Every call takes the directory of the workspace, and `dry_run`, which shows what would change and
writes nothing. What it refuses is a WorkspaceError or a LineageError; BadInput is what no workspace
would take.

A sync is `read_local`, `compare` with the checkpoint's side, `pull` and whatever pushes, and at the
end `remember` with what the checkpoint holds then.
"""

from app.workspace.errors import BadInput, WorkspaceError
from app.workspace.making import init
from app.workspace.moving import consolidate, demote, heartbeat, promote, trim
from app.workspace.noting import note
from app.workspace.outcome import Change, Outcome
from app.workspace.pulling import Local, Pulled, pull, read_local, remember
from app.workspace.syncing import Comparison, Difference, Side, Way, compare

__all__ = [
    "BadInput",
    "Change",
    "Comparison",
    "Difference",
    "Local",
    "Outcome",
    "Pulled",
    "Side",
    "Way",
    "WorkspaceError",
    "compare",
    "consolidate",
    "demote",
    "heartbeat",
    "init",
    "note",
    "promote",
    "pull",
    "read_local",
    "remember",
    "trim",
]
