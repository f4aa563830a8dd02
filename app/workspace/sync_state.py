"""Where a workspace keeps what it last agreed on with each checkpoint."""

import json
from collections.abc import Mapping
from typing import Any

from app.workspace.errors import BadConfiguration
from app.workspace.folder import Folder, Seen
from app.workspace.outcome import Change
from app.workspace.paths import SYNC
from app.workspace.syncing import Base

PARTS = ("core", "notes", "days")


def read_base(folder: Folder, remote: str) -> Base:
    """Return what was agreed on with a checkpoint, empty where there was no sync with it.

    `remote` is whatever names the checkpoint and changes when it is made anew: what a purged one
    held says nothing of the next. BadConfiguration for a file that is not ours.
    """
    known = _remotes(folder.read(SYNC)).get(remote, {})
    return Base(**{part: known.get(part, {}) for part in PARTS})


def base_change(folder: Folder, remote: str, base: Base) -> Change:
    """Return the change of the file that keeps a base; those of other checkpoints stay."""
    seen = folder.read(SYNC)
    remotes = {**_remotes(seen), remote: {part: getattr(base, part) for part in PARTS}}
    text = json.dumps({"remotes": remotes}, indent=1, sort_keys=True, ensure_ascii=False)
    return Change(seen, f"{text}\n".encode())


def _remotes(seen: Seen) -> Mapping[str, Mapping[str, Any]]:
    if seen.data is None:
        return {}
    try:
        remotes = json.loads(seen.data)["remotes"]
        if all(_is_base(base) for base in remotes.values()):
            return dict(remotes)
    except (ValueError, LookupError, TypeError, AttributeError):
        pass
    raise BadConfiguration(
        f"{SYNC} is not as it was written. Remove it: what both sides hold stays."
    )


def _is_base(base: Any) -> bool:
    return all(
        isinstance(digests, dict) and all(isinstance(digest, str) for digest in digests.values())
        for digests in (base.get(part, {}) for part in PARTS)
    )
