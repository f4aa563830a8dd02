"""Searches against the plain endpoint: what a worker waits for, and how many there can be."""

from bench import experiment
from bench.measures import AtLeast, AtMost, Findings, Goal, counted, speed
from bench.progress import say
from bench.stages import Stage

ENTRIES = 10_000
GOALS: dict[int, dict[str, Goal]] = {
    1: {"p50": AtMost(5.5), "p99": AtMost(11)},
    8: {"rate": AtLeast(0.27)},
}


def measure(stage: Stage) -> Findings:
    """Search with 1, 8 and 32 clients."""
    service, plain = stage.filled(ENTRIES), stage.plain()
    findings = Findings(f"Searches: {ENTRIES:,} entries, {experiment.SCOPE_ENTRIES} in scope")
    for clients in (1, 8, 32):
        say(f"searches, {counted(clients)}")
        ours, base = stage.take_turns(
            experiment.searches(service.port, clients=clients),
            experiment.plain(plain.port, clients=clients),
        )
        findings.measures.extend(
            speed(
                f"searches, {counted(clients)}",
                ours,
                base,
                base_name="plain",
                goals=GOALS.get(clients),
            )
        )
    return findings
