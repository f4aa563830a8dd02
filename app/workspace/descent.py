"""The one way down from the root of a workspace: component by component, never through a link."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from app.workspace.errors import LinkRefused, NotPlain, SystemRefused
from app.workspace.names import parts

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe must not hold up who opens it.
FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
ODD = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}


@contextmanager
def folder_of(root: int, path: str) -> Iterator[tuple[int, str]]:
    """Give the open folder that a path lies in, and the path's last name.

    FileNotFoundError where there is no such folder; BadName, LinkRefused, NotPlain.
    """
    *above, name = parts(path)
    with opened_folder(root, "/".join(above)) as parent:
        yield parent, name


@contextmanager
def opened_folder(root: int, path: str) -> Iterator[int]:
    """Give the folder of a path ("" is the root), open. As `folder_of` otherwise."""
    names = parts(path) if path else ()
    here = os.dup(root)
    try:
        for depth, name in enumerate(names, start=1):
            below = _open_folder(here, "/".join(names[:depth]), name)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def open_file(parent: int, name: str, *, path: str, flags: int) -> int:
    """Open a plain file, and nothing else. FileNotFoundError, LinkRefused, NotPlain."""
    with told(path, parent=parent, wanted="file"):
        descriptor = os.open(name, flags | FILE, 0o666, dir_fd=parent)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotPlain(path, "file")


@contextmanager
def told(path: str, *, parent: int | None = None, wanted: str = "file") -> Iterator[None]:
    """Say of what the system refuses which place of the workspace it is, and no other path.

    FileNotFoundError and FileExistsError pass: they are answers, and the callers know them.
    """
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        if error.errno in ODD and parent is not None:
            raise _odd(parent, path, wanted) from None
        raise SystemRefused(path, error.strerror or "the system refused") from None


def _open_folder(parent: int, path: str, name: str) -> int:
    with told(path, parent=parent, wanted="folder"):
        return os.open(name, FOLDER, dir_fd=parent)


def _odd(parent: int, path: str, wanted: str) -> LinkRefused | NotPlain:
    name = path.rpartition("/")[2]
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except OSError:  # gone meanwhile
        mode = 0
    return LinkRefused(path) if stat.S_ISLNK(mode) else NotPlain(path, wanted)
