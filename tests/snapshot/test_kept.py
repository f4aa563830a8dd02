"""Snapshots that the service keeps on its disk: when they are written, and that they are whole."""

import gzip
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import httpx
import pytest

from tests.conftest import DatabaseKind, NewStorage, StartLive, StartService
from tests.snapshot.files import records
from tests.snapshot.sample import texts
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree
from tests.support.wait import wait_until

NAME = "memory_backup.jsonl.gz"
FILES = [".written_by", NAME]
NEVER = 86_400.0


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The snapshot file of checkpoint exp1."""
    return tmp_path / "exp1" / NAME


def await_text(file: Path, text: str) -> None:
    wait_until(
        lambda: file.exists() and text in gzip.decompress(file.read_bytes()).decode(),
        describe=f"the snapshot holds {text!r}",
    )


def test_on_demand_it_is_what_a_backup_sends(start_service: StartService, kept: Path) -> None:
    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(service.base_url) as api:
        tree = grow_tree(api, "exp1")
        tree.write("root", "blue door")

        done = answer(api.keep_snapshot("exp1"))

        assert Path(done["path"]) == kept
        assert kept.read_bytes() == api.backup("exp1").content


def test_nothing_but_the_file_and_who_wrote_it_is_in_its_folder(
    start_service: StartService, kept: Path
) -> None:
    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(service.base_url) as api:
        grow_tree(api, "exp1")
        answer(api.keep_snapshot("exp1"))
        answer(api.keep_snapshot("exp1"))

    assert sorted(file.name for file in kept.parent.iterdir()) == FILES


def test_a_new_checkpoint_of_the_name_keeps_the_snapshot_of_the_lost_one(
    start_service: StartService, kept: Path
) -> None:
    lost = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(lost.base_url) as api:
        grow_tree(api, "exp1").write("root", "blue door")
    lost.stop()
    former = kept.read_bytes()

    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(service.base_url) as api:
        tree = grow_tree(api, "exp1")
        for text in ("red door", "green door"):
            tree.write("root", text)
            answer(api.keep_snapshot("exp1"))
    service.stop()

    assert "green door" in gzip.decompress(kept.read_bytes()).decode()
    [aside] = kept.parent.glob("memory_backup.2*.jsonl.gz")
    assert aside.read_bytes() == former


def test_an_empty_checkpoint_of_the_name_is_resumed_from_what_is_kept(
    start_service: StartService, kept: Path
) -> None:
    lost = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(lost.base_url) as api:
        grow_tree(api, "exp1").write("root", "blue door")
    lost.stop()
    empty = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(empty.base_url) as api:
        answer(api.checkpoint("exp1"))
    empty.stop()

    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(service.base_url) as api:
        answer(api.checkpoint("exp1"))
        assert answer(api.resume("exp1"))["did"] == "restored"
        assert texts(api, "exp1.root") == ["blue door"]


def test_an_unknown_checkpoint_has_none(start_service: StartService, tmp_path: Path) -> None:
    service = start_service(snapshot_dir=tmp_path)
    with Api(service.base_url) as api:
        assert api.keep_snapshot("exp1").status_code == 404


def test_without_a_folder_the_setting_is_named(tree: Tree) -> None:
    refused = tree.api.keep_snapshot(tree.checkpoint)

    assert refused.status_code == 422
    assert "LINEAGE_SNAPSHOT_DIR" in refused.json()["detail"]


def test_a_folder_that_takes_nothing_is_503(start_service: StartService, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    service = start_service(snapshot_dir=blocked)
    with Api(service.base_url) as api:
        grow_tree(api, "exp1")

        refused = api.keep_snapshot("exp1")

        assert refused.status_code == 503
        assert refused.json()["type"] == "/problems/snapshot-failed"
        assert str(blocked) not in refused.text


def test_after_a_quiet_period_every_change_is_in_it(
    start_service: StartService, kept: Path
) -> None:
    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=0.2)
    with Api(service.base_url) as api:
        tree = grow_tree(api, "exp1")
        tree.write("root", "blue door")
        await_text(kept, "blue door")

        answer(api.put_core_memory("exp1", persona="Careful and slow."))
        await_text(kept, "Careful and slow.")

        answer(api.patch_node(tree["a"], eval_summary="another direction"))
        await_text(kept, "another direction")

        answer(api.trace_step("exp1", "think of it"))
        await_text(kept, "think of it")

        tree.add("c", "b")
        await_text(kept, '"name":"c"')

        answer(api.seal(tree["c"]))
        wait_until(
            lambda: any(line.get("sealed_at") for line in records(kept.read_bytes())),
            describe="the seal is in the snapshot",
        )

        answer(api.clear(tree["root"]))
        wait_until(
            lambda: "blue door" not in gzip.decompress(kept.read_bytes()).decode(),
            describe="the cleared entry is gone from the snapshot",
        )


def test_while_there_are_changes_none_is_written(start_service: StartService, kept: Path) -> None:
    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=5.0)
    with Api(service.base_url) as api:
        tree = grow_tree(api, "exp1", {"root": {}})
        until = time.monotonic() + 8
        while time.monotonic() < until:
            tree.write("root", "again")
            assert not kept.exists()


def test_when_the_service_stops_the_last_changes_are_in_it(
    start_service: StartService, kept: Path
) -> None:
    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(service.base_url) as api:
        grow_tree(api, "exp1").write("root", "blue door")
        assert not kept.exists()

    service.stop()

    assert "blue door" in gzip.decompress(kept.read_bytes()).decode()


def test_a_snapshot_that_would_be_the_same_is_not_written_anew(
    start_service: StartService, kept: Path
) -> None:
    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(service.base_url) as api:
        grow_tree(api, "exp1")
        answer(api.keep_snapshot("exp1"))
        before = kept.stat()
        answer(api.keep_snapshot("exp1"))

    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_a_killed_process_left_is_removed_at_the_next_start(
    start_service: StartService, kept: Path
) -> None:
    kept.parent.mkdir()
    left = kept.with_name(f".{NAME}.0123456789abcdef")
    left.write_bytes(b"half")
    other = kept.with_name("notes.txt")
    other.write_text("mine")

    start_service(snapshot_dir=kept.parents[1])

    wait_until(lambda: not left.exists(), describe="the half-written file is removed")
    assert other.exists()


def test_what_cannot_be_removed_keeps_no_snapshot_from_being_written(
    start_service: StartService, kept: Path
) -> None:
    kept.with_name(f".{NAME}.a-folder").mkdir(parents=True)

    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=0.1)

    with Api(service.base_url) as api:
        grow_tree(api, "exp1").write("root", "blue door")
        await_text(kept, "blue door")


def test_a_purged_checkpoints_snapshot_stays(start_service: StartService, kept: Path) -> None:
    service = start_service(snapshot_dir=kept.parents[1], snapshot_quiet_s=NEVER)
    with Api(service.base_url) as api:
        grow_tree(api, "exp1").write("root", "blue door")
        answer(api.keep_snapshot("exp1"))

        assert api.purge("exp1").is_success
        answer(api.resume("exp1"))

        assert texts(api, "exp1.root") == ["blue door"]


def test_snapshots_asked_for_at_once_leave_one_whole_file(
    start_service: StartService, new_storage: NewStorage, database: DatabaseKind, kept: Path
) -> None:
    # SQLite takes one process: there, both callers ask the same one.
    storage, count = new_storage(), 2 if database == "postgresql" else 1
    settings = {"snapshot_dir": kept.parents[1], "snapshot_quiet_s": NEVER}
    replicas = [start_service(storage=storage, **settings) for _ in range(count)]
    with Api(replicas[0].base_url) as api:
        tree = grow_tree(api, "exp1")
        answer(api.write_batch(tree["root"], [f"{n} " * 2_000 for n in range(50)]))
        answer(api.keep_snapshot("exp1"))
    together = threading.Barrier(2)

    def keep(service: InProcessService) -> list[int]:
        statuses = []
        with Api(service.base_url) as own:
            for number in range(10):
                together.wait()
                if number % 2:  # every other time both want the same bytes
                    answer(own.write("exp1.root", f"change {number}"))
                statuses.append(own.keep_snapshot("exp1").status_code)
        return statuses

    with Reader(kept) as reader, ThreadPoolExecutor(2) as callers:
        statuses = list(callers.map(keep, (replicas[0], replicas[-1])))

    assert statuses == [[200] * 10] * 2
    reader.check(kept.read_bytes())
    assert (reader.broken, reader.seen > 10) == ([], True)
    assert sorted(file.name for file in kept.parent.iterdir()) == FILES


@pytest.mark.parametrize("kills", [2, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.timeout(600)
def test_the_file_is_whole_at_every_moment_and_after_every_kill(
    start_live: StartLive, tmp_path: Path, kept: Path, kills: int
) -> None:
    live = start_live(LINEAGE_SNAPSHOT_DIR=str(tmp_path), LINEAGE_SNAPSHOT_QUIET_S="0")
    with Api(live.base_url) as api:
        tree = grow_tree(api, "exp1", {"root": {}})
        answer(api.write_batch(tree["root"], [f"{n} " * 2_000 for n in range(300)]))
        wait_until(kept.exists, describe="the first snapshot")
        with Reader(kept) as reader:
            for kill in range(kills):
                tree.write("root", f"before kill {kill}")
                keeping = threading.Thread(target=keep_until_killed, args=(live.base_url,))
                keeping.start()
                reader.await_reads(3)
                # Another moment of the writing each time; whichever it is, the file must be whole.
                time.sleep(0.05 * (kill % 5))
                live.kill()
                keeping.join()
                reader.check(kept.read_bytes())
                live.start()
            tree.write("root", "the end")
            answer(api.keep_snapshot("exp1"))
        reader.check(kept.read_bytes())
        assert "the end" in gzip.decompress(kept.read_bytes()).decode()
        assert reader.seen > kills
        assert reader.broken == []
        assert sorted(file.name for file in kept.parent.iterdir()) == FILES


def keep_until_killed(base_url: str) -> None:
    """Change something and ask for a snapshot, again and again, until nobody answers."""
    with Api(base_url) as api:
        try:
            while True:
                api.write("exp1.root", "one more")
                api.keep_snapshot("exp1")
        except httpx.TransportError:
            return


class Reader:
    """Reads a snapshot file in a loop and keeps what was wrong with it."""

    def __init__(self, file: Path) -> None:
        self.broken: list[str] = []
        self.seen = 0
        self._file = file
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def await_reads(self, count: int) -> None:
        """Return when it has read so many times more."""
        enough = self.seen + count
        wait_until(lambda: self.seen >= enough, describe="it is read")

    def check(self, packed: bytes) -> None:
        """Hold a file to be whole from its header to its last line."""
        lines = records(packed)
        assert (lines[0]["kind"], lines[-1]["kind"]) == ("header", "end")
        assert lines[-1]["lines"] == len(lines) - 1

    def _read(self) -> None:
        while not self._done.is_set():
            try:
                self.check(self._file.read_bytes())
            except (OSError, EOFError, ValueError, AssertionError) as error:
                self.broken.append(repr(error))
            self.seen += 1
