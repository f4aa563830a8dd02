"""Names inside a workspace: what may be one, before any file is touched."""

import re

from app.workspace.errors import BadName

# What ends a line, drives a terminal or separates paths elsewhere, plain or as a percent code.
UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\/]|%(?:2e|2f|5c)", re.IGNORECASE)
MAX_BYTES = 255


def is_fit(name: str) -> bool:
    """Tell whether this is a name of one file or folder, and of nothing else."""
    return (
        name not in ("", ".", "..") and not UNFIT.search(name) and len(name.encode()) <= MAX_BYTES
    )


def parts(path: str) -> tuple[str, ...]:
    """Split a path below the workspace into its names. BadName for all that is none."""
    names = tuple(path.split("/"))
    if not all(map(is_fit, names)):
        raise BadName
    return names
