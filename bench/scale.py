"""Search time as the checkpoint grows while the scope does not."""

from bench import experiment
from bench.measures import AtMost, Findings, Goal, Measure
from bench.progress import say
from bench.stages import Stage

GOALS: dict[int, Goal] = {100_000: AtMost(1.25)}


def measure(stage: Stage) -> Findings:
    """Search with one client in checkpoints of several sizes, taking turns."""
    smallest, *larger = stage.effort.sizes
    groups = [
        experiment.searches(stage.filled(entries).port, clients=1) for entries in stage.effort.sizes
    ]
    say("searches in checkpoints of several sizes")
    base, *others = stage.take_turns(*groups)
    findings = Findings(f"Search time with the scope held at {experiment.SCOPE_ENTRIES} entries")
    base_p50 = [run.p50 for run in base]
    findings.measures.append(
        Measure(what=f"p50 at {smallest:,} entries, 1 client", unit="ms", ours=base_p50)
    )
    for entries, runs in zip(larger, others, strict=True):
        findings.measures.append(
            Measure(
                what=f"p50 at {entries:,} entries, 1 client",
                unit="ms",
                ours=[run.p50 for run in runs],
                base=base_p50,
                base_name=f"p50 at {smallest:,}",
                goal=GOALS.get(entries),
            )
        )
    return findings
