"""Resident memory of a service that holds a large checkpoint and a cache smaller than it."""

import sys

from bench import experiment
from bench.measures import AtMost, Findings, Measure
from bench.progress import say
from bench.stages import CACHE_MIB, Stage

ENTRIES = 100_000
GOAL = AtMost(220)


def measure(stage: Stage) -> Findings:
    """Fill, search from every node until the cache is full, write; look after each."""
    findings = Findings(f"Resident memory: {ENTRIES:,} entries, {CACHE_MIB} MiB cache, one process")
    if sys.platform != "linux":
        findings.notes.append("Memory was left out: it is read from /proc, which needs Linux.")
        return findings
    with stage.service(entries=experiment.SCOPE_ENTRIES, name="memory-start") as small:
        at_start = small.resident_mib()
    with stage.service(entries=ENTRIES, name="memory") as service:
        filled = service.resident_mib()
        say("memory after searches and writes")
        stage.run(experiment.wide_searches(service.port, clients=8, entries=ENTRIES))
        stage.run(experiment.searches(service.port, clients=8))
        searched = service.resident_mib()
        stage.run(experiment.writes(service.port, clients=32))
        written = service.resident_mib()
        peak = service.peak_resident_mib()
    for what, mib in (
        (f"started, {experiment.SCOPE_ENTRIES} entries", at_start),
        (f"{ENTRIES:,} entries written", filled),
        ("searched from every node", searched),
    ):
        findings.measures.append(Measure(what=what, unit="MiB", ours=[mib]))
    findings.measures.append(
        Measure(what="and written to by 32 clients", unit="MiB", ours=[written], goal=GOAL)
    )
    findings.measures.append(Measure(what="peak of all that", unit="MiB", ours=[peak]))
    return findings
