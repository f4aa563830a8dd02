"""Where the layers lie in a workspace, relative to it."""

import datetime as dt

MEMORY = "memory"
CORE = f"{MEMORY}/core.md"
ARCHIVE = f"{MEMORY}/archival"
# What is ours alone: no person and no agent writes here.
OWN = ".lineage"
LOCK = f"{OWN}/lock"
SETTINGS = f"{OWN}/workspace.json"
SYNC = f"{OWN}/sync.json"
ENDING = ".md"


def day_path(date: dt.date) -> str:
    """Return the path of a day's notes."""
    return f"{MEMORY}/{date.isoformat()}{ENDING}"


def note_path(ref: str) -> str:
    """Return the path of a new note, given its ref (`topic/name`)."""
    return f"{ARCHIVE}/{ref}{ENDING}"
