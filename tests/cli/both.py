"""A folder and a checkpoint, as the commands that bring them together see them."""

import subprocess
from pathlib import Path

from app.cli.syncing import differences, pull, push
from app.client import Layers, Service
from tests.cli.running import run
from tests.cli.test_workspace import CORE
from tests.support.tree import Tree

NOTE = "# Rates — 2026-03-14\n\n## Summary\n\nRate 0.1 diverges\n"


class Both:
    """A folder and a checkpoint."""

    def __init__(self, folder: Path, service: Service, tree: Tree) -> None:
        self.folder, self.service, self.tree = folder, service, tree
        self.layers: Layers = service.layers(tree.checkpoint)

    def write(self, path: str, text: str) -> None:
        place = self.folder / "memory" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())

    def read(self, path: str) -> str:
        return (self.folder / "memory" / path).read_bytes().decode()

    def do(self, command: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        url = str(self.tree.api.http.base_url)
        done = run(
            "workspace", command, str(self.folder), self.tree.checkpoint, *arguments, url=url
        )
        assert done.returncode == code, done.stderr
        return done

    def do_on_checkpoint(self, command: str) -> subprocess.CompletedProcess[str]:
        return run(command, self.tree.checkpoint, url=str(self.tree.api.http.base_url))

    def push(self, *, overwrite: bool = False) -> None:
        push(self.folder, self.service, self.tree.checkpoint, overwrite=overwrite, dry_run=False)

    def pull(self, *, overwrite: bool = False) -> None:
        pull(self.folder, self.service, self.tree.checkpoint, overwrite=overwrite, dry_run=False)

    def differ(self) -> dict[str, str]:
        """What differs, by key, and what it asks for."""
        found, _ = differences(self.folder, self.service, self.tree.checkpoint)
        of_texts = {item.key: item.way.value for item in (*found.core, *found.notes)}
        return of_texts | {item.key: item.way.value for item in found.days}


def filled(both: Both) -> Both:
    both.write("core.md", CORE)
    both.write("archival/learnings/rates.md", NOTE)
    both.write("2026-03-14.md", "# 2026-03-14\n\n## Training\n- 09:30+09:00 loss 0.31\n- 東京\n")
    return both
