"""What is small on the wire and huge unpacked is refused early, in little memory."""

import gzip
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest

from tests.conftest import StartLive
from tests.snapshot.files import encoded, entry, foreign, header, node, packed, sealed, squeezed
from tests.snapshot.sample import texts
from tests.support.client import Api, Json, answer
from tests.support.service import LiveService
from tests.support.tree import unique_checkpoint

MB = 1024 * 1024
LIMIT_MB = 400
# Less than by default: lawful lines are judged at about 20 MB/s.
LIMIT = 512 * MB
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class Memory:
    """The largest memory that a process had resident while it was watched."""

    def __init__(self, pid: int) -> None:
        self.peak_mb = 0.0
        self._status = Path(f"/proc/{pid}/status")
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def now_mb(self) -> float:
        lines = self._status.read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("VmRSS:")]
        return int(line.split()[1]) / 1024

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.peak_mb = max(self.peak_mb, self.now_mb())


def nulls_of_3_gb() -> bytes:
    return squeezed(bytes(MB), 3 * 1024)


def blank_lines_of_3_gb() -> bytes:
    return squeezed(b"\n" * MB, 3 * 1024)


def good_lines() -> bytes:
    """Nothing is wrong with them but that they are too many."""
    line = encoded(foreign("a" * 30_000)) + b"\n"
    return squeezed(line, LIMIT // len(line) + 1)


def line_of_500_mb() -> bytes:
    start = gzip.compress(b'{"kind":"node_scope","node_id":"root","ts":1,"text":"')
    return start + squeezed(b"a" * MB, 500) + gzip.compress(b'"}\n')


def unknown_lines() -> bytes:
    return squeezed(b'{"kind":"x"}\n' * 80_000, 3 * 1024)


def empty_core_memory() -> bytes:
    return squeezed(b'{"kind":"core_seed","seeded_at":1}\n' * 10_000, 900)


def deep_lines() -> bytes:
    return squeezed(b"[" * (400 * 1024) + b"\n", 1024)


def numbered(make: Callable[[int], Json], count: int) -> bytes:
    """Pack lines that all differ, without ever holding them together."""
    packer = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
    lines = (packer.compress(encoded(make(number)) + b"\n") for number in range(count))
    return b"".join(lines) + packer.flush()


def ever_new_nodes() -> bytes:
    text = "a" * 30_000
    return numbered(lambda number: foreign(text, f"n{number}"), 30_000) + b"cut"


def nodes_with_much_to_say() -> bytes:
    said = {"notes": "a" * 15_000}
    return numbered(lambda number: node(f"n{number}", metadata=said), 30_000)


def ever_more_core_memory() -> bytes:
    seed = {"kind": "core_seed", "persona": "a" * 30_000, "human": None, "context": None}
    return numbered(lambda number: {**seed, "seeded_at": number}, 15_000)


def too_many_nodes() -> bytes:
    return numbered(
        lambda number: node(f"n{number}", f"n{number - 1}" if number else None), 250_001
    )


BOMBS = {"nulls": nulls_of_3_gb, "line": line_of_500_mb, "deep": deep_lines}
SLOW_BOMBS = {
    "blanks": blank_lines_of_3_gb,
    "unknown": unknown_lines,
    "good": good_lines,
    "new nodes": ever_new_nodes,
    "large nodes": nodes_with_much_to_say,
    "core memory": ever_more_core_memory,
    "empty core memory": empty_core_memory,
    "many nodes": too_many_nodes,
}


@pytest.fixture
def live(start_live: StartLive) -> LiveService:
    service = start_live(LINEAGE_MAX_SNAPSHOT_BYTES=str(LIMIT))
    with Api(service.base_url) as api:
        # Warm: what the service holds anyway is loaded.
        answer(api.restore("warm", sealed([header(), node("root"), entry()])))
    return service


def blow(live: LiveService, bomb: bytes) -> int:
    checkpoint = unique_checkpoint()
    with Api(live.base_url) as api:
        api.http.timeout = 900
        response = api.restore(checkpoint, bomb)
        assert response.headers["content-type"] == "application/problem+json"
        assert api.get_checkpoint(checkpoint).status_code == 404
    return response.status_code


@ON_SQLITE
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", [*BOMBS, *SLOW_BOMBS])
def test_a_bomb_is_refused_in_little_memory(live: LiveService, kind: str) -> None:
    bomb = {**BOMBS, **SLOW_BOMBS}[kind]()
    assert len(bomb) < 64 * MB

    started = time.monotonic()
    with Memory(live.pid) as memory:
        assert blow(live, bomb) in {413, 422}

    took_s = time.monotonic() - started
    print(f"{kind}: {len(bomb) / MB:.1f} MB, peak {memory.peak_mb:.0f} MB, {took_s:.0f} s")  # noqa: T201
    assert memory.peak_mb < LIMIT_MB


@ON_SQLITE
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_bombs_at_once_are_refused_while_others_are_served(live: LiveService) -> None:
    bombs = [make() for make in BOMBS.values()]

    with Memory(live.pid) as memory, ThreadPoolExecutor(3) as threads, Api(live.base_url) as api:
        blown = [threads.submit(blow, live, bomb) for bomb in bombs]
        while not all(one.done() for one in blown):
            answer(api.get_checkpoint("warm"))
        assert {one.result() for one in blown} <= {413, 422}

    print(f"three at once: peak {memory.peak_mb:.0f} MB")  # noqa: T201
    assert memory.peak_mb < LIMIT_MB


def test_a_small_bomb_is_refused_at_its_first_long_line(api: Api) -> None:
    refused = api.restore(unique_checkpoint(), squeezed(bytes(MB), 64))

    assert refused.status_code == 422
    assert "Line 1 " in refused.json()["detail"]


def test_lines_that_say_nothing_to_us_are_refused_at_the_limit(api: Api) -> None:
    unknown = b'{"kind":"x"}\n'

    answer(api.restore(unique_checkpoint(), squeezed(unknown * 1_000, 100)))
    refused = api.restore(unique_checkpoint(), squeezed(unknown * 1_000, 10_100))

    assert (refused.status_code, refused.json()["line"]) == (422, 100_001)
    assert "at most 100000 lines of kinds that are not known" in refused.json()["detail"]


def test_50_members_are_read_whole(api: Api) -> None:
    checkpoint = unique_checkpoint()
    lines = [encoded(foreign(f"entry {n}", ts=float(n))) + b"\n" for n in range(50)]

    answer(api.restore(checkpoint, b"".join(gzip.compress(line) for line in lines)))

    assert texts(api, f"{checkpoint}.root") == [f"entry {n}" for n in range(50)]


def test_members_may_be_cut_within_a_line(api: Api) -> None:
    checkpoint = unique_checkpoint()
    whole = encoded(foreign("one")) + b"\n" + encoded(foreign("two", ts=1_700_000_009)) + b"\n"
    parts = [whole[at : at + 7] for at in range(0, len(whole), 7)]

    answer(api.restore(checkpoint, b"".join(map(gzip.compress, parts))))

    assert texts(api, f"{checkpoint}.root") == ["one", "two"]


def test_zeros_behind_the_last_member_are_padding(api: Api) -> None:
    checkpoint = unique_checkpoint()

    answer(api.restore(checkpoint, packed([foreign("one")]) + bytes(100_000)))

    assert texts(api, f"{checkpoint}.root") == ["one"]


@pytest.mark.parametrize("rest", [b"x", b"\x1f\x8b\x08", gzip.compress(b"")[:-1]], ids=repr)
def test_what_is_no_member_behind_a_member_is_refused(api: Api, rest: bytes) -> None:
    checkpoint = unique_checkpoint()

    assert api.restore(checkpoint, packed([foreign("one")]) + rest).status_code == 422
    assert api.get_checkpoint(checkpoint).status_code == 404


def test_a_checksum_that_does_not_fit_is_refused(api: Api) -> None:
    file = bytearray(packed([foreign("one")]))
    file[-5] ^= 1

    assert api.restore(unique_checkpoint(), bytes(file)).status_code == 422
