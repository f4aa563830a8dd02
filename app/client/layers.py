"""The layers of memory of one checkpoint, as an operator sees them."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.client.connection import Answer, Connection
from app.client.layer_answers import (
    CoreMemory,
    DailyNote,
    Note,
    NotesFound,
    Recalled,
    Section,
    Session,
)
from app.client.reading import read_as
from app.client.spelling import path_of

T = TypeVar("T")

PAGE = "1000"
MARKDOWN = "text/markdown"


class Layers:
    """Core memory, notes, daily notes, and what moves between them.

    Reads, and what is stored once for each key, are repeated while the service is away; edits that
    name a version, and movements, are not. Every call raises Refused and Unreachable.
    """

    def __init__(self, connection: Connection, checkpoint: str) -> None:
        self._connection = connection
        self._path = path_of("checkpoints", checkpoint)

    # Core memory

    def core(self) -> CoreMemory:
        """Return what is always in context."""
        return self._read(CoreMemory.read, self._get("core-memory"))

    def core_markdown(self) -> str:
        """Return the four sections as one document."""
        return self._connection.text(f"{self._path}/core-memory", accept=MARKDOWN)

    def section(self, section: str) -> Section:
        """Return a section, such as `active-context`."""
        return self._read(Section.read, self._get(f"core-memory/sections{path_of(section)}"))

    def set_section(self, section: str, text: str, *, if_match: str) -> Section:
        """Set a section's text, where its version is still the one named."""
        return self._edit_section("PUT", section, {"text": text}, if_match)

    def append_line(self, section: str, line: str, *, if_match: str) -> Section:
        """Put a line at the end of a section; one that core memory says already is not added."""
        return self._edit_section("PATCH", section, {"append": line}, if_match)

    def replace_line(self, section: str, old: str, new: str, *, if_match: str) -> Section:
        """Put a line in the place of another."""
        return self._edit_section("PATCH", section, {"replace": old, "with": new}, if_match)

    # Notes

    def notes(self, *, topic: str | None = None, name: str | None = None) -> list[Note]:
        """Return the notes that count, oldest first, every page of them."""
        return self._all(Note.read, "archival", topic=topic, name=name)

    def note(self, note: str) -> Note:
        """Return a note by its id, a superseded one too."""
        return self._read(Note.read, self._get(f"archival{path_of(note)}"))

    def write_note(
        self,
        topic: str,
        title: str,
        summary: str,
        *,
        details: str = "",
        tags: Sequence[str] = (),
        date: str | None = None,
        name: str | None = None,
    ) -> Note:
        """Store a note in parts; the very same one is there once."""
        parts = {"title": title, "summary": summary, "details": details, "tags": list(tags)}
        return self._read(
            Note.read,
            self._create("archival", {"topic": topic, **parts, **_given(date=date, name=name)}),
        )

    def write_note_text(self, topic: str, name: str, text: str) -> Note:
        """Store a note by the whole of its Markdown; the very same one is there once."""
        return self._read(
            Note.read, self._create("archival", {"topic": topic, "name": name, "text": text})
        )

    def correct_note(self, note: str, text: str, *, if_match: str) -> Note:
        """Store a note in the place of another, where no third one has taken it."""
        path = f"{self._path}/archival{path_of(note)}"
        headers = {"If-Match": if_match}
        return self._read(
            Note.read, self._connection.edit("PUT", path, json={"text": text}, headers=headers)
        )

    def search_notes(self, query: str, *, limit: int = 5, topic: str | None = None) -> NotesFound:
        """Return the best of the notes that count."""
        body = {"query": query, "limit": limit, "topic": topic}
        return self._read(NotesFound.read, self._post("archival/search", body))

    # What happened

    def daily_notes(self, *, date: str | None = None) -> list[DailyNote]:
        """Return the daily notes, of one day or of all, every page of them."""
        return self._all(DailyNote.read, "notes", date=date)

    def write_daily_note(
        self,
        text: str,
        *,
        date: str | None = None,
        at: str | None = None,
        heading: str | None = None,
    ) -> DailyNote:
        """Store what happened: now, or on the day or at the time given (RFC 3339, an offset)."""
        body = {"text": text, **_given(date=date, at=at, heading=heading)}
        return self._read(DailyNote.read, self._create("notes", body))

    def search_recall(self, query: str, *, limit: int = 5) -> Recalled:
        """Return the best of the trace and the daily notes."""
        return self._read(
            Recalled.read, self._post("recall/search", {"query": query, "limit": limit})
        )

    def session(self, query: str | None = None, *, limit: int = 5) -> Session:
        """Return what a session loads at its start; with a query, the notes that help most."""
        return self._read(Session.read, self._get("session", query=query, limit=str(limit)))

    # How it is sent

    def _edit_section(self, method: str, section: str, body: Answer, if_match: str) -> Section:
        path = f"{self._path}/core-memory/sections{path_of(section)}"
        headers = {"If-Match": if_match}
        return self._read(
            Section.read, self._connection.edit(method, path, json=body, headers=headers)
        )

    def _create(self, path: str, body: Answer) -> Answer:
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        return self._connection.send("POST", f"{self._path}/{path}", json=body, headers=headers)

    def _post(self, path: str, body: Answer) -> Answer:
        return self._connection.send("POST", f"{self._path}/{path}", json=body)

    def _get(self, path: str, **params: str | None) -> Answer:
        return self._connection.send("GET", f"{self._path}/{path}", params=_given(**params))

    def _all(self, read: Callable[[Answer], T], path: str, **params: str | None) -> list[T]:
        items: list[T] = []
        cursor: str | None = None
        while True:
            page = self._get(path, **params, limit=PAGE, cursor=cursor)
            more, cursor = self._read(lambda answer: _page(read, answer), page)
            items += more
            if cursor is None:
                return items

    def _read(self, read: Callable[[Answer], T], answer: Answer) -> T:
        return read_as(read, answer, address=self._connection.address)


def _page(read: Callable[[Answer], T], answer: Answer) -> tuple[list[T], str | None]:
    return list(map(read, answer["items"])), answer["next_cursor"]


def _given(**values: Any) -> Answer:
    return {name: value for name, value in values.items() if value is not None}
