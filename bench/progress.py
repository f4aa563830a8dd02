"""Where the benchmark tells what it is doing; the report alone goes to standard output."""

import sys
import time

_started = time.monotonic()


def say(what: str) -> None:
    """Write one line with the seconds since the start."""
    sys.stderr.write(f"{time.monotonic() - _started:6.1f} s  {what}\n")
    sys.stderr.flush()
