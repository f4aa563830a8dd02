"""A search finds the best of its scope among 5,000 passages, in each mode, in one order.

Three replicas on one PostgreSQL, one a mode, in front of one Letta.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import count

import pytest

from app.archive.letta.windows import SearchMode
from tests.archive.brute_force import by_brute_force
from tests.support.client import Api, Json, answer, walk
from tests.support.letta import RealLetta
from tests.support.postgres import Postgres
from tests.support.service import InProcessService
from tests.support.storage import fresh_storage
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

# Loading takes a minute; a search that widens to all of 5,000 passages takes seconds.
pytestmark = [pytest.mark.letta, pytest.mark.slow, pytest.mark.timeout(580)]

NODES = 200
ENTRIES_A_NODE = 25
# Spread over the run, so that the instants of the scope do not tell it from the rest.
LINEAGE = ("n0", "n49", "n99", "n149", "n199")
SCOPE = ENTRIES_A_NODE * len(LINEAGE)
LIMITS = (5, 10)
# What today's users fetch, whatever they are to find in it.
WINDOW = 200
CROWDED = "which learning rate makes the validation loss plateau"
# 400 passages that nothing tells apart but their age; ten are in scope.
SAME_EVERYWHERE = "step done, metrics saved"
QUERIES = (
    CROWDED,
    SAME_EVERYWHERE,
    "dropout after the last layer",
    "seed noise in the accuracy metric",
    "損失が下がらない学習率",
)
WORDS = (
    *("loss", "rate", "batch", "learning", "validation", "gradient", "warm", "restart", "layer"),
    *("dropout", "seed", "noise", "metric", "epoch", "schedule", "weight", "decay", "accuracy"),
    *("plateau", "diverge", "embedding", "attention", "head", "token", "学習率", "損失", "cosine"),
)


@dataclass(frozen=True)
class Run:
    """A run of 200 nodes as each mode serves it, and the node that searches."""

    apis: dict[SearchMode, Api]
    checkpoint: str
    reader: str
    scope: Sequence[Json]

    def found(self, mode: SearchMode, query: str, *, limit: int) -> list[str]:
        """Search from below the lineage and return the ids of the hits, best first."""
        results = answer(self.apis[mode].search(self.reader, query, limit=limit))["results"]
        return [hit["entry_id"] for hit in results]


@pytest.fixture(scope="module")
def run(
    letta: RealLetta,
    letta_instance: str,
    letta_embeddings: str,
    postgres: Postgres,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Run]:
    """Load the run once for all tests."""
    with ExitStack() as opened:
        folder = tmp_path_factory.mktemp("recall") / "data"
        storage = opened.enter_context(fresh_storage(folder, server=postgres))
        apis: dict[SearchMode, Api] = {}
        for mode in SearchMode:
            service = InProcessService(
                storage,
                **letta.settings(letta_instance),
                embeddings_url=letta_embeddings,
                search=mode.value,
                index_wait_s=0,
            )
            opened.enter_context(service)
            apis[mode] = opened.enter_context(Api(service.base_url))
        yield load(apis)


def load(apis: dict[SearchMode, Api]) -> Run:
    """Write the run through one of the services and wait until Letta has it."""
    api = apis[SearchMode.SCOPED]
    tree = grow_tree(api, unique_checkpoint("recall"), {})
    lines = {True: in_scope_lines(seed=3), False: other_lines(seed=4)}
    parent: str | None = None
    for number in range(NODES):
        name = f"n{number}"
        tree.add(name, parent)
        answer(api.write_batch(tree[name], texts_of(lines[name in LINEAGE])))
        if name in LINEAGE:
            parent = name
    reader = tree.add("reader", parent)
    wait_until(
        lambda: indexed(tree) == NODES * ENTRIES_A_NODE,
        describe=lambda: f"5,000 entries are indexed; {indexed(tree)} are",
        timeout=400,
    )
    scope = list(walk(lambda cursor: api.inherited(reader, cursor=cursor, limit=100)))
    return Run(apis, tree.checkpoint, reader, scope)


def texts_of(lines: Iterator[str]) -> list[str]:
    """Return what a node writes: lines of its own, and one that every node writes twice."""
    return [next(lines) for _ in range(ENTRIES_A_NODE - 2)] + [SAME_EVERYWHERE] * 2


def in_scope_lines(*, seed: int) -> Iterator[str]:
    """Yield sentences about the same few things without end, all different."""
    chance = random.Random(seed)
    for number in count():
        yield f"step {number}: {' '.join(chance.choices(WORDS, k=chance.randint(5, 30)))}"


def other_lines(*, seed: int) -> Iterator[str]:
    """Yield the like, but one in five is a better answer to one query than any in scope."""
    for number, line in enumerate(in_scope_lines(seed=seed)):
        yield line if number % 5 else f"{CROWDED} {number}"


def indexed(tree: Tree) -> int:
    """Return how many entries of the tree the archive has taken."""
    checkpoint = answer(tree.api.get_checkpoint(tree.checkpoint))
    done: int = checkpoint["entries"] - checkpoint["pending"]
    return done


@pytest.mark.parametrize("mode", list(SearchMode))
async def test_recall_is_complete_and_the_order_is_that_of_brute_force(
    run: Run, mode: SearchMode
) -> None:
    assert len(run.scope) == SCOPE
    for query in QUERIES:
        expected = await by_brute_force(query, run.scope)
        for limit in LIMITS:
            assert run.found(mode, query, limit=limit) == expected[:limit], (query, limit)


async def test_a_fixed_window_of_letta_misses_most_of_the_scope(run: Run, letta: RealLetta) -> None:
    recalls = []
    for query in QUERIES:
        best = set((await by_brute_force(query, run.scope))[: max(LIMITS)])
        instants = window(letta, run.checkpoint, query, top_k=WINDOW)
        seen = {entry["id"] for entry in run.scope if instant_of(entry["created_at"]) in instants}
        assert len(seen) < SCOPE / 5, query
        recalls.append(len(best & seen) / len(best))
    assert sum(recalls) / len(recalls) < 0.9


def window(letta: RealLetta, checkpoint: str, query: str, *, top_k: int) -> set[datetime]:
    """Return the instants of the entries that Letta itself ranks first, in scope or not.

    No two entries of a checkpoint have one, and a passage has its entry's.
    """
    (agent,) = letta.agents(checkpoint)
    found = letta.http.get(
        f"/v1/agents/{agent['id']}/archival-memory/search", params={"query": query, "top_k": top_k}
    )
    return {instant_of(passage["timestamp"]) for passage in answer(found)["results"]}


def instant_of(text: str) -> datetime:
    return datetime.fromisoformat(text)
