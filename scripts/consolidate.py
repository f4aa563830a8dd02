#!/usr/bin/env python3
"""Take decisions, lessons and new facts of the last days' notes into the archive.

A bare Python 3.11 or later runs it, from anywhere: it needs no package but the one beside it.
"""

import argparse
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036  (whatever `python3` is, it gets a sentence)
    sys.exit("This needs Python 3.11 or later: name one, such as python3.12.")

# The package is found beside this file, and leaves no bytecode there.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from app import workspace  # noqa: E402  (found only now)
from app.workspace.printing import told  # noqa: E402


def main() -> int:
    """Run the command and return its exit code: 0 done, 1 refused, 2 bad input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7, help="today and the days before (default 7)")
    parser.add_argument("--workspace", type=Path, required=True, help="the directory with memory/")
    parser.add_argument("--dry-run", action="store_true", help="show the diff and write nothing")
    given = parser.parse_args()
    return told(
        lambda: workspace.consolidate(given.workspace, days=given.days, dry_run=given.dry_run),
        dry_run=given.dry_run,
    )


if __name__ == "__main__":
    sys.exit(main())
