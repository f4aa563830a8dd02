"""Replay an experiment tree, and show for each node what it sees and what it must not.

`make demo`. Runs against the service at LINEAGE_URL if that is set, else against one of its own,
which ends with it. Ends with 1 if anything of a sibling branch is seen.
"""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from app.client import Service
from app.client.run_file import Run, load_run, read_run

ROOT = Path(__file__).parents[1]
RUN = ROOT / "examples" / "run.jsonl"
ALL = 100
SHOWN = 2
START_S = 60

console = Console()


@contextmanager
def service_url() -> Iterator[str]:
    """Give the address of a running service, started and stopped here where none is named."""
    if url := os.environ.get("LINEAGE_URL"):
        yield url
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as data:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve"],
            env={
                **{name: v for name, v in os.environ.items() if not name.startswith("LINEAGE_")},
                "PYTHONPATH": str(ROOT),
                "LINEAGE_PORT": str(port),
                "LINEAGE_DATA_DIR": data,
                "LINEAGE_LOG_LEVEL": "warning",
            },
            # Away from a .env that may name a database, which a demonstration should not fill.
            cwd=data,
        )
        try:
            wait_for(process, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    """Return a port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Return when the port accepts connections; end where the service ended, or takes too long."""
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    sys.exit("The service did not start.")


def lineage(run: Run, name: str) -> list[str]:
    """Return the names of a node's ancestors, root first, by the file."""
    parents = {node.name: node.parent for node in run.nodes}
    above: list[str] = []
    while (parent := parents[name]) is not None:
        above.insert(0, parent)
        name = parent
    return above


def draw(run: Run) -> Tree:
    """Draw the tree."""
    drawn: dict[str | None, Tree] = {None: Tree("the run")}
    for node in run.nodes:
        label = f"[bold]{node.name}[/] ({len(run.entries[node.name])}) {node.eval_summary or ''}"
        drawn[node.name] = drawn[node.parent].add(label)
    return drawn[None]


def show(service: Service, run: Run, checkpoint: str) -> int:
    """Print what every node sees; return how many entries were seen that must not be."""
    leaks = 0
    table = Table("node", "sees", "best for its direction", "must not see", show_lines=True)
    owners = {entry["text"]: name for name, some in run.entries.items() for entry in some}
    for node in run.nodes:
        node_id = f"{checkpoint}.{node.name}"
        allowed = lineage(run, node.name)
        hits = service.search(node_id, node.eval_summary, limit=ALL)["results"]
        seen = {owners[item["text"]] for item in [*hits, *service.inherited(node_id)]}
        leaked = seen - set(allowed)
        leaks += len(leaked)
        hidden = [other.name for other in run.nodes if other.name not in {*allowed, node.name}]
        table.add_row(
            node.name,
            f"{', '.join(allowed) or 'nothing'}\n{len(hits)} entries",
            "\n".join(f"{hit['score']:.2f} {hit['text'][:60]}" for hit in hits[:SHOWN]),
            f"{', '.join(hidden)}\n{_verdict(leaked)}",
        )
    console.print(table)
    return leaks


def _verdict(leaked: set[str]) -> str:
    return f"[red]LEAKED: {', '.join(sorted(leaked))}" if leaked else "[green]none seen"


def main() -> int:
    """Load, draw, ask, and tell."""
    run = read_run(RUN)
    checkpoint = f"demo-{secrets.token_hex(4)}"
    with service_url() as url, Service(url, api_key=os.environ.get("LINEAGE_API_KEY")) as service:
        nodes, entries = load_run(service, run, checkpoint, on_step=lambda: None)
        console.print(draw(run))
        leaks = show(service, run, checkpoint)
    console.print(f"{nodes} nodes, {entries} entries in checkpoint {checkpoint}: {leaks} leaks.")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
