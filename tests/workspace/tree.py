"""A directory as a whole: what a test compares before and after."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# As bare as an interpreter gets: no site packages, no environment, no bytecode left behind.
BARE = (sys.executable, "-I", "-S", "-B")


@dataclass(frozen=True)
class Entry:
    """A file, a folder or a link; `content` is what it holds or names."""

    inode: int
    mode: int
    modified_ns: int
    changed_ns: int
    content: bytes | str | None


def everything(root: Path) -> dict[str, Entry]:
    """Return all that is below a directory, itself included, with its times."""
    return {str(path.relative_to(root)): _entry(path) for path in (root, *sorted(root.rglob("*")))}


def contents(root: Path) -> dict[str, bytes]:
    """Return the files below a directory by path, but links and what is ours."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and ".lineage" not in path.relative_to(root).parts
    }


def bare(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that has the standard library and this repository alone."""
    return subprocess.run(
        [*BARE, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )


def _entry(path: Path) -> Entry:
    status = path.lstat()
    content: bytes | str | None = None
    if path.is_symlink():
        content = str(path.readlink())
    elif path.is_file():
        content = path.read_bytes()
    return Entry(status.st_ino, status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
