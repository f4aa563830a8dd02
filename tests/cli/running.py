"""The command line as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "app.cli")


def environment(url: str = "", **variables: str) -> dict[str, str]:
    """Return a clean environment: nothing of whoever runs the tests has a say."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LINEAGE_", "LETTA_"))
    }
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "LINEAGE_URL": url, **variables}


def run(
    *arguments: str, url: str = "", cwd: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(url, **variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
