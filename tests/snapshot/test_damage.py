"""A damaged snapshot changes nothing and gets a readable answer, wherever the damage is."""

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import DatabaseKind, StartLive
from tests.snapshot.files import Line, encoded, packed, unpacked
from tests.snapshot.sample import fill, portrait
from tests.support.client import Api, answer
from tests.support.examples import NEW, SAME
from tests.support.tree import unique_checkpoint

SOME = 60
MANY = 1_000
QUICK = settings(SAME, max_examples=SOME)
LONG = settings(NEW, max_examples=MANY)


@dataclass(frozen=True)
class Target:
    """A checkpoint that must not change, and its snapshot, to be damaged."""

    api: Api
    checkpoint: str
    snapshot: bytes

    def take(self, damaged: bytes) -> None:
        """Send a damaged snapshot to every kind of target and see it refused."""
        if said(damaged) == said(self.snapshot):
            return
        unknown = unique_checkpoint()
        for checkpoint, mode in ((unknown, "skip"), (self.checkpoint, "overwrite")):
            response = self.api.restore(checkpoint, damaged, on_conflict=mode)
            assert response.status_code in {413, 422}, response.text
            assert response.headers["content-type"] == "application/problem+json"
            assert response.json()["detail"].startswith(("The snapshot", "Line "))
        assert self.api.get_checkpoint(unknown).status_code == 404


# A process of its own: Hypothesis will have nobody beside it use `random`.
@pytest.fixture
def target(start_live: StartLive) -> Iterator[Target]:
    with Api(start_live().base_url) as api:
        fill(api, "exp1")
        before = portrait(api, "exp1")
        snapshot = api.backup("exp1").content
        yield Target(api, "exp1", snapshot)
        assert portrait(api, "exp1") == before
        assert api.backup("exp1").content == snapshot
        checkpoints = answer(api.checkpoints())["items"]
        assert [checkpoint["id"] for checkpoint in checkpoints] == ["exp1"]


def said(snapshot: bytes) -> bytes | None:
    """Return what is packed in a file; None where it cannot be unpacked.

    The last bits before gzip's checksum fill up a byte: there a flip changes nothing that is said.
    """
    try:
        return gzip.decompress(snapshot)
    except (OSError, EOFError, zlib.error):
        return None


def cut(snapshot: bytes, chance: random.Random) -> bytes:
    return snapshot[: chance.randrange(len(snapshot))]


def flip(snapshot: bytes, chance: random.Random) -> bytes:
    """Flip a bit of what the file says: not of gzip's own time and system, which say nothing."""
    damaged = bytearray(snapshot)
    damaged[chance.randrange(10, len(snapshot))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def flip_a_line(snapshot: bytes, chance: random.Random) -> bytes:
    """Flip a bit inside the gzip, which then has a checksum that fits."""
    lines: list[Line] = list(unpacked(snapshot))
    at = chance.randrange(len(lines))
    line = bytearray(encoded(lines[at]))
    line[chance.randrange(len(line))] ^= 1 << chance.randrange(8)
    lines[at] = bytes(line)
    return packed(lines)


def drop(snapshot: bytes, chance: random.Random) -> bytes:
    lines = unpacked(snapshot)
    del lines[chance.randrange(len(lines))]
    return packed(lines)


def double(snapshot: bytes, chance: random.Random) -> bytes:
    lines = unpacked(snapshot)
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    return packed(lines)


def swap(snapshot: bytes, chance: random.Random) -> bytes:
    lines = unpacked(snapshot)
    one, other = sorted(chance.sample(range(len(lines)), 2))
    lines[one], lines[other] = lines[other], lines[one]
    return packed(lines)


def cut_lines(snapshot: bytes, chance: random.Random) -> bytes:
    lines = unpacked(snapshot)
    return packed(lines[: chance.randrange(len(lines))])


DAMAGES = (cut, flip, flip_a_line, drop, double, swap, cut_lines)


def enough(count: int, database: DatabaseKind) -> int:
    """Return how many damages to try: a file is judged before a database is asked."""
    return count if database == "sqlite" else min(count, MANY // 4)


@pytest.mark.parametrize(
    "count", [SOME, pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
@pytest.mark.parametrize("damages", [(cut,), DAMAGES], ids=["cut", "all"])
def test_no_damage_changes_anything(
    target: Target,
    database: DatabaseKind,
    count: int,
    damages: tuple[Callable[[bytes, random.Random], bytes], ...],
) -> None:
    chance = random.Random(count)
    for number in range(enough(count, database)):
        target.take(damages[number % len(damages)](target.snapshot, chance))


Edit = tuple[str, int, int, bytes]

EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "repeat", "delete", "cut", "move", "splice"]),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
        st.binary(max_size=40),
    ),
    min_size=1,
    max_size=3,
)


def edited(lines: list[bytes], edits: list[Edit]) -> list[bytes]:
    """Change lines as only someone would who packs them again."""
    damaged = list(lines)
    for kind, first, second, new in edits:
        if not damaged:
            break
        at, other = first % len(damaged), second % len(damaged)
        line = damaged[at]
        split = second % (len(line) + 1)
        match kind:
            case "replace":
                damaged[at] = new
            case "insert":
                damaged.insert(at, new)
            case "repeat":
                damaged.insert(at, damaged[other])
            case "delete":
                del damaged[at]
            case "cut":
                damaged[at] = line[:split]
            case "move":
                damaged.insert(other, damaged.pop(at))
            case _:
                damaged[at] = line[:split] + new + line[split:]
    return damaged


def says_the_same(damaged: list[bytes], lines: list[bytes]) -> bool:
    """Tell whether only the last line is spelled otherwise: nothing vouches for that but itself."""
    *before, last = b"".join(line + b"\n" for line in damaged).strip().split(b"\n")
    try:
        return before == lines[:-1] and json.loads(last).items() >= json.loads(lines[-1]).items()
    except (ValueError, AttributeError):
        return False


@pytest.mark.parametrize(
    "profile",
    [QUICK, pytest.param(LONG, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
    ids=["some", "many"],
)
def test_no_line_can_be_changed_unnoticed(
    target: Target, database: DatabaseKind, profile: settings
) -> None:
    lines = unpacked(target.snapshot)

    @settings(profile, max_examples=enough(profile.max_examples, database))
    @given(EDITS)
    def check(edits: list[Edit]) -> None:
        damaged = edited(lines, edits)
        if not says_the_same(damaged, lines):
            target.take(packed(damaged))

    check()
