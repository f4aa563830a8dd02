"""Durable writes on a slower disk, against the service when it commits each request by itself."""

from bench import experiment, slow_sync
from bench.measures import AtLeast, Findings, Goal, counted, speed
from bench.progress import say
from bench.stages import Stage

GOALS: dict[int, dict[str, Goal]] = {32: {"rate": AtLeast(3.5)}}


def measure(stage: Stage) -> Findings:
    """Write with 1, 8 and 32 clients where every sync takes 2 ms longer."""
    findings = Findings(f"Durable writes with {slow_sync.ADDED_MS} ms added to each sync")
    if (reason := slow_sync.why_not()) is not None:
        findings.notes.append(reason)
        return findings
    slower = slow_sync.preload(stage.work)
    entries = experiment.SCOPE_ENTRIES
    with (
        stage.service(entries=entries, name="slow", env=slower) as service,
        stage.service(
            entries=entries, name="slow-one-commit", env=slower, module="bench.one_commit"
        ) as rival,
    ):
        for clients in (1, 8, 32):
            say(f"writes with slower syncs, {counted(clients)}")
            ours, base = stage.take_turns(
                experiment.writes(service.port, clients=clients),
                experiment.writes(rival.port, clients=clients),
            )
            findings.measures.extend(
                speed(
                    f"writes with slower syncs, {counted(clients)}",
                    ours,
                    base,
                    base_name="one commit a request",
                    goals=GOALS.get(clients),
                )
            )
    return findings
