"""backup, restore and resume from the command line: files that travel."""

import gzip
import json
import shutil
import signal
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from app.client import LineageMemory
from tests.cli.running import COMMAND, ROOT, environment, run
from tests.conftest import StartLive, StartService
from tests.support.client import Api, Json, answer
from tests.support.ports import port_of
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

FILE_NAME = "memory_backup.jsonl.gz"
ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
# What is shown of an answer does not depend on who ranked it.
EMBEDDED = pytest.mark.parametrize(("database", "archive"), [("sqlite", "embedded")], indirect=True)
FOREIGN: list[Json] = [
    {"kind": "node_scope", "node_id": "leaf", "text": "late", "metadata": {}, "ts": 1_700_000_060},
    {"kind": "node_scope", "node_id": "top", "text": "early", "metadata": {}, "ts": 1_700_000_000},
    {"kind": "core_seed", "persona": "P", "human": "H", "context": {}, "seeded_at": 1_700_000_000},
]
TREE_LINES = """
{"name": "top", "parent": null}

{"name": "leaf", "parent": "top"}
{"kind": "entry", "node": "top", "text": "x"}
{"kind": "node", "name": "twig", "parent": "leaf"}
"""


def pack(file: Path, lines: list[Json], *, last_break: bool = True) -> Path:
    text = "\n".join(json.dumps(line) for line in lines) + ("\n" if last_break else "")
    file.write_bytes(gzip.compress(text.encode()))
    return file


def shape(api: Api, checkpoint: str) -> dict[str, tuple[str | None, int]]:
    return {
        node["name"]: (node["parent"], node["entry_count"])
        for node in answer(api.tree(checkpoint))["nodes"]
    }


@ONE_DATABASE
def test_a_backup_comes_back_in_another_service(
    service: InProcessService, tree: Tree, start_service: StartService, tmp_path: Path
) -> None:
    tree.write("a", "one", "two")
    answer(tree.api.seal(tree["a"]))
    saved = run("backup", tree.checkpoint, "--json", url=service.base_url, cwd=tmp_path)
    assert saved.returncode == 0, saved.stderr
    size = (tmp_path / FILE_NAME).stat().st_size
    assert json.loads(saved.stdout) == {
        "checkpoint": tree.checkpoint,
        "file": FILE_NAME,
        "bytes": size,
    }

    other = start_service()
    done = run("restore", FILE_NAME, url=other.base_url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tree.checkpoint}: restored 5 nodes, 2 entries.\n"

    again = run("restore", FILE_NAME, "--json", url=other.base_url, cwd=tmp_path)
    assert (json.loads(again.stdout)["skipped"], json.loads(again.stdout)["pending"]) == (7, 0)
    with Api(other.base_url) as there:
        assert shape(there, tree.checkpoint) == shape(tree.api, tree.checkpoint)
        assert answer(there.get_node(tree["a"]))["sealed"] is True
    assert [file.name for file in tmp_path.iterdir()] == [FILE_NAME]


@EMBEDDED
def test_a_snapshot_goes_through_a_pipe(service: InProcessService, tree: Tree) -> None:
    tree.write("a", "one")
    target = unique_checkpoint()

    packed = subprocess.run(
        [*COMMAND, "backup", tree.checkpoint, "-o", "-"],
        env=environment(service.base_url),
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=True,
    )
    done = subprocess.run(
        [*COMMAND, "restore", "-", "--checkpoint", target],
        env=environment(service.base_url),
        cwd=ROOT,
        input=packed.stdout,
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert packed.stderr == done.stderr == b""
    assert set(shape(tree.api, target)) == set(tree.names)


@EMBEDDED
def test_a_backup_that_is_refused_leaves_the_old_file(
    service: InProcessService, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).write_text("precious")

    done = run("backup", "nowhere", url=service.base_url, cwd=tmp_path)

    assert (done.returncode, "There is no checkpoint 'nowhere'" in done.stderr) == (1, True)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [
        (FILE_NAME, "precious")
    ]


@EMBEDDED
def test_a_backup_follows_a_link_and_leaves_it_one(
    service: InProcessService, tree: Tree, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.gz").symlink_to("elsewhere/real.gz")

    done = run("backup", tree.checkpoint, "-o", "link.gz", url=service.base_url, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "link.gz").is_symlink()
    assert gzip.decompress((tmp_path / "elsewhere" / "real.gz").read_bytes())


@EMBEDDED
def test_a_backup_gives_nobody_a_right_that_the_old_file_did_not(
    service: InProcessService, tree: Tree, tmp_path: Path
) -> None:
    old = tmp_path / "old.gz"
    old.touch(mode=0o600)

    done = run("backup", tree.checkpoint, "-o", "old.gz", url=service.base_url, cwd=tmp_path)

    assert (done.returncode, old.stat().st_mode & 0o777) == (0, 0o600)
    assert gzip.decompress(old.read_bytes())


@EMBEDDED
@pytest.mark.parametrize("output", [".", "missing/file.gz"])
def test_a_place_that_takes_no_file_is_named(
    service: InProcessService, tree: Tree, tmp_path: Path, output: str
) -> None:
    done = run("backup", tree.checkpoint, "-o", output, url=service.base_url, cwd=tmp_path)

    assert (done.returncode, "director" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


@EMBEDDED
@pytest.mark.parametrize("last_break", [True, False])
@pytest.mark.parametrize(
    "tree_file",
    [
        '{"top": null, "leaf": "top", "twig": "leaf"}',
        TREE_LINES,
        f"\ufeff{TREE_LINES}",
        TREE_LINES + '{"kind": "node_scope", "node_id": "leaf", "text": "two\u2028lines"}\n',
    ],
    ids=["mapping", "lines", "byte order mark", "line separator in a text"],
)
def test_a_foreign_file_takes_its_parents_from_a_tree_file(
    service: InProcessService, api: Api, tmp_path: Path, tree_file: str, *, last_break: bool
) -> None:
    pack(tmp_path / "old.gz", FOREIGN, last_break=last_break)
    (tmp_path / "tree").write_text(tree_file)
    checkpoint = unique_checkpoint()

    arguments = ("restore", "old.gz", "--checkpoint", checkpoint, "--tree", "tree")
    done = run(*arguments, url=service.base_url, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert shape(api, checkpoint) == {
        "top": (None, 1),
        "leaf": (f"{checkpoint}.top", 1),
        "twig": (f"{checkpoint}.leaf", 0),
    }
    leaf = answer(api.get_node(f"{checkpoint}.leaf"))
    assert leaf["created_at"] == "2023-11-14T22:14:20Z"
    assert run(*arguments, url=service.base_url, cwd=tmp_path).returncode == 0


@EMBEDDED
def test_a_tree_file_does_not_move_the_lines_that_complaints_name(
    service: InProcessService, tmp_path: Path
) -> None:
    pack(tmp_path / "old.gz", [*FOREIGN, {"kind": "node_scope", "node_id": "top", "text": 7}])
    (tmp_path / "tree").write_text('{"top": null, "leaf": "top"}')

    done = run(
        *("restore", "old.gz", "--checkpoint", unique_checkpoint(), "--tree", "tree"),
        url=service.base_url,
        cwd=tmp_path,
    )

    assert (done.returncode, "line 4" in done.stderr.lower()) == (2, True), done.stderr


@EMBEDDED
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"top": 7}', "parent of 'top'"),
        ('{"parent": "x"}\n{"name": "y"}', "line 1: it has no name"),
        ("[1]", "line 1: this is no JSON object"),
        ('{"name": "a"}\n{"name": "a"}', "line 2: node 'a' was there before"),
        ('{"top": "leaf", "leaf": "top"}', "its own ancestor"),
    ],
)
def test_a_bad_tree_file_is_told_and_changes_nothing(
    service: InProcessService, api: Api, tmp_path: Path, content: str, said: str
) -> None:
    pack(tmp_path / "old.gz", FOREIGN)
    (tmp_path / "tree").write_text(content)
    checkpoint = unique_checkpoint()

    done = run(
        *("restore", "old.gz", "--checkpoint", checkpoint, "--tree", "tree"),
        url=service.base_url,
        cwd=tmp_path,
    )

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert api.get_checkpoint(checkpoint).status_code == 404


@EMBEDDED
def test_a_file_with_a_tree_takes_no_other_and_one_without_a_name_asks_for_it(
    service: InProcessService, tree: Tree, tmp_path: Path
) -> None:
    run("backup", tree.checkpoint, "-o", "ours.gz", url=service.base_url, cwd=tmp_path)
    pack(tmp_path / "old.gz", FOREIGN)
    (tmp_path / "tree").write_text("{}")

    ours = run("restore", "ours.gz", "--tree", "tree", url=service.base_url, cwd=tmp_path)
    nameless = run("restore", "old.gz", url=service.base_url, cwd=tmp_path)

    assert (ours.returncode, "has its own tree in it" in ours.stderr) == (2, True)
    assert (nameless.returncode, "say --checkpoint ID" in nameless.stderr) == (2, True)


@EMBEDDED
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"plain text", "not a whole gzip file"),
        (b"", "is empty"),
        (gzip.compress(b""), "is empty"),
        (gzip.compress(b'{"kind": "header", "checkpoint": "exp1"}')[:-9], "not a whole gzip"),
        (gzip.compress(b"x" * 600_000), "line longer than"),
        (gzip.compress(b'{"kind":"header","format":99,"checkpoint":"exp1"}\n'), "format is 99"),
    ],
)
def test_what_is_no_snapshot_is_bad_input(
    service: InProcessService, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "file.gz").write_bytes(content)

    done = run("restore", "file.gz", url=service.base_url, cwd=tmp_path)

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


@EMBEDDED
def test_a_restore_that_must_not_meet_anything_is_refused(
    service: InProcessService, tree: Tree, tmp_path: Path
) -> None:
    run("backup", tree.checkpoint, url=service.base_url, cwd=tmp_path)

    done = run("restore", FILE_NAME, "--on-conflict", "fail", url=service.base_url, cwd=tmp_path)

    assert (done.returncode, tree.checkpoint in done.stderr) == (1, True)


@ONE_DATABASE
def test_a_copied_directory_is_resumed_elsewhere_and_workers_go_on(
    start_live: StartLive, start_service: StartService, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    first = start_live(LINEAGE_SNAPSHOT_DIR=str(kept))
    loaded = run("load", "examples/run.jsonl", "--checkpoint", "bikes", url=first.base_url)
    assert loaded.returncode == 0, loaded.stderr
    first.terminate()  # the last snapshot is written as it stops
    copied = tmp_path / "copied"
    shutil.copytree(kept / "bikes", copied)

    second = start_service()
    done = run("resume", str(copied), "--json", url=second.base_url)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["checkpoint"], outcome["did"], outcome["pending"]) == ("bikes", "restored", 0)
    assert outcome["restored"]["restored"] == {"nodes": 12, "entries": 60, "blocks": 0}

    with LineageMemory(url=second.base_url, checkpoint=copied, current_node="trees_lag") as worker:
        worker.add_memory("Going on.")
        assert "RMSLE" in str(worker.search_memory("metric"))
    again = run("resume", str(copied), url=second.base_url)
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
    with Api(second.base_url) as api:
        assert answer(api.get_checkpoint("bikes"))["entries"] == 61


@EMBEDDED
def test_a_foreign_directory_gets_the_id_of_its_path(
    service: InProcessService, api: Api, tmp_path: Path
) -> None:
    pack(tmp_path / FILE_NAME, FOREIGN)
    derived = answer(api.checkpoint(path=str(tmp_path)))["id"]

    done = run("resume", ".", url=service.base_url, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{derived}: restored 2 nodes, 2 entries")
    assert set(shape(api, derived)) == {"top", "leaf"}


@EMBEDDED
def test_a_directory_is_the_one_that_workers_find_however_it_is_spelt(
    service: InProcessService, tmp_path: Path
) -> None:
    pack(tmp_path / FILE_NAME, FOREIGN)
    spelt = f"{tmp_path.parent}//{tmp_path.name}/"

    assert run("resume", spelt, url=service.base_url).returncode == 0

    with LineageMemory(url=service.base_url, checkpoint=spelt, current_node="top") as worker:
        assert len(list(worker.get_node_memory())) == 1


@EMBEDDED
def test_a_directory_that_belongs_to_another_checkpoint_is_told(
    service: InProcessService, api: Api, tree: Tree, tmp_path: Path
) -> None:
    run("backup", tree.checkpoint, url=service.base_url, cwd=tmp_path)
    answer(api.checkpoint(unique_checkpoint(), path=str(tmp_path)))

    done = run("resume", str(tmp_path), url=service.base_url)

    assert (done.returncode, "nothing to do" in done.stdout) == (0, True)
    assert f"must name {tree.checkpoint} by its id" in done.stderr


def test_a_directory_without_a_snapshot_is_told(tmp_path: Path) -> None:
    done = run("resume", str(tmp_path))

    assert (done.returncode, f"There is no {FILE_NAME}" in done.stderr) == (2, True)


@EMBEDDED
def test_ctrl_c_ends_a_command_with_130_and_no_traceback(service: InProcessService) -> None:
    # A pipe that nobody writes to: the restore waits for its input.
    with subprocess.Popen(
        [*COMMAND, "restore", "-"],
        env=environment(service.base_url),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(lambda: _reads(process.pid), describe="it reads its input")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()

    assert (process.returncode, b"Traceback" in said) == (130, False)


def _reads(pid: int) -> bool:
    """Tell whether a process sleeps in a read of a pipe."""
    return "pipe" in Path(f"/proc/{pid}/wchan").read_text()


def test_a_backup_that_breaks_off_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("precious")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(30)
        cutting = threading.Thread(target=_answer_with_a_part, args=(server,), daemon=True)
        cutting.start()
        url = f"http://127.0.0.1:{port_of(server)}"
        done = run("backup", "exp1", url=url, cwd=tmp_path)
        cutting.join()

    assert (done.returncode, "broke off" in done.stderr) == (3, True)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [
        (FILE_NAME, "precious")
    ]


def _answer_with_a_part(server: socket.socket) -> None:
    """Promise 1,000 bytes and send three."""
    connection, _ = server.accept()
    with connection:
        connection.recv(65_536)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nContent-Length: 1000\r\n\r\n"
        connection.sendall(head + b"\x1f\x8b\x08")


@ONE_DATABASE
@pytest.mark.timeout(300)
def test_a_backup_amid_writes_is_whole_for_its_moment(
    start_live: StartLive, start_service: StartService, tmp_path: Path
) -> None:
    live = start_live()
    nodes = [f"n{number}" for number in range(12)]
    with Api(live.base_url) as api:
        tree = grow_tree(api, unique_checkpoint(), {name: {} for name in nodes})
    ended = threading.Event()

    def write(name: str) -> list[int]:
        with Api(live.base_url) as own:
            return [
                own.write(tree[name], f"{name} entry {number}").status_code for number in range(40)
            ]

    def search() -> set[int]:
        found = set()
        with Api(live.base_url) as own:
            while not ended.is_set():
                found.add(own.search(tree["n0"], "entry", include_self=True).status_code)
        return found

    with ThreadPoolExecutor(13) as clients:
        searching = clients.submit(search)
        writing = [clients.submit(write, name) for name in nodes]
        saved = run("backup", tree.checkpoint, url=live.base_url, cwd=tmp_path)
        statuses = [status for one in writing for status in one.result()]
        ended.set()
        found = searching.result()

    assert saved.returncode == 0, saved.stderr
    assert (statuses, found) == ([201] * 480, {200})
    other = start_service()
    done = run("restore", FILE_NAME, url=other.base_url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with Api(live.base_url) as here, Api(other.base_url) as there:
        assert answer(here.get_checkpoint(tree.checkpoint))["entries"] == 480
        for name in nodes:
            now = _texts(here, tree[name])
            then = _texts(there, tree[name])
            assert now == [f"{name} entry {number}" for number in range(40)]
            assert then == now[: len(then)]


def _texts(api: Api, node: str) -> list[str]:
    return [entry["text"] for entry in answer(api.entries(node, limit=1000))["items"]]
