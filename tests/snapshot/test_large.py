"""A checkpoint of 100,000 entries goes out and in, in flat memory, on either database."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import StartLive
from tests.snapshot.files import entry, header, node, sealed
from tests.snapshot.sample import await_index, portrait
from tests.snapshot.test_bombs import Memory
from tests.support.client import Api, Json, answer
from tests.support.service import LiveService
from tests.support.storage import Storage
from tests.support.tree import unique_checkpoint

ENTRIES = 100_000
NODES = 250
WORDS = [
    "loss",
    "metric",
    "rate",
    "batch",
    "seed",
    "door",
    "tree",
    "depth",
    "lag",
    "warm",
    "fox",
    "train",
    "損失",
    "検証",
    "🦊",
]


def lines(checkpoint: str) -> Iterator[Json]:
    """Yield a checkpoint whose nodes each stand below one made earlier, with some of all."""
    chance = random.Random(ENTRIES)
    yield header(checkpoint, name="large", metadata={"team": "b"})
    yield node("n0")
    for number in range(1, NODES):
        sealed_at = 1_800_000_000.25 if number % 7 == 0 else None
        parent = f"n{chance.randrange(number)}"
        yield node(f"n{number}", parent, created_at=float(number), sealed_at=sealed_at)
    seed = {"kind": "core_seed", "persona": "Careful.", "human": "Ada", "context": None}
    yield {**seed, "seeded_at": 1_700_000_000.125}
    for number in range(ENTRIES):
        said = " ".join(chance.choices(WORDS, k=30))
        step = number % 50 == 0
        name = None if step else f"n{chance.randrange(NODES)}"
        instant = 1_700_000_000 + number // 3
        yield entry(said, name, id=f"entry-{number}", ts=float(instant), metadata={"step": number})


@contextmanager
def watched(live: LiveService) -> Iterator[tuple[Api, Memory]]:
    with Api(live.base_url) as api, Memory(live.pid) as memory:
        api.http.timeout = 1800
        yield api, memory


def backed_up(api: Api, memory: Memory, checkpoint: str) -> bytes:
    """Return the snapshot; writing it held no more than a little of it."""
    memory.peak_mb = before_mb = memory.now_mb()
    snapshot = api.backup(checkpoint).content
    assert memory.peak_mb < before_mb + 30
    return snapshot


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_100_000_entries_go_from_sqlite_to_postgresql_and_back_in_flat_memory(
    start_live: StartLive, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = unique_checkpoint()
    lite = Storage(tmp_path_factory.mktemp("lite") / "data")
    with watched(start_live(storage=lite)) as (first, memory):
        done = answer(first.restore(home, sealed(list(lines(home)))))
        assert done["restored"] == {"nodes": NODES, "entries": ENTRIES, "blocks": 2}
        await_index(first, home, timeout=1800)
        before = portrait(first, home)
        snapshot = backed_up(first, memory, home)

        with watched(start_live()) as (second, memory_of_second):
            answer(second.restore(home, snapshot))
            await_index(second, home, timeout=1800)
            assert portrait(second, home) == before
            assert backed_up(second, memory_of_second, home) == snapshot

            again = answer(second.restore(home, snapshot))
            assert again["restored"] == {"nodes": 0, "entries": 0, "blocks": 0}
            assert again["skipped"] == NODES + ENTRIES + 2

        assert first.purge(home).is_success
        answer(first.restore(home, snapshot))
        await_index(first, home, timeout=1800)
        assert portrait(first, home) == before
        assert backed_up(first, memory, home) == snapshot
