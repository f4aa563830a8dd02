"""The frame of a snapshot: gzip around lines, bounded in every direction.

Written deterministically: the same lines give the same bytes. Read in small steps, so that what
unpacks to more than is allowed is refused when the limit is crossed and not after.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO

from app.lineage.errors import SnapshotRefused, TooLarge

# A text of 32 KiB and metadata of 16 KiB, each character written as \uXXXX, and room beside.
MAX_LINE_BYTES = 512 * 1024
# Short lines take longest for each byte: three gigabytes of blank ones would take half an hour.
MAX_LINES = 10_000_000
STEP_BYTES = 64 * 1024
# gzip's own frame; zlib writes no time and no name into it.
GZIP = 16 + zlib.MAX_WBITS
LEVEL = 6


@dataclass(slots=True)
class LineWriter:
    """Packs lines into a file, counting them and their digest."""

    file: IO[bytes]
    lines: int = 0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _packer: "zlib._Compress" = field(default_factory=lambda: zlib.compressobj(LEVEL, wbits=GZIP))

    def write(self, line: str) -> None:
        """Add a line."""
        raw = line.encode() + b"\n"
        self.lines += 1
        self._digest.update(raw)
        self.file.write(self._packer.compress(raw))

    @property
    def sha256(self) -> str:
        """The digest of the lines so far, unpacked, in hex."""
        return self._digest.hexdigest()

    def finish(self) -> None:
        """Write what the packer still holds."""
        self.file.write(self._packer.flush())


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line and the digest of all that stands before it, unpacked."""

    number: int
    raw: bytes
    sha256_before: str


def read_lines(
    file: IO[bytes], *, max_bytes: int, at_each_step: Callable[[], None]
) -> Iterator[RawLine]:
    """Yield the lines that are not blank.

    SnapshotRefused where it is no whole gzip file, a line is longer than any may be or they are
    too many, TooLarge where it unpacks to more than `max_bytes`, and what `at_each_step` raises,
    which is called every 64 KiB at the latest.
    """
    digest = hashlib.sha256()
    number = 0
    rest = b""
    for block in _unpacked(file, max_bytes=max_bytes):
        at_each_step()
        *whole, rest = (rest + block).split(b"\n")
        for raw in whole:
            number += 1
            _check_length(raw, number)
            if number > MAX_LINES:
                raise SnapshotRefused(number, f"a snapshot may have at most {MAX_LINES} lines")
            if raw.strip():
                yield RawLine(number, raw, digest.copy().hexdigest())
            digest.update(raw + b"\n")
        _check_length(rest, number + 1)
    if rest.strip():
        yield RawLine(number + 1, rest, digest.hexdigest())


def _check_length(raw: bytes, number: int) -> None:
    if len(raw) > MAX_LINE_BYTES:
        raise SnapshotRefused(number, f"it is longer than {MAX_LINE_BYTES} bytes")


def _unpacked(file: IO[bytes], *, max_bytes: int) -> Iterator[bytes]:
    """Yield what the members of a gzip file hold, a step at a time."""
    unpacker = zlib.decompressobj(GZIP)
    left = max_bytes
    began = False
    data = file.read(STEP_BYTES)
    while data:
        try:
            block = unpacker.decompress(data, STEP_BYTES)
        except zlib.error:
            raise SnapshotRefused(None, "it is not a whole gzip file") from None
        began = True
        left -= len(block)
        if left < 0:
            raise TooLarge("The snapshot, unpacked,", limit=max_bytes)
        if block:
            yield block
        if unpacker.eof:
            # Another member may follow, or a file's padding with zeros.
            data = unpacker.unused_data.lstrip(b"\0") or _next_member(file)
            unpacker = zlib.decompressobj(GZIP)
            began = False
        else:
            data = unpacker.unconsumed_tail or file.read(STEP_BYTES)
    if began:
        raise SnapshotRefused(None, "it ends before its gzip does: it was cut off")


def _next_member(file: IO[bytes]) -> bytes:
    while data := file.read(STEP_BYTES):
        if stripped := data.lstrip(b"\0"):
            return stripped
    return b""
