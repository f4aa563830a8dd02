"""Which day it is: one zone decides for what is written and for 'today' alike."""

import json
import os
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.workspace.errors import BadConfiguration, BadTimezone
from app.workspace.folder import Folder
from app.workspace.paths import SETTINGS

VARIABLE = "LINEAGE_TIMEZONE"
TIMEZONE = "timezone"
DEFAULT = "UTC"


def zone_of(folder: Folder) -> tzinfo:
    """Return the workspace's zone: LINEAGE_TIMEZONE, else its settings, else UTC.

    BadTimezone for a misspelt one, BadConfiguration for settings that are no JSON object.
    """
    if named := zone_outside():
        return read_zone(named, where=VARIABLE)
    return read_zone(zone_inside(folder), where=SETTINGS)


def zone_outside() -> str:
    """Return the zone's name that LINEAGE_TIMEZONE gives, empty where it gives none."""
    return os.environ.get(VARIABLE, "").strip()


def zone_inside(folder: Folder) -> object:
    """Return the zone that the workspace's settings name, else UTC. BadConfiguration."""
    return _settings(folder).get(TIMEZONE, DEFAULT)


def read_zone(name: object, *, where: str) -> tzinfo:
    """Return the zone of an IANA name; `where` tells the reader of a BadTimezone who named it."""
    if name == DEFAULT:
        return UTC  # known even where the system has no list of zones
    if not isinstance(name, str):
        raise BadTimezone(name, where)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadTimezone(name, where) from None


def local(instant: datetime, zone: tzinfo) -> datetime:
    """Return an instant as the workspace's clocks show it."""
    return instant.astimezone(zone)


def _settings(folder: Folder) -> dict[str, object]:
    data = folder.read(SETTINGS).data
    if data is None:
        return {}
    try:
        settings = json.loads(data)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise BadConfiguration(
            f'{SETTINGS} is no JSON object. Write {{"{TIMEZONE}": "{DEFAULT}"}} into it.'
        )
    return settings
