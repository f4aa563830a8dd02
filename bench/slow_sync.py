"""Builds the library that makes syncs slower, and measures what a sync costs here anyway."""

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).with_name("slow_sync.c")
ADDED_MS = 2


def why_not() -> str | None:
    """Return a sentence where syncs cannot be slowed on this machine, else None."""
    if sys.platform != "linux":
        return "Writes with slower syncs were left out: preloading a library needs Linux."
    if shutil.which("cc") is None:
        return "Writes with slower syncs were left out: there is no C compiler (`cc`) here."
    return None


def preload(work: Path) -> dict[str, str]:
    """Compile the library into `work` and return the environment that puts it before a server."""
    library = work / "slow_sync.so"
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"],  # noqa: S607  (as found)
        check=True,
    )
    return {"LD_PRELOAD": str(library)}


def sync_us(work: Path) -> float:
    """Return the median time of one fdatasync after a small append on this disk, in µs."""
    taken = []
    with (work / "sync-probe").open("wb", buffering=0) as probe:
        for _ in range(50):
            probe.write(b"x" * 4096)
            started = time.perf_counter()
            os.fdatasync(probe.fileno())
            taken.append((time.perf_counter() - started) * 1e6)
    return statistics.median(taken)
