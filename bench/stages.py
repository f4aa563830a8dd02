"""What the sections share: the generator, the plain endpoint, and services filled to a size."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.experiment import plant
from bench.load import Group, LoadGenerator, Run
from bench.measures import interleaved
from bench.progress import say
from bench.servers import Server, free_port, running

RESULTS_DIR = Path(__file__).with_name("results")
CACHE_MIB = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long the benchmark takes: seconds a run, pairs of runs, and the sizes it looks at."""

    seconds: float
    pairs: int
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    chroma_sizes: tuple[int, ...] = (10_000, 100_000)
    letta_questions: int = 9
    letta_seconds: float = 10.0


FULL = Effort(seconds=2.5, pairs=5)
QUICK = Effort(seconds=0.7, pairs=5, chroma_sizes=(10_000,), letta_questions=5, letta_seconds=5.0)


@dataclass(slots=True, kw_only=True)
class Stage:
    """Keeps what was started until the benchmark ends, so that sections can share it."""

    effort: Effort
    load: LoadGenerator
    work: Path
    started: ExitStack
    _filled: dict[int, Server] = field(default_factory=dict)
    _plain: Server | None = None

    def plain(self) -> Server:
        """Return the plain endpoint's server."""
        if self._plain is None:
            port = free_port()
            self._plain = self.started.enter_context(
                running(
                    # The same event loop and parser as the service, and as silent.
                    [
                        *(sys.executable, "-m", "uvicorn", "bench.plain_app:app"),
                        *("--port", str(port), "--loop", "uvloop", "--http", "httptools"),
                        *("--log-level", "warning", "--no-access-log"),
                    ],
                    port=port,
                    health="/plain",
                    log=self.work / "plain.log",
                )
            )
        return self._plain

    def filled(self, entries: int) -> Server:
        """Return the service whose checkpoint holds this many entries; sections only read it."""
        if entries not in self._filled:
            self._filled[entries] = self.started.enter_context(
                self.service(entries=entries, name=f"filled-{entries}")
            )
        return self._filled[entries]

    @contextmanager
    def service(
        self,
        *,
        entries: int,
        name: str,
        env: Mapping[str, str] | None = None,
        module: str = "app.cli",
    ) -> Iterator[Server]:
        """Start a service of one's own on a new database and fill it."""
        port = free_port()
        own = {
            "LINEAGE_HOST": "127.0.0.1",
            "LINEAGE_PORT": str(port),
            "LINEAGE_DATA_DIR": str(self.work / name),
            "LINEAGE_CACHE_BYTES": str(CACHE_MIB * 1024 * 1024),
        }
        with running(
            [sys.executable, "-m", module, "serve"],
            port=port,
            health="/readyz",
            log=self.work / f"{name}.log",
            env={**own, **(env or {})},
        ) as server:
            say(f"filling a checkpoint with {entries:,} entries")
            plant(port, entries=entries)
            yield server

    def run(self, *groups: Group) -> list[Run]:
        """Load with the groups at once, for as long as the effort says; one run a group."""
        return self.load.run(*groups, seconds=self.effort.seconds)

    def take_turns(self, *groups: Group) -> list[list[Run]]:
        """Load with one group after the other, as often as the effort says; the runs by group."""
        return interleaved(self.effort.pairs, *(partial(self._alone, group) for group in groups))

    def _alone(self, group: Group) -> Run:
        (run,) = self.run(group)
        return run


@contextmanager
def stage(effort: Effort) -> Iterator[Stage]:
    """Open the stage; everything that was started is stopped and removed in the end."""
    RESULTS_DIR.mkdir(exist_ok=True)
    with (
        # Beside the checkout and not in /tmp, which may be memory: writes must reach a disk.
        tempfile.TemporaryDirectory(dir=RESULTS_DIR, prefix="work-") as work,
        LoadGenerator() as load,
        ExitStack() as started,
    ):
        yield Stage(effort=effort, load=load, work=Path(work), started=started)
