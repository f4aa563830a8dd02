"""Replay an experiment tree, and show for each node what it sees and what it must not.

`make demo`. Runs against the service at LINEAGE_URL if it answers there, else against one of its
own, which ends with it. Ends with 1 if a node is shown a text that is not of its lineage, or is not
shown one that is: where nothing is found, nothing leaks either.
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
from dataclasses import dataclass
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from app.client import Answer, Service
from app.client.run_file import Run, RunNode, load_run, read_run

ROOT = Path(__file__).parents[1]
RUN = ROOT / "examples" / "run.jsonl"
ALL = 100
SHOWN = 2
CUT = 60
START_S = 60
PROBE_S = 5

console = Console()


@dataclass(frozen=True, slots=True)
class Answers:
    """What a node was shown: the best hits for its direction, and every text in any answer."""

    best: list[Answer]
    texts: set[str]


@contextmanager
def service_url() -> Iterator[str]:
    """Give the address of a running service, started and stopped here where none answers."""
    if url := os.environ.get("LINEAGE_URL"):
        if answers(url):
            yield url
            return
        console.print(f"Nothing answers at {url}: starting a service for this demonstration.")
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


def answers(url: str) -> bool:
    """Tell whether a service lives at an address."""
    try:
        return httpx.get(f"{url.rstrip('/')}/healthz", timeout=PROBE_S).is_success
    except (httpx.TransportError, httpx.InvalidURL):
        return False


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


def show(service: Service, run: Run, checkpoint: str) -> tuple[int, int]:
    """Print what every node sees; return how many texts leaked, and how many were missed."""
    leaks = missed = 0
    table = Table("node", "sees", "best for its direction", "must not see", show_lines=True)
    for node in run.nodes:
        allowed = lineage(run, node.name)
        hidden = hidden_texts(run, node.name)
        shown = ask(service, f"{checkpoint}.{node.name}", hidden)
        readable = {entry["text"] for name in allowed for entry in run.entries[name]}
        seen, leaked = shown.texts & readable, shown.texts - readable
        leaks += len(leaked)
        missed += len(readable) - len(seen)
        table.add_row(
            node.name,
            f"{', '.join(allowed) or 'nothing'}\n{len(seen)} of {len(readable)} entries",
            "\n".join(f"{hit['score']:.2f} {hit['text'][:CUT]}" for hit in shown.best),
            f"{_named(run, node, hidden)}\n{_verdict(leaked, asked=len(hidden))}",
        )
    console.print(table)
    return leaks, missed


def hidden_texts(run: Run, name: str) -> list[str]:
    """Return the texts of all nodes that are neither a node's ancestors nor the node itself."""
    own = {*lineage(run, name), name}
    return [
        entry["text"]
        for node in run.nodes
        if node.name not in own
        for entry in run.entries[node.name]
    ]


def ask(service: Service, node_id: str, hidden: list[str]) -> Answers:
    """Ask as a worker does, and then for every hidden text by its own words.

    A search for its own words ranks a text first wherever it can be found at all.
    """
    best = service.search(node_id, limit=ALL)["results"]
    prying = [hit for text in hidden for hit in service.search(node_id, text, limit=1)["results"]]
    items = [*best, *service.inherited(node_id), *prying]
    return Answers(best[:SHOWN], {item["text"] for item in items})


def _named(run: Run, node: RunNode, hidden: list[str]) -> str:
    """Name the siblings' texts, and count those that lie further away."""
    siblings = [other for other in run.nodes if other.parent == node.parent and other != node]
    texts = [
        f"{other.name}: {entry['text'][:CUT]}"
        for other in siblings
        for entry in run.entries[other.name]
    ]
    return "\n".join([*texts, f"and {len(hidden) - len(texts)} texts of other nodes"])


def _verdict(leaked: set[str], *, asked: int) -> str:
    if leaked:
        return "\n".join(f"[red]LEAKED: {text}" for text in sorted(leaked))
    return f"[green]asked for all {asked}, none seen"


def main() -> int:
    """Load, draw, ask, and tell."""
    run = read_run(RUN)
    checkpoint = f"demo-{secrets.token_hex(4)}"
    with service_url() as url, Service(url, api_key=os.environ.get("LINEAGE_API_KEY")) as service:
        nodes, entries = load_run(service, run, checkpoint, on_step=lambda: None)
        console.print(draw(run))
        leaks, missed = show(service, run, checkpoint)
    console.print(
        f"{nodes} nodes, {entries} entries in checkpoint {checkpoint}: "
        f"{leaks} leaks, {missed} missed."
    )
    return 1 if leaks or missed else 0


if __name__ == "__main__":
    sys.exit(main())
