"""What a call changes in a workspace: the files, in the order in which they are written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.layers.diffs import unified
from app.workspace.folder import Seen


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it was read, and the bytes that take its place; None removes it."""

    seen: Seen
    data: bytes | None

    @property
    def path(self) -> str:
        """Where the file is in the workspace."""
        return self.seen.path

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return unified(self.path, _shown(self.seen.data), _shown(self.data))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did, or in a dry run would do.

    `report` has a sentence for each thing done, `skipped` one for each file that was left alone.
    """

    changes: Sequence[Change] = ()
    report: Sequence[str] = ()
    skipped: Sequence[str] = ()

    @property
    def diff(self) -> str:
        """All changes as one unified diff; empty where nothing changes."""
        return "".join(change.diff for change in self.changes)


def changed(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes that change a byte."""
    return tuple(change for change in changes if change.data != change.seen.data)


def _shown(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
