"""Make a workspace: what is missing of its structure, and nothing over what is there."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from app.layers.core import render_core
from app.layers.note import Topic
from app.workspace.clock import (
    DEFAULT,
    TIMEZONE,
    VARIABLE,
    read_zone,
    zone_inside,
    zone_of,
    zone_outside,
)
from app.workspace.errors import NoWorkspace
from app.workspace.folder import Folder, Seen, open_folder
from app.workspace.outcome import Change, Outcome
from app.workspace.paths import ARCHIVE, CORE, OWN, SETTINGS
from app.workspace.writer import open_writer

FOLDERS = (*(f"{ARCHIVE}/{topic.value}" for topic in Topic), OWN)


def init(root: Path, *, timezone: str | None = None, dry_run: bool = False) -> Outcome:
    """Make what is missing: core memory's template, a folder for each topic, the settings.

    Nothing that is there is changed, so a folder made by hand becomes a workspace as it is. New
    settings get `timezone`, else LINEAGE_TIMEZONE, else UTC. BadTimezone; NoWorkspace where there
    is no directory to make it in. A `timezone` that does not decide is told in the report.
    """
    zone = timezone or zone_outside() or DEFAULT
    read_zone(zone, where=TIMEZONE if timezone else VARIABLE)
    if not root.exists() and dry_run:
        return _missing(lambda _: False, zone, _winning(timezone))
    _make_root(root)
    with open_folder(root) as folder:
        zone_of(folder)
        told = (*_staying(folder, timezone), *_winning(timezone))
        outcome = _missing(_sound(folder), zone, told)
    if dry_run:
        return outcome
    with open_writer(root) as writer:
        for path in FOLDERS:
            writer.make_folder(path)
        for change in outcome.changes:
            writer.write(change)
    return outcome


def _make_root(root: Path) -> None:
    try:
        root.mkdir(exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise NoWorkspace(f"The directory cannot be made: {reason}.") from None


def _sound(folder: Folder) -> Callable[[str], bool]:
    """Tell what is there, and refuse what is no plain folder where one has to be."""

    def there(path: str) -> bool:
        if path in FOLDERS:
            folder.list(path)
        return folder.has(path)

    return there


def _staying(folder: Folder, timezone: str | None) -> list[str]:
    """Say which zone the settings keep where another one was asked for."""
    if timezone is None or not folder.has(SETTINGS) or (kept := zone_inside(folder)) == timezone:
        return []
    return [f"Its zone stays {kept}, by {SETTINGS}."]


def _winning(timezone: str | None) -> list[str]:
    """Say which zone decides as long as LINEAGE_TIMEZONE is set to another one."""
    if timezone is None or (zone := zone_outside()) in ("", timezone):
        return []
    return [f"Its zone is {zone} as long as {VARIABLE} says so."]


def _missing(there: Callable[[str], bool], zone: str, told: Sequence[str]) -> Outcome:
    settings = json.dumps({TIMEZONE: zone}, indent=2) + "\n"
    files = {CORE: render_core({}), SETTINGS: settings}
    folders = [f"Makes {path}/." for path in FOLDERS if not there(path)]
    changes = [
        Change(Seen(path, None), text.encode()) for path, text in files.items() if not there(path)
    ]
    files_made = (f"Makes {change.path}." for change in changes)
    return Outcome(tuple(changes), (*folders, *files_made, *told))
