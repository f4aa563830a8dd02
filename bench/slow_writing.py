"""Durable writes on a slower disk, against a service that commits each request by itself."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench import experiment, slow_sync
from bench.measures import AtLeast, Findings, Goal, speed
from bench.progress import say
from bench.servers import Server, free_port, running
from bench.stages import Stage

GOALS: dict[int, dict[str, Goal]] = {32: {"rate": AtLeast(3.5)}}


def measure(stage: Stage) -> Findings:
    """Write with 1, 8 and 32 clients where every sync takes 2 ms longer."""
    findings = Findings(f"Durable writes with {slow_sync.ADDED_MS} ms added to each sync")
    if (reason := slow_sync.why_not()) is not None:
        findings.notes.append(reason)
        return findings
    slower = slow_sync.preload(stage.work)
    with (
        stage.service(entries=experiment.SCOPE_ENTRIES, name="slow", env=slower) as service,
        _one_commit_service(stage, env=slower) as rival,
    ):
        for clients in (1, 8, 32):
            say(f"writes with slower syncs, {clients} clients")
            ours, base = stage.take_turns(
                experiment.writes(service.port, clients=clients),
                experiment.writes(rival.port, clients=clients),
            )
            findings.measures.extend(
                speed(
                    f"writes with slower syncs, {clients} clients",
                    ours,
                    base,
                    base_name="one commit a request",
                    goals=GOALS.get(clients),
                )
            )
    return findings


@contextmanager
def _one_commit_service(stage: Stage, *, env: dict[str, str]) -> Iterator[Server]:
    port = free_port()
    with running(
        [sys.executable, "-m", "bench.one_commit", str(port), str(stage.work / "one-commit")],
        port=port,
        health="/readyz",
        log=stage.work / "one-commit.log",
        env=env,
    ) as server:
        experiment.plant(port, entries=experiment.SCOPE_ENTRIES)
        yield server
