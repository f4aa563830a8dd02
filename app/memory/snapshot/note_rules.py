"""What the notes of a snapshot are held to: the rules of the writes that make notes."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from app.db.notes import SUPERSEDES
from app.layers.daily import read_instant
from app.layers.note import MAX_NAME, check_name, read_date, read_topic
from app.lineage.entry import Collection
from app.lineage.errors import InvalidInput
from app.lineage.snapshot import ENTRY_ID, SnapshotEntry
from app.memory.daily_notes import check_heading

# What tells notes of one name apart, behind a name that may be as long as any.
NUMBERS = re.compile(r"(?:-[0-9]+)+\Z")
ROOM_FOR_NUMBERS = 50


def check_note(entry: SnapshotEntry) -> None:
    """Judge a note's metadata: InvalidInput names the key whose value no write would store.

    A key may be missing, as in notes that another tool made. Entries of nodes and of the trace
    have metadata of their writers' own.
    """
    checks = CHECKS.get(entry.collection)
    if checks is None:
        return
    metadata = json.loads(entry.metadata_json)
    for key in checks.keys() & metadata.keys():
        try:
            checks[key](metadata[key])
        except InvalidInput as error:
            raise InvalidInput(f"its metadata.{key}: {error}") from None
    if entry.id is not None and entry.id in metadata.get(SUPERSEDES, ()):
        raise InvalidInput(f"its metadata.{SUPERSEDES}: A note takes no place of its own.")


def _text(check: Callable[[str], object]) -> Callable[[object], None]:
    """Return a check that takes texts alone."""

    def checked(value: object) -> None:
        if not isinstance(value, str):
            raise InvalidInput("It is no text.")
        check(value)

    return checked


def _check_name(name: str) -> None:
    try:
        normal = check_name(name)
    except InvalidInput:
        if len(name) > MAX_NAME + ROOM_FOR_NUMBERS:
            raise
        name = NUMBERS.sub("", name)
        normal = check_name(name)
    if normal != name:
        raise InvalidInput("A note's name is in its normal form (NFC).")


def _check_superseded(value: object) -> None:
    if not isinstance(value, list) or not all(
        isinstance(note, str) and ENTRY_ID.fullmatch(note) for note in value
    ):
        raise InvalidInput("It is a list of ids of notes.")


CHECKS: Mapping[Collection, Mapping[str, Callable[[Any], None]]] = {
    Collection.REFERENCE: {
        "topic": _text(read_topic),
        "name": _text(_check_name),
        "date": _text(read_date),
        SUPERSEDES: _check_superseded,
    },
    Collection.DAILY_NOTE: {
        "date": _text(read_date),
        "at": _text(read_instant),
        "heading": _text(check_heading),
    },
}
