"""In front of a real Letta: each mode of search beside what Letta and our users do, and writes."""

import shutil
import statistics
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice

from app.embedding.wordllama import WordLlamaEmbedder
from bench import corpus, letta_run, real_letta
from bench.calls import Api, post_request
from bench.letta_run import LIMIT, WINDOW, Answered, NotComparable, Planted, SameCalls, Search
from bench.load import Group, Run
from bench.measures import AtLeast, AtMost, Findings, Goal, Measure, interleaved, speed
from bench.progress import say
from bench.real_letta import EMBEDDINGS_KEY, RealLetta
from bench.servers import Server, free_port, running
from bench.stages import Stage

SIZES = (200, 1_000, 5_000)
WRITERS = 16
# Longer than any answer should take: an entry that is answered is one that Letta has.
INDEX_WAIT_S = 120
TEXTS_A_WRITER = 256
RAW, FIXED, SAME = "raw Letta", "a fixed window", "the same raw calls"
AUTO, ARCHIVE, SCOPED = "auto", "archive", "scoped"
MODES = (AUTO, ARCHIVE, SCOPED)
# Ours against which, and the goal for it at which sizes.
COMPARED: Sequence[tuple[str, str, Mapping[int, Goal]]] = (
    (FIXED, RAW, {}),
    (AUTO, FIXED, dict.fromkeys(SIZES, AtMost(1.2))),
    (ARCHIVE, SAME, dict.fromkeys(SIZES, AtMost(1.1))),
    (ARCHIVE, FIXED, {}),
    (SCOPED, FIXED, {5_000: AtMost(1 / 20)}),
)


def measure(stage: Stage) -> Findings:
    """Search runs of three sizes in each mode; then write with sixteen workers."""
    findings = Findings(
        f"In front of a real Letta: {LIMIT} hits from {letta_run.SCOPE} entries in scope, "
        f"windows of {WINDOW}"
    )
    if (url := real_letta.base_url()) is None:
        findings.notes.append(real_letta.MISSING)
        return findings
    letta = RealLetta(url)
    checkpoints = {size: f"bench-{uuid.uuid4().hex[:12]}" for size in SIZES}
    writing = f"bench-{uuid.uuid4().hex[:12]}"
    with ExitStack() as opened:
        for checkpoint in (*checkpoints.values(), writing):
            opened.callback(letta.wipe, checkpoint)
        embeddings = opened.enter_context(_embeddings(stage))
        with _service(stage, "letta-filled", letta, embeddings, mode=AUTO) as loader:
            runs = [
                _planted(loader, letta, checkpoint, size)
                for size, checkpoint in checkpoints.items()
            ]
        modes = {
            mode: opened.enter_context(_copy(stage, letta, embeddings, mode)) for mode in MODES
        }
        for run in runs:
            findings.measures.extend(_searches(stage, letta, modes, run))
        findings.measures.extend(_writes(stage, letta, embeddings, modes[AUTO], writing))
    return findings


# Servers


@contextmanager
def _embeddings(stage: Stage) -> Iterator[Server]:
    """Start what embeds for Letta: agents keep its address, so it stays up for all of it."""
    with _process(stage, "letta-embeddings", {}) as server:
        yield server


@contextmanager
def _service(
    stage: Stage, name: str, letta: RealLetta, embeddings: Server, *, mode: str
) -> Iterator[Server]:
    """Start a service in front of Letta, on the data that it finds under its name."""
    env = {
        "LINEAGE_ARCHIVE": "letta",
        "LETTA_BASE_URL": letta.url,
        "LINEAGE_EMBEDDINGS_URL": _embeddings_url(embeddings),
        "LINEAGE_SEARCH": mode,
        "LINEAGE_INDEX_WAIT_S": str(INDEX_WAIT_S),
    }
    with _process(stage, name, env) as server:
        yield server


@contextmanager
def _copy(stage: Stage, letta: RealLetta, embeddings: Server, mode: str) -> Iterator[Server]:
    """Start a service on a copy of what was planted: all modes search the same, in turns."""
    name = f"letta-{mode}"
    shutil.copytree(stage.work / "letta-filled", stage.work / name)
    with _service(stage, name, letta, embeddings, mode=mode) as server:
        yield server


@contextmanager
def _process(stage: Stage, name: str, env: Mapping[str, str]) -> Iterator[Server]:
    port = free_port()
    own = {
        "LINEAGE_HOST": "127.0.0.1",
        "LINEAGE_PORT": str(port),
        "LINEAGE_DATA_DIR": str(stage.work / name),
        "LINEAGE_EMBEDDINGS_KEY": EMBEDDINGS_KEY,
    }
    with running(
        [sys.executable, "-m", "app.cli", "serve"],
        port=port,
        health="/readyz",
        log=stage.work / f"{name}.log",
        env={**own, **env},
    ) as server:
        yield server


def _embeddings_url(embeddings: Server) -> str:
    return f"http://127.0.0.1:{embeddings.port}/v1"


# Searches


def _planted(loader: Server, letta: RealLetta, checkpoint: str, entries: int) -> Planted:
    say(f"filling a checkpoint in Letta with {entries:,} entries")
    return letta_run.plant(loader.port, letta, checkpoint, entries=entries)


def _searches(
    stage: Stage, letta: RealLetta, modes: Mapping[str, Server], run: Planted
) -> Iterator[Measure]:
    queries = corpus.queries()[: stage.effort.letta_questions]
    say(f"searches in front of Letta, {run.entries:,} entries")
    same = SameCalls(letta, run, queries)
    ours = {mode: letta_run.ours(server.port, run) for mode, server in modes.items()}
    # In this order those that are compared are neighbours.
    ways: dict[str, Search] = {
        RAW: letta_run.raw_window(letta, run),
        FIXED: letta_run.fixed_window(letta, run),
        AUTO: ours[AUTO],
        SCOPED: ours[SCOPED],
        SAME: same,
        ARCHIVE: ours[ARCHIVE],
    }
    for way in ways.values():
        way(queries[-1])  # connections, caches: nothing of a first time is measured
    asked = letta_run.windows_asked(modes[ARCHIVE].port)
    answered = _take_turns(ways, queries)
    asked = letta_run.windows_asked(modes[ARCHIVE].port) - asked
    if asked != (planned := sum(map(len, same.windows.values()))):
        raise NotComparable(f"`archive` asked for {asked} windows, the raw calls were {planned}")
    yield from _times(run, answered)
    yield from _recalls(run, queries, answered)


def _take_turns(
    ways: Mapping[str, Search], queries: Sequence[str]
) -> dict[str, Sequence[Answered]]:
    """Ask each way the same question, then the next question."""
    waiting = {name: iter(queries) for name in ways}
    taken = interleaved(
        len(queries),
        *(
            lambda name=name, way=way: letta_run.timed(way, next(waiting[name]))
            for name, way in ways.items()
        ),
    )
    return dict(zip(ways, taken, strict=True))


def _times(run: Planted, answered: Mapping[str, Sequence[Answered]]) -> Iterator[Measure]:
    for ours, base, goals in COMPARED:
        yield Measure(
            what=f"{ours}, {run.entries:,} passages",
            unit="ms",
            ours=[search.ms for search in answered[ours]],
            base=[search.ms for search in answered[base]],
            base_name=base,
            goal=goals.get(run.entries),
        )


def _recalls(
    run: Planted, queries: Sequence[str], answered: Mapping[str, Sequence[Answered]]
) -> Iterator[Measure]:
    best = letta_run.best_by_brute_force(run, queries)
    for way in (FIXED, *MODES):
        recalls = [
            len({*search.found} & {*best[query]}) / LIMIT
            for query, search in zip(queries, answered[way], strict=True)
        ]
        yield Measure(
            what=f"recall@{LIMIT} of {way}, {run.entries:,} passages",
            unit="on average",
            ours=[statistics.mean(recalls)],
            goal=None if way == FIXED else AtLeast(1),
        )


# Writes


def _writes(
    stage: Stage, letta: RealLetta, embeddings: Server, service: Server, checkpoint: str
) -> list[Measure]:
    """Write one entry a request, each answered when Letta has it."""
    say(f"writes in front of Letta, {WRITERS} workers")
    ours = _writers(service.port, checkpoint)
    raw = _raw_writers(letta, embeddings, checkpoint)
    measured, base = interleaved(
        stage.effort.pairs,
        *(partial(_alone, stage, group) for group in (ours, raw)),
    )
    api = Api(service.port)
    letta_run.wait_until_indexed(api, checkpoint)
    api.close()
    return speed(
        f"writes, {WRITERS} workers",
        measured,
        base,
        base_name="raw single inserts",
        goals={"rate": AtLeast(5)},
    )


def _alone(stage: Stage, group: Group) -> Run:
    (run,) = stage.load.run(group, seconds=stage.effort.letta_seconds)
    return run


def _writers(port: int, checkpoint: str) -> Group:
    """Return workers that each write to a node of their own."""
    api = Api(port)
    api.post("/checkpoints", {"id": checkpoint})
    for worker in range(WRITERS):
        letta_run.grow(api, checkpoint, f"writer{worker}", parent=None)
    api.close()
    nodes = [f"{checkpoint}.writer{worker}" for worker in range(WRITERS)]
    return Group(
        port,
        [
            [
                post_request(
                    f"/nodes/{node}/memory", {"text": text}, headers={"X-Current-Node": node}
                )
                for text in _texts(worker)
            ]
            for worker, node in enumerate(nodes)
        ],
        status=201,
    )


def _raw_writers(letta: RealLetta, embeddings: Server, checkpoint: str) -> Group:
    """Return workers that each insert one passage a request, with the one tag that tells its node.

    Into an archive of their own, by the archive's route.
    """
    config = {
        "embedding_endpoint_type": "openai",
        "embedding_endpoint": _embeddings_url(embeddings),
        "embedding_model": WordLlamaEmbedder.model,
        "embedding_dim": WordLlamaEmbedder.dimensions,
        "embedding_chunk_size": 300,
    }
    path = f"/v1/archives/{letta.make_archive(checkpoint, config)}/passages"
    return Group(
        letta.port,
        [
            [post_request(path, {"text": text}) for text in _texts(worker)]
            for worker in range(WRITERS)
        ],
    )


def _texts(worker: int) -> Iterator[str]:
    return islice(corpus.texts(seed=100 + worker), TEXTS_A_WRITER)
