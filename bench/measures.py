"""Figures, what they are compared with, and the goals they are held to."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bench.load import Run


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A goal that is reached from below."""

    bound: float

    def reached(self, value: float) -> bool:
        """Tell whether the value is high enough."""
        return value >= self.bound

    def __str__(self) -> str:
        return f"≥ {self.bound:g}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """A goal that must not be overstepped."""

    bound: float

    def reached(self, value: float) -> bool:
        """Tell whether the value is low enough."""
        return value <= self.bound

    def __str__(self) -> str:
        return f"≤ {self.bound:g}"


Goal = AtLeast | AtMost
Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure, measured several times.

    `base` holds what it is compared with, measured in the same pairs. The goal is held against the
    median of the ratios, and against the figure itself where there is no base.
    """

    what: str
    unit: str
    ours: Sequence[float]
    base: Sequence[float] = ()
    base_name: str = ""
    goal: Goal | None = None

    @property
    def ratios(self) -> list[float]:
        """Return ours / base, pair by pair."""
        return [our / other for our, other in zip(self.ours, self.base, strict=True)]

    @property
    def reached(self) -> bool | None:
        """Tell whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        return self.goal.reached(statistics.median(self.ratios if self.base else self.ours))


@dataclass(frozen=True, slots=True)
class Findings:
    """What a section of the benchmark found; notes are sentences for the reader of the report."""

    title: str
    measures: list[Measure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def counted(clients: int) -> str:
    """Return '1 client', '8 clients'."""
    return f"{clients} client{'s' * (clients > 1)}"


def interleaved(pairs: int, *measured: Callable[[], Measured]) -> list[list[Measured]]:
    """Take turns: measure each once a round, starting with another one every round.

    Returns one list for each of the measured, in the order given. What the machine does meanwhile
    hits neighbours alike, so ratios within a round hold where absolute figures drift.
    """
    taken: list[list[Measured]] = [[] for _ in measured]
    for turn in range(pairs):
        for place in range(len(measured)):
            which = (turn + place) % len(measured)
            taken[which].append(measured[which]())
    return taken


def speed(
    what: str,
    ours: Sequence[Run],
    base: Sequence[Run],
    *,
    base_name: str,
    goals: Mapping[str, Goal] | None = None,
) -> list[Measure]:
    """Return rate, p50 and p99 of runs in pairs; `goals` is keyed by 'rate', 'p50' and 'p99'.

    Both latencies are compared with the base's p50: a base's own p99 is mostly chance.
    """
    goals = goals or {}
    base_p50 = [run.p50 for run in base]
    return [
        Measure(
            what=what,
            unit="/s",
            ours=[run.per_second for run in ours],
            base=[run.per_second for run in base],
            base_name=base_name,
            goal=goals.get("rate"),
        ),
        Measure(
            what=f"{what}, p50",
            unit="ms",
            ours=[run.p50 for run in ours],
            base=base_p50,
            base_name=f"{base_name}, p50",
            goal=goals.get("p50"),
        ),
        Measure(
            what=f"{what}, p99",
            unit="ms",
            ours=[run.p99 for run in ours],
            base=base_p50,
            base_name=f"{base_name}, p50",
            goal=goals.get("p99"),
        ),
    ]
