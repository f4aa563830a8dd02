"""What a movement or an edit may be refused for."""

from app.lineage.errors import LineageError


class LineMismatch(LineageError):
    """The line to replace is not there, or it is there more than once."""

    def __init__(self, found: int) -> None:
        super().__init__(
            "No line of the section is this one."
            if found == 0
            else f"{found} lines of the section are this one; name one that is there once."
        )
        self.found = found


class UnknownItem(LineageError):
    """No item of the section is the one named."""

    def __init__(self, section: str) -> None:
        super().__init__(f"No item of the section {section!r} is this one.")
        self.section = section


class UnknownNote(LineageError):
    """No note has this id or name."""

    def __init__(self, note: str) -> None:
        super().__init__(f"There is no note {note!r}.")
        self.note = note


class DuplicateFact(LineageError):
    """The fact is kept already, in another layer."""

    def __init__(self, where: str, advice: str) -> None:
        super().__init__(f"This is kept already, in {where}: {advice}.")
        self.where = where

    @property
    def extra(self) -> dict[str, object]:
        """Name what helps to mend it."""
        return {"where": self.where}


class CredentialInCore(LineageError):
    """An edit of core memory holds what looks like a credential; the message does not repeat it."""

    def __init__(self, where: str, kind: str) -> None:
        super().__init__(
            f"{where} holds what looks like a credential ({kind}), and every node reads core "
            "memory. Keep it in a secret store; where it is to be found can be said in a note of "
            "the archive's topic `reference`, and core memory can say `See archival: "
            "reference/<name>`."
        )
        self.where, self.kind = where, kind

    @property
    def extra(self) -> dict[str, object]:
        """Name what helps to mend it."""
        return {"where": self.where, "kind": self.kind, "topic": "reference"}
