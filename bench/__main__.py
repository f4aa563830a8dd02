"""`python -m bench [SECTION ...] [--quick]`."""

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated

import typer

from bench import chroma, letta, memory, real_letta, scale, searching, slow_writing, writing
from bench.measures import Findings
from bench.progress import say
from bench.report import render, save
from bench.slow_sync import sync_us
from bench.stages import FULL, QUICK, RESULTS_DIR, Stage, stage


class Section(StrEnum):
    """A part of the benchmark that can be run by itself."""

    SEARCH = "search"
    WRITES = "writes"
    SLOW = "slow"
    BOTH = "both"
    MEMORY = "memory"
    SCALE = "scale"
    CHROMA = "chroma"
    LETTA = "letta"


MEASURING: Mapping[Section, Callable[[Stage], Findings]] = {
    Section.SEARCH: searching.measure,
    Section.WRITES: writing.measure,
    Section.SLOW: slow_writing.measure,
    Section.BOTH: writing.measure_both,
    Section.MEMORY: memory.measure,
    Section.SCALE: scale.measure,
    Section.CHROMA: chroma.measure,
    Section.LETTA: letta.measure,
}


cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@cli.command()
def main(
    sections: Annotated[list[Section] | None, typer.Argument(help="All, if none is named.")] = None,
    *,
    quick: Annotated[bool, typer.Option(help="Shorter runs and a smaller Chroma.")] = False,
) -> None:
    """Measure the service over HTTP and hold the figures against the goals.

    The report goes to standard output and to bench/results/; the exit code says that the
    measuring went well, not that the goals were reached.
    """
    if Section.LETTA in (sections or ()) and real_letta.base_url() is None:
        raise typer.BadParameter(real_letta.MISSING)
    effort = QUICK if quick else FULL
    found: list[Findings] = []
    with stage(effort) as everything:
        disk_us = sync_us(everything.work)
        try:
            found.extend(MEASURING[section](everything) for section in sections or Section)
        finally:  # a section that fails takes nothing from those before it
            report = render(found, effort=effort, sync_us=disk_us)
            sys.stdout.write(report)
            say(f"kept in {save(report, RESULTS_DIR)}")


if __name__ == "__main__":
    cli()
