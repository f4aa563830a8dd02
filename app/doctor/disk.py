"""Folders that the service writes to, and the room in them."""

import shutil
import tempfile
from pathlib import Path

from app.doctor.check import Check, fail, ok, warn

MIB = 1024 * 1024
# A snapshot is spooled before it is sent; SQLite needs room for its log.
LITTLE, TOO_LITTLE = 1024 * MIB, 64 * MIB


def check_folder(name: str, folder: Path, *, setting: str) -> Check:
    """Write into a folder, or where it will be made, and look at the room."""
    folder = folder.absolute()
    place = _nearest(folder)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"letta-lineage")
        free = shutil.disk_usage(place).free
    except OSError as error:
        return fail(
            name,
            f"{folder} cannot be written ({error.strerror}).",
            do=f"Give the service's user the right to write there, or change {setting}.",
        )
    says = f"{folder} is writable, {_size(free)} free" + ("." if place == folder else "; new.")
    if free < LITTLE:
        judge = fail if free < TOO_LITTLE else warn
        return judge(name, says, do=f"Make room, or move {setting} to another disk.")
    return ok(name, says)


def _nearest(folder: Path) -> Path:
    """Return the folder, or the closest above it that is there."""
    return next((place for place in (folder, *folder.parents) if place.exists()), folder)


def _size(free: int) -> str:
    return f"{free / MIB / 1024:,.1f} GiB" if free >= LITTLE else f"{free // MIB} MiB"
