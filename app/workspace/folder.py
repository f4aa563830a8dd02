"""Read the files below one directory: no link is followed, and nothing outside is touched."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.workspace.descent import folder_of, open_file, opened_folder, told
from app.workspace.errors import NoWorkspace
from app.workspace.names import is_fit


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was read, by which a later write knows that nobody changed it meanwhile.

    `data` is None where there was no file.
    """

    path: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The plain files and folders of a folder by name, in order; all else is only counted up.

    `skipped` are links, devices, and names that no path of ours can hold (those as Python would
    write them).
    """

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class Folder:
    """An open directory; every path is relative to it, with / between the names.

    Every method raises BadName, LinkRefused, NotPlain and SystemRefused.
    """

    def __init__(self, root: int) -> None:
        self._root = root

    def read(self, path: str) -> Seen:
        """Return a file as it is now, and as absent where there is none."""
        try:
            with folder_of(self._root, path) as (parent, name):
                return _read(parent, name, path)
        except FileNotFoundError:
            return Seen(path, None)

    def list(self, path: str = "", *, at_most: int | None = None) -> Listing:
        """Return what lies in a folder, `at_most` so much of it; nothing where there is none."""
        try:
            with opened_folder(self._root, path) as folder, told(path or "."):
                return _listing(folder, at_most)
        except FileNotFoundError:
            return Listing()

    def has(self, path: str) -> bool:
        """Tell whether anything has this path: a file, a folder, a link or whatever else."""
        try:
            with folder_of(self._root, path) as (parent, name), told(path):
                os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


@contextmanager
def open_root(root: Path) -> Iterator[int]:
    """Give the directory that a person named, open; it alone may be a link. NoWorkspace."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise NoWorkspace(f"The workspace cannot be opened: {reason}. Name a directory.") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_folder(root: Path) -> Iterator[Folder]:
    """Give a directory for reading. NoWorkspace where there is none."""
    with open_root(root) as descriptor:
        yield Folder(descriptor)


def _read(parent: int, name: str, path: str) -> Seen:
    descriptor = open_file(parent, name, path=path, flags=os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file, told(path):
        return Seen(path, file.read())


def _listing(folder: int, at_most: int | None) -> Listing:
    files, folders, skipped = [], [], []
    with os.scandir(folder) as entries:
        for entry in islice(entries, at_most):
            if not is_fit(entry.name):
                skipped.append(ascii(entry.name))
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                skipped.append(entry.name)
    return Listing(*(tuple(sorted(names)) for names in (files, folders, skipped)))
