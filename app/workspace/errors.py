"""What can go wrong in a workspace; each message names the place inside it and what to do."""


class WorkspaceError(Exception):
    """Base of all that a workspace refuses; nothing was overwritten then."""


class BadInput(WorkspaceError):
    """What was asked for cannot be done in any workspace; base of what the caller has to mend."""


class BadName(BadInput):
    """A name that could lead out of the workspace; the message does not repeat it."""

    def __init__(self) -> None:
        super().__init__(
            "A path in a workspace is made of plain names with / between them: not absolute, "
            "without `.` and `..`, backslash, percent code or control character."
        )


class BadTimezone(BadInput):
    """The zone is misspelt, or this system does not know it."""

    def __init__(self, zone: object, where: str) -> None:
        super().__init__(
            f"{where}: {zone!r} is no time zone that this system knows. Name one of the IANA list, "
            "such as Asia/Tokyo or UTC."
        )


class BadConfiguration(BadInput):
    """The workspace's own settings cannot be read."""


class NoWorkspace(BadInput):
    """The directory is none, or nobody has made a workspace of it."""


class LinkRefused(WorkspaceError):
    """What was asked for is a link, or lies behind one; what it names is not told."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is a link, and links are not followed here. Put what it names in its place."
        )
        self.path = path


class NotPlain(WorkspaceError):
    """A directory where a file is wanted, a file where a directory is, or a device or pipe."""

    def __init__(self, path: str, wanted: str) -> None:
        super().__init__(f"{path} is no plain {wanted}. Move it away, and try again.")
        self.path = path


class ChangedMeanwhile(WorkspaceError):
    """Somebody else wrote the file between reading and writing; theirs is kept."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was changed by somebody else meanwhile, and is kept as they left it. "
            "Run the command again."
        )
        self.path = path


class NotText(WorkspaceError):
    """A file that must be understood is not UTF-8."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not UTF-8. Save it as UTF-8, and try again.")
        self.path = path


class SystemRefused(WorkspaceError):
    """The system refused an access: permissions, a full disk."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}.")
        self.path = path


class InTheWay(WorkspaceError):
    """A note has to be written where a file is that was not read as one."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is to be a note, and what is there could not be read as that. Give it another "
            "name, and try again."
        )
        self.path = path
