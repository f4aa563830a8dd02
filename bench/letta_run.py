"""A run behind a real Letta, and the ways to search it that are compared."""

import asyncio
import http.client
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from urllib.parse import quote

import numpy as np
from letta_client import Letta

from app.embedding.wordllama import WordLlamaEmbedder
from bench import corpus
from bench.calls import Api, Json
from bench.real_letta import RealLetta

ENTRIES_A_NODE = 25
LINEAGE_NODES = 5
SCOPE = LINEAGE_NODES * ENTRIES_A_NODE
LIMIT = 10
# What our users ask of Letta today, to find ten in it.
WINDOW = max(200, 40 * LIMIT)
# As `archive` mode widens: its calls are repeated here one by one.
WIDENING = 4
EVERYTHING = 0
INDEXING_TIMEOUT_S = 600


class NotComparable(Exception):
    """What is measured is not what the comparison says; the message tells how."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A run of so many entries: 125 of them in five nodes spread over it, above the reader.

    `scope` are the entries that the reader inherits, as the service lists them.
    """

    entries: int
    checkpoint: str
    agent_id: str
    reader: str
    scope: Sequence[Json]


@dataclass(frozen=True, slots=True)
class Answered:
    """How long a search took, and the entries that it found, best first."""

    ms: float
    found: Sequence[str]


Search = Callable[[str], Sequence[str]]


def timed(search: Search, query: str) -> Answered:
    """Search once."""
    started = time.perf_counter()
    found = search(query)
    return Answered((time.perf_counter() - started) * 1000, found)


# Planting


def plant(port: int, letta: RealLetta, checkpoint: str, *, entries: int) -> Planted:
    """Write a run through the service and wait until Letta has it."""
    api = Api(port)
    api.post("/checkpoints", {"id": checkpoint})
    nodes = entries // ENTRIES_A_NODE
    lineage = {round(step * (nodes - 1) / (LINEAGE_NODES - 1)) for step in range(LINEAGE_NODES)}
    written = corpus.texts(seed=entries)
    parent = None
    for number in range(nodes):
        name = f"step{number}"
        grow(api, checkpoint, name, parent=parent)
        api.post(
            f"/nodes/{checkpoint}.{name}/memory/batch",
            {"entries": [{"text": text} for text in islice(written, ENTRIES_A_NODE)]},
            headers={"X-Current-Node": f"{checkpoint}.{name}"},
        )
        if number in lineage:
            parent = name
    grow(api, checkpoint, "reader", parent=parent)
    wait_until_indexed(api, checkpoint)
    reader = f"{checkpoint}.reader"
    scope = _inherited(api, reader)
    api.close()
    return Planted(entries, checkpoint, letta.agent_of(checkpoint), reader, scope)


def grow(api: Api, checkpoint: str, name: str, *, parent: str | None) -> None:
    """Add a node."""
    api.post(f"/checkpoints/{checkpoint}/nodes", {"name": name, "parent": parent})


def wait_until_indexed(api: Api, checkpoint: str) -> None:
    """Wait until no entry is pending; NotComparable where that takes too long."""
    deadline = time.monotonic() + INDEXING_TIMEOUT_S
    while pending := api.get(f"/checkpoints/{checkpoint}")["pending"]:
        if time.monotonic() > deadline:
            raise NotComparable(f"{pending} entries are still pending")
        time.sleep(0.2)  # between two looks, not instead of one


def _inherited(api: Api, reader: str) -> list[Json]:
    entries: list[Json] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api.get(f"/nodes/{reader}/memory/inherited?limit=100{cursor}")
        entries += page["items"]
        cursor = page["next_cursor"] and f"&cursor={quote(page['next_cursor'])}"
    return entries


def best_by_brute_force(run: Planted, queries: Sequence[str]) -> dict[str, list[str]]:
    """Return the entries that each query should find, by cosines in float64."""
    embedder = WordLlamaEmbedder.load()

    def embed(texts: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return asyncio.run(embedder.embed(texts)).astype(np.float64)

    scores = embed(queries) @ embed([entry["text"] for entry in run.scope]).T
    ids = [entry["id"] for entry in run.scope]
    return {
        query: [ids[row] for row in np.argsort(-row_scores, kind="stable")[:LIMIT]]
        for query, row_scores in zip(queries, scores, strict=True)
    }


# The ways to search


def ours(port: int, run: Planted) -> Search:
    """Search by the service."""

    def search(query: str) -> list[str]:
        api = Api(port)
        try:
            body = {"query": query, "limit": LIMIT}
            answer = api.post(f"/nodes/{run.reader}/memory/search", body)
        finally:
            api.close()
        return [hit["entry_id"] for hit in answer["results"]]

    return search


def raw_window(letta: RealLetta, run: Planted) -> Search:
    """Let Letta search alone, at the window of the others; nothing is filtered or decoded."""

    def search(query: str) -> list[str]:
        letta.search(run.agent_id, {"query": query, "top_k": WINDOW})
        return []

    return search


def fixed_window(letta: RealLetta, run: Planted) -> Search:
    """Search as our users do: one window by Letta's client, then keep what is of the lineage."""
    client = Letta(base_url=letta.url, api_key="none", max_retries=0)
    wanted = ids_by_instant(run)

    def search(query: str) -> list[str]:
        answer = client.agents.passages.search(run.agent_id, query=query, top_k=WINDOW)
        instants = [datetime.fromisoformat(hit.timestamp) for hit in answer.results]
        return [wanted[instant] for instant in instants if instant in wanted][:LIMIT]

    return search


class SameCalls:
    """The calls that `archive` mode makes for a query, found out beforehand, made again raw."""

    def __init__(self, letta: RealLetta, run: Planted, queries: Sequence[str]) -> None:
        self._letta = letta
        self._run = run
        instants = sorted(entry["created_at"] for entry in run.scope)
        self._span = {"start_datetime": instants[0], "end_datetime": instants[-1]}
        self.windows: Mapping[str, Sequence[int]] = {
            query: self._windows(query) for query in queries
        }

    def __call__(self, query: str) -> list[str]:
        """Make the calls of a query; the answers are received and not decoded."""
        for window in self.windows[query]:
            self._ask(query, window)
        return []

    def _windows(self, query: str) -> list[int]:
        window = WINDOW
        windows = [window]
        while self._in_scope(self._ask(query, window)) < LIMIT and window != EVERYTHING:
            window *= WIDENING
            window = window if window < self._run.entries else EVERYTHING
            windows.append(window)
        return windows

    def _ask(self, query: str, window: int) -> bytes:
        params = {"query": query, "top_k": window, **self._span}
        return self._letta.search(self._run.agent_id, params)

    def _in_scope(self, answer: bytes) -> int:
        wanted = ids_by_instant(self._run)
        results = json.loads(answer)["results"]
        return sum(datetime.fromisoformat(hit["timestamp"]) in wanted for hit in results)


def ids_by_instant(run: Planted) -> dict[datetime, str]:
    """Return the entries in scope by their instants, which their passages share."""
    return {datetime.fromisoformat(entry["created_at"]): entry["id"] for entry in run.scope}


def windows_asked(port: int) -> int:
    """Return how many windows the service has asked of Letta, by its metrics."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
    finally:
        connection.close()
    found = re.findall(r"^lineage_search_rounds_sum(?:{[^}]*})? (\S+)$", metrics, re.MULTILINE)
    return round(sum(map(float, found)))
