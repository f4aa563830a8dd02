"""What a user would pick instead: a Chroma server, told by `where` which nodes may be seen.

It gets ready vectors; the service has to embed each question as well.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from app.embedding.wordllama import WordLlamaEmbedder
from bench import corpus, experiment
from bench.calls import Api, post_request
from bench.load import Group
from bench.measures import AtLeast, Findings, Goal, Measure, speed
from bench.progress import say
from bench.servers import Server, free_port, running
from bench.stages import Stage

HERE = Path(__file__).parent
VENV = HERE / ".venv-chroma"
LOCK = HERE / "requirements-chroma.lock"
COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
BATCH = 1_000
CLIENTS = 8
GOALS: dict[int, Goal] = {10_000: AtLeast(10), 100_000: AtLeast(50)}


def measure(stage: Stage) -> Findings:
    """Search with the same questions over the same entries, eight clients each."""
    findings = Findings(
        f"Beside a Chroma server {_version()}: {experiment.SCOPE_ENTRIES} entries in scope, "
        f"{CLIENTS} clients"
    )
    for entries in stage.effort.chroma_sizes:
        service = stage.filled(entries)
        with _chroma(stage, entries=entries) as server:
            say(f"filling Chroma with {entries:,} entries")
            rival = _fill(server.port, entries=entries)
            say(f"searches beside Chroma, {entries:,} entries")
            searches = experiment.searches(service.port, clients=CLIENTS)
            ours, base = stage.take_turns(searches, rival)
            holds = server.resident_mib()
        findings.measures.extend(
            speed(
                f"searches at {entries:,} entries",
                ours,
                base,
                base_name="Chroma",
                goals={"rate": GOALS[entries]},
            )
        )
        findings.measures.append(
            Measure(
                what=f"resident memory at {entries:,} entries",
                unit="MiB",
                ours=[service.resident_mib()],
                base=[holds],
                base_name="Chroma",
            )
        )
    return findings


def _version() -> str:
    """Install Chroma on first use and return its version."""
    python = VENV / "bin" / "python"
    stamp = VENV / ".installed"
    if not stamp.exists() or stamp.stat().st_mtime < LOCK.stat().st_mtime:
        say("installing Chroma into an environment of its own (once, about a minute)")
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [python, "-m", "pip", "install", *quiet, "--require-hashes", "-r", LOCK],
            check=True,
            stdout=sys.stderr,
        )
        stamp.touch()
    asked = "from importlib.metadata import version; print(version('chromadb'))"
    answer = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


@contextmanager
def _chroma(stage: Stage, *, entries: int) -> Iterator[Server]:
    port = free_port()
    data = stage.work / f"chroma-{entries}"
    with running(
        [
            *(str(VENV / "bin" / "chroma"), "run", "--path", str(data)),
            *("--host", "127.0.0.1", "--port", str(port)),
        ],
        port=port,
        health="/api/v2/heartbeat",
        log=stage.work / f"chroma-{entries}.log",
        env={"ANONYMIZED_TELEMETRY": "False"},
    ) as server:
        yield server


def _fill(port: int, *, entries: int) -> Group:
    """Add the entries that the service holds, node by node, and return the clients that search."""
    embedder = WordLlamaEmbedder.load()
    api = Api(port)
    collection = api.post(
        COLLECTIONS, {"name": "bench", "configuration": {"hnsw": {"space": "cosine"}}}
    )["id"]
    nodes = experiment.node_of_each_entry(entries)
    texts = corpus.texts(seed=experiment.SEED)
    for start in range(0, entries, BATCH):
        batch = list(islice(texts, BATCH))[: entries - start]
        api.post(
            f"{COLLECTIONS}/{collection}/add",
            {
                "ids": [str(start + place) for place in range(len(batch))],
                "documents": batch,
                "metadatas": [{"node": next(nodes)} for _ in batch],
                "embeddings": _vectors(embedder, batch),
            },
        )
    api.close()
    return _searches(port, collection, _vectors(embedder, corpus.queries()))


def _vectors(embedder: WordLlamaEmbedder, texts: Sequence[str]) -> list[list[float]]:
    vectors: list[list[float]] = asyncio.run(embedder.embed(texts)).tolist()
    return vectors


def _searches(port: int, collection: str, vectors: Sequence[Sequence[float]]) -> Group:
    requests = [
        post_request(
            f"{COLLECTIONS}/{collection}/query",
            {
                "query_embeddings": [vector],
                "where": {"node": {"$in": experiment.LINEAGE}},
                "n_results": experiment.RESULTS,
                "include": ["documents", "metadatas", "distances"],
            },
        )
        for vector in vectors
    ]
    return Group(port, [requests[at:] + requests[:at] for at in range(CLIENTS)])
