"""A file that is the old one or the whole new one."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from app.cli.output import BadInput


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file beside the path, which is synced and takes its place when the block is done.

    A link stays one, and what it names is replaced; the rights of what was there stay. A device or
    a pipe is written to directly.
    """
    target = path.resolve()
    if target.is_dir():
        raise BadInput(f"{path} is a directory.")
    if not target.parent.is_dir():
        raise BadInput(f"There is no directory {target.parent} for {path.name}.")
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
