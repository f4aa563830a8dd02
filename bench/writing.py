"""Durable writes: against the plain endpoint, and beside searches on the same service."""

from functools import partial

from bench import experiment
from bench.measures import AtLeast, Findings, Goal, counted, interleaved, speed
from bench.progress import say
from bench.stages import Stage

ENTRIES = 10_000
GOALS: dict[int, dict[str, Goal]] = {32: {"rate": AtLeast(0.22)}}


def measure(stage: Stage) -> Findings:
    """Write with 1, 8 and 32 clients."""
    plain = stage.plain()
    findings = Findings("Durable writes, one entry a request, every client on its own node")
    with stage.service(entries=ENTRIES, name="writes") as service:
        for clients in (1, 8, 32):
            say(f"writes, {counted(clients)}")
            ours, base = stage.take_turns(
                experiment.writes(service.port, clients=clients),
                experiment.plain(plain.port, clients=clients),
            )
            findings.measures.extend(
                speed(
                    f"writes, {counted(clients)}",
                    ours,
                    base,
                    base_name="plain",
                    goals=GOALS.get(clients),
                )
            )
    return findings


def measure_both(stage: Stage) -> Findings:
    """Search and write at once, eight clients each."""
    plain = stage.plain()
    findings = Findings("Both at once: 8 clients search, 8 write")
    with stage.service(entries=ENTRIES, name="both") as service:
        say("searches and writes at once")
        searches = experiment.searches(service.port, clients=8)
        writes = experiment.writes(service.port, clients=8)
        plainly = experiment.plain(plain.port, clients=16)

        ours, base = interleaved(
            stage.effort.pairs, partial(stage.run, searches, writes), partial(stage.run, plainly)
        )
    for place, what in enumerate(("searches beside writes", "writes beside searches")):
        findings.measures.extend(
            speed(
                what,
                [runs[place] for runs in ours],
                [plain_run for (plain_run,) in base],
                base_name="plain, 16 clients",
            )
        )
    return findings
