"""An archive that is right about the scope and wrong about everything beside it."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.archive.port import Archive, Hit, Question
from app.memory.services import Services
from tests.support.service import InProcessService

FOREIGN_HITS = 6


class LeakyArchive:
    """Finds what it should, in order, and in between whatever else it was ever told of.

    What it mixes in: entries of siblings, descendants and other checkpoints, steps of the trace,
    entries cleared since, those that the filter excludes, ids that never were, and hits for a
    second time.
    """

    def __init__(self, archive: Archive, known: Sequence[str], *, seed: int) -> None:
        self._archive = archive
        self._known = known
        self._random = random.Random(seed)

    async def search(self, question: Question) -> Sequence[Hit]:
        """Keep the order of the true hits, and the first place of each."""
        hits = list(await self._archive.search(question))
        wanted = {entry.id for part in await question.candidates() for entry in part.entries}
        for _ in range(FOREIGN_HITS):
            foreign = self._random.choice([*self._known, "never-was"])
            if foreign not in wanted:
                hits.insert(self._random.randint(0, len(hits)), Hit(foreign, 1.0))
        if hits:
            again = self._random.randrange(len(hits))
            hits.insert(self._random.randint(again + 1, len(hits)), hits[again])
        return hits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)


def make_leaky(service: InProcessService, known: Sequence[str], *, seed: int) -> None:
    """Put the leak into a running service; `known` may grow while it serves."""
    services: Services = service.app.state.services
    archive = services.archive
    tight = archive._archive if isinstance(archive, LeakyArchive) else archive
    leaky = LeakyArchive(tight, known, seed=seed)
    service.app.state.services = replace(services, archive=leaky)
