"""The report: what was found, on what machine, as Markdown."""

import math
import platform
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count
from pathlib import Path

from bench.measures import Findings, Measure
from bench.servers import CHECKOUT
from bench.stages import CACHE_MIB, Effort

PACKAGES = ("fastapi", "uvicorn", "uvloop", "sqlalchemy", "pydantic", "numpy", "wordllama")
HEADER = "| measured | ours | compared with | theirs | ours / theirs | goal | |"


def render(found: Sequence[Findings], *, effort: Effort, sync_us: float) -> str:
    """Return the report; every cell of several figures is their median with (lowest to highest)."""
    lines = ["# Benchmark", "", *_circumstances(effort, sync_us)]
    for findings in found:
        lines += ["", f"## {findings.title}", ""]
        if findings.measures:
            lines += [HEADER, "| --- | ---: | --- | ---: | ---: | --- | --- |"]
            lines += [_row(measure) for measure in findings.measures]
        lines += findings.notes
    return "\n".join([*lines, "", _verdict(found), ""])


def save(report: str, directory: Path) -> Path:
    """Keep the report beside earlier ones and return its path."""
    path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.md"
    path.write_text(report)
    return path


def _circumstances(effort: Effort, sync_us: float) -> Iterator[str]:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    yield f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {_commit()}"
    yield (
        f"- {_processor()}, {cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"one sync of this disk {sync_us:,.0f} µs"
    )
    yield f"- Python {platform.python_version()}, {packages}"
    yield (
        f"- one worker, {CACHE_MIB} MiB cache, load generator on the same machine, "
        f"{effort.pairs} interleaved pairs of {effort.seconds:g} s: median (lowest to highest); "
        "the goal is held against the median ratio"
    )


def _row(measure: Measure) -> str:
    goal = "" if measure.goal is None else str(measure.goal)
    verdict = {None: "", True: "reached", False: "**not reached**"}[measure.reached]
    ratios = _spread(measure.ratios) if measure.base else ""
    theirs = f"{_spread(measure.base)} {measure.unit}" if measure.base else ""
    ours = f"{_spread(measure.ours)} {measure.unit}"
    cells = (measure.what, ours, measure.base_name, theirs, ratios, goal, verdict)
    return f"| {' | '.join(cells)} |"


def _spread(values: Sequence[float]) -> str:
    median = _figure(statistics.median(values))
    if len(values) == 1:
        return median
    return f"{median} ({_figure(min(values))} to {_figure(max(values))})"


def _figure(value: float) -> str:
    """Return three significant digits, and whole numbers from a hundred on."""
    decimals = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{decimals}f}"


def _verdict(found: Sequence[Findings]) -> str:
    judged = [
        measure.reached
        for findings in found
        for measure in findings.measures
        if measure.reached is not None
    ]
    return f"{sum(judged)} of {len(judged)} goals reached."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:  # not Linux
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607  (git is where PATH has it)
            cwd=CHECKOUT,
            check=True,
            capture_output=True,
            text=True,
        )
    except (FileNotFoundError, subprocess.CalledProcessError):  # no git, or no repository
        return "unknown"
    return answer.stdout.strip()
