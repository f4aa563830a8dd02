"""A checkpoint of 100,000 entries goes out and in, in flat memory."""

import random
import time
import zlib
from collections.abc import Iterator

import pytest

from tests.conftest import DatabaseKind, StartLive
from tests.snapshot.files import entry, header, node, sealed
from tests.snapshot.sample import await_index
from tests.snapshot.test_bombs import Memory
from tests.support.client import Api, Json, answer
from tests.support.tree import unique_checkpoint

ENTRIES = 100_000
NODES = 1_000
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


def lines(entries: int) -> Iterator[Json]:
    """Yield a checkpoint of a thousand nodes, each below one made earlier."""
    chance = random.Random(entries)
    yield header("large", name="large")
    yield node("n0")
    for number in range(1, NODES):
        yield node(f"n{number}", f"n{chance.randrange(number)}", created_at=float(number))
    for number in range(entries):
        said = " ".join(chance.choices(WORDS, k=30))
        name = f"n{chance.randrange(NODES)}"
        instant = 1_700_000_000 + number // 3
        yield entry(said, name, id=f"entry-{number}", ts=float(instant), metadata={"step": number})


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_100_000_entries_come_back_as_they_were_in_flat_memory(
    start_live: StartLive, database: DatabaseKind
) -> None:
    # A server that shares the machine with its client and two copies takes its time.
    entries = ENTRIES if database == "sqlite" else ENTRIES // 4
    file = sealed(list(lines(entries)))
    live = start_live()
    home, other = unique_checkpoint(), unique_checkpoint()
    with Api(live.base_url) as api, Memory(live.pid) as memory:
        api.http.timeout = 900
        started = time.monotonic()
        done = answer(api.restore(home, file))
        restore_s, restore_mb = time.monotonic() - started, memory.peak_mb
        assert done["restored"] == {"nodes": NODES, "entries": entries, "blocks": 0}

        await_index(api, home, timeout=1800)
        index_s = time.monotonic() - started - restore_s
        index_mb, before_mb = memory.peak_mb, memory.now_mb()

        memory.peak_mb = 0.0
        started = time.monotonic()
        first = api.backup(home).content
        backup_s, backup_mb = time.monotonic() - started, memory.peak_mb
        print(  # noqa: T201
            f"{len(first)} bytes, {len(zlib.decompress(first, 31))} unpacked; restore "
            f"{restore_s:.1f} s, {restore_mb:.0f} MB; index {index_s:.0f} s, {index_mb:.0f} MB; "
            f"backup {backup_s:.1f} s, {before_mb:.0f} MB before, {backup_mb:.0f} MB at most"
        )
        assert backup_mb < before_mb + 30

        answer(api.restore(other, first))
        second = zlib.decompress(api.backup(other).content, 31).splitlines()
        # The headers name two checkpoints, and so the digests in the last lines differ.
        assert second[1:-1] == zlib.decompress(first, 31).splitlines()[1:-1]
        again = answer(api.restore(other, first))
        assert again["restored"]["entries"] == 0
        assert again["skipped"] == NODES + entries
