"""The plain ranking that every search is held to."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from app.embedding.wordllama import WordLlamaEmbedder
from tests.support.client import Json


async def by_brute_force(query: str, entries: Sequence[Json]) -> list[str]:
    """Rank entries by cosine in float64, oldest first where equal, and return their ids.

    Entries are as the service lists them, in any order: no two of a checkpoint have one time.
    """
    if not entries:
        return []
    embedder = WordLlamaEmbedder.load()
    vectors = (await embedder.embed([entry["text"] for entry in entries])).astype(np.float64)
    [direction] = (await embedder.embed([query])).astype(np.float64)
    scores = (vectors * direction).sum(axis=1)
    times = [datetime.fromisoformat(entry["created_at"]) for entry in entries]
    order = sorted(range(len(entries)), key=lambda row: (-scores[row], times[row]))
    return [entries[row]["id"] for row in order]
