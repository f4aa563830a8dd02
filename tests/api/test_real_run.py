"""A whole run as it was lived: each node learns from its lineage, and from all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest

from app.client.run_file import Run, load_run, read_run
from app.client.service import Service
from tests.archive.brute_force import by_brute_force
from tests.support.client import Api, Json, answer, walk
from tests.support.service import InProcessService
from tests.support.tree import unique_checkpoint

RUN = Path(__file__).parents[2] / "examples" / "run.jsonl"
QUERIES = (
    "which change helped the validation metric most",
    "what went wrong and must not be tried again",
    "learning rate",
    "損失が下がらない",
)
LIMITS = (1, 5, 100)


@dataclass(frozen=True)
class LoadedRun:
    """A run in a checkpoint, with the file's own word on who descends from whom."""

    api: Api
    checkpoint: str
    parents: Mapping[str, str | None]
    entries: Mapping[str, Sequence[Json]]

    def lineage(self, name: str) -> list[str]:
        """Return the names of a node's ancestors as the file has them, root first."""
        above: list[str] = []
        parent = self.parents[name]
        while parent is not None:
            above.insert(0, parent)
            parent = self.parents[parent]
        return above

    def id_of(self, name: str) -> str:
        return f"{self.checkpoint}.{name}"

    def stored(self, name: str) -> list[Json]:
        """Return all of a node's own entries, oldest first."""
        return list(walk(lambda cursor: self.api.entries(self.id_of(name), cursor=cursor)))


def load(service: InProcessService, api: Api, run: Run) -> LoadedRun:
    checkpoint = unique_checkpoint()
    with Service(service.base_url, api_key=None) as client:
        load_run(client, run, checkpoint, on_step=lambda: None)
    return LoadedRun(
        api, checkpoint, {node.name: node.parent for node in run.nodes}, dict(run.entries)
    )


@pytest.fixture
def loaded(service: InProcessService, api: Api) -> LoadedRun:
    return load(service, api, read_run(RUN))


def test_every_entry_of_the_file_is_stored_once_as_written(loaded: LoadedRun) -> None:
    for name, entries in loaded.entries.items():
        stored = [{"text": e["text"], "metadata": e["metadata"]} for e in loaded.stored(name)]
        assert stored == list(entries)


def test_every_node_has_the_lineage_of_the_file(loaded: LoadedRun) -> None:
    for name in loaded.parents:
        node = answer(loaded.api.get_node(loaded.id_of(name)))
        assert node["lineage"] == [loaded.id_of(above) for above in loaded.lineage(name)]


def test_every_node_inherits_its_lineages_entries_root_first(loaded: LoadedRun) -> None:
    for name in loaded.parents:
        expected = [e["id"] for above in loaded.lineage(name) for e in loaded.stored(above)]
        items = walk(partial(inherited_page, loaded.api, loaded.id_of(name)))
        assert [entry["id"] for entry in items] == expected


def inherited_page(api: Api, node: str, cursor: str | None) -> httpx.Response:
    return api.inherited(node, cursor=cursor, limit=7)


async def test_every_search_is_the_best_of_the_lineage_by_brute_force(loaded: LoadedRun) -> None:
    in_scope = {name: loaded.stored(name) for name in loaded.parents}
    for name in loaded.parents:
        scope = [e for above in loaded.lineage(name) for e in in_scope[above]]
        for query in QUERIES:
            expected = await by_brute_force(query, scope)
            for limit in LIMITS:
                found = answer(loaded.api.search(loaded.id_of(name), query, limit=limit))
                hits = [hit["entry_id"] for hit in found["results"]]
                assert len(hits) == min(limit, len(scope))
                assert hits == expected[:limit], (name, query)
