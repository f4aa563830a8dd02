"""Write below one directory: one writer at a time, whole files only, nothing overwritten blindly.

A file is written beside its place, synced, and renamed into it; before that, its place must still
hold the bytes that were read. A writer that is killed leaves at most such a file beside, which the
next one removes.
"""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.layers.note import Topic
from app.workspace.descent import folder_of, open_file, opened_folder, told
from app.workspace.errors import ChangedMeanwhile, LinkRefused, NotPlain
from app.workspace.folder import Folder, Seen, open_root
from app.workspace.names import parts
from app.workspace.outcome import Change
from app.workspace.paths import ARCHIVE, LOCK, MEMORY, OWN

# Where we write, and so where a killed writer may have left something.
WRITTEN = (OWN, MEMORY, ARCHIVE)
LEFTOVER = re.compile(r"\.lineage-[0-9a-f]{16}\.tmp")
NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


class Writer(Folder):
    """The one writer of a workspace, for as long as its lock is held."""

    def make_folder(self, path: str) -> bool:
        """Make a folder where there is none, and those above; tell whether it was missing."""
        names = parts(path)
        made = [self._make_one("/".join(names[:depth])) for depth in range(1, len(names) + 1)]
        return made[-1]

    def write(self, change: Change) -> None:
        """Put a change's bytes in the place of those that were read, or remove the file.

        Where there was no file, one is made, and its folders. ChangedMeanwhile where the file is
        not as it was read, or came meanwhile; then it is left alone.
        """
        if change.data is None:
            self._remove(change.seen)
        else:
            self._put(change.seen, change.data)

    def _put(self, seen: Seen, data: bytes) -> None:
        if above := "/".join(parts(seen.path)[:-1]):
            self.make_folder(above)
        with self._place(seen.path) as (parent, name), _beside(parent, data) as beside:
            if seen.data is None:
                _place_new(parent, beside, name)
            else:
                _take_after(parent, beside, name)
                # What comes between this look and the next line is the one thing not noticed.
                self._check(seen)
                os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
            _sync(parent)

    def _remove(self, seen: Seen) -> None:
        with self._place(seen.path) as (parent, name):
            self._check(seen)
            os.unlink(name, dir_fd=parent)
            _sync(parent)

    def _make_one(self, path: str) -> bool:
        with self._place(path) as (parent, name):
            try:
                os.mkdir(name, dir_fd=parent)
            except FileExistsError:
                with opened_folder(self._root, path):  # no file and no link
                    return False
            _sync(parent)
        return True

    @contextmanager
    def _place(self, path: str) -> Iterator[tuple[int, str]]:
        """Give the open folder and the name of a file; what comes or goes meanwhile is an error."""
        try:
            with folder_of(self._root, path) as (parent, name), told(path):
                yield parent, name
        except (FileNotFoundError, FileExistsError):
            raise ChangedMeanwhile(path) from None

    def _check(self, seen: Seen) -> None:
        if self.read(seen.path).data != seen.data:
            raise ChangedMeanwhile(seen.path)

    def sweep(self) -> None:
        """Remove what killed writers left; there are no others while the lock is held."""
        for place in (*WRITTEN, *(f"{ARCHIVE}/{topic.value}" for topic in Topic)):
            # Links are no places of ours: whoever needs what is behind one is told.
            with suppress(LinkRefused, NotPlain):
                for name in filter(LEFTOVER.fullmatch, self.list(place).files):
                    with folder_of(self._root, f"{place}/{name}") as (parent, _), told(place):
                        os.unlink(name, dir_fd=parent)


@contextmanager
def open_writer(root: Path) -> Iterator[Writer]:
    """Give a directory for writing, once all other writers of ours are done. NoWorkspace."""
    with open_root(root) as descriptor:
        writer = Writer(descriptor)
        writer.make_folder(OWN)
        with _locked(descriptor):
            writer.sweep()
            yield writer


@contextmanager
def _locked(root: int) -> Iterator[None]:
    # The kernel lets go of it with the process, however that ends.
    with folder_of(root, LOCK) as (parent, name):
        lock = open_file(parent, name, path=LOCK, flags=os.O_RDWR | os.O_CREAT)
    try:
        with told(LOCK):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def _beside(parent: int, data: bytes) -> Iterator[str]:
    """Give the name of a synced file with these bytes; what is left of it at the end is removed."""
    name = f".lineage-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o666, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)


def _take_after(parent: int, beside: str, name: str) -> None:
    """Give a file the rights of the one whose place it takes, and its owner where we may."""
    old = os.stat(name, dir_fd=parent, follow_symlinks=False)
    with suppress(PermissionError):
        os.chown(beside, old.st_uid, old.st_gid, dir_fd=parent, follow_symlinks=False)
    os.chmod(beside, stat.S_IMODE(old.st_mode), dir_fd=parent)


def _place_new(parent: int, beside: str, name: str) -> None:
    """Give a file its name only if nothing has it: FileExistsError, which a rename never raises."""
    try:
        os.link(beside, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        # A disk without hard links: nothing better is to be had there.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=parent))
        os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)


def _sync(folder: int) -> None:
    """Let the disk know a folder's names, where the file system has a way to do so."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
