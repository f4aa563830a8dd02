"""The command line against what is not letta-lineage: a sentence, an exit code, nothing changed."""

import gzip
import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from app import workspace
from app.cli import app
from tests.support.ports import LOOPBACK

HTML, JSON = "text/html", "application/json"
SNAPSHOT = "memory_backup.jsonl.gz"
COMMANDS = (
    "tree exp1",
    "search exp1.fast rate",
    "core exp1",
    "core exp1 --markdown",
    "session exp1 rate",
    "demote exp1 user Ada",
    "promote exp1 people/ada",
    "consolidate exp1",
    "trim exp1",
    "heartbeat exp1",
    f"backup exp1 -o {SNAPSHOT}",
    f"restore {SNAPSHOT}",
    "resume .",
    "load run.jsonl",
    "reindex exp1",
    "reconcile exp1",
    "workspace push notes exp1",
    "workspace pull notes exp1",
    "workspace diff notes exp1",
)


@dataclass(frozen=True)
class Page:
    """What is answered to whatever is asked."""

    status: int
    kind: str
    body: str
    encoding: str = "identity"


MADE = (
    '{"id": "exp1", "parent": null, "lineage": [], "eval_summary": null, "sealed": false, '
    '"items": [], "next_cursor": 7}'
)
NOT_OURS = {
    "a page": Page(200, HTML, "<html>Please log in.</html>"),
    "an object": Page(200, JSON, '{"hello": "world"}'),
    "a list": Page(200, JSON, "[1]"),
    "no page": Page(404, HTML, "<html>Not found.</html>"),
    "another service": Page(404, JSON, '{"detail": "Not Found"}'),
    "a way elsewhere": Page(302, HTML, ""),
    "no gzip, whatever it says": Page(200, JSON, "{}", encoding="gzip"),
    "a failure that is no gzip": Page(500, JSON, "{}", encoding="gzip"),
    "a list without a bottom": Page(200, JSON, "[" * 100_000),
    "an empty object": Page(200, JSON, "{}"),
    "something made": Page(200, JSON, '{"id": "exp1", "items": []}'),
    "a node of somebody else": Page(200, JSON, MADE),
}


class Elsewhere:
    """An HTTP server of somebody else's."""

    def __init__(self) -> None:
        self.page = Page(200, HTML, "")
        elsewhere = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = elsewhere.page
                self.send_response(page.status)
                self.send_header("Content-Type", page.kind)
                self.send_header("Content-Encoding", page.encoding)
                self.send_header("Content-Length", str(len(page.body)))
                self.end_headers()
                self.wfile.write(page.body.encode())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.do_GET()

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self.server.server_port}"


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    stranger = Elsewhere()
    with stranger.server as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield stranger
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_log_of_another_tests_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service in this process writes what it logged to the stdout of the moment: the runner's."""
    monkeypatch.setattr("app.logs.sys", SimpleNamespace(stdout=io.StringIO()))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that the commands read."""
    header = b'{"kind": "header", "format": 1, "checkpoint": "exp1"}\n'
    (tmp_path / SNAPSHOT).write_bytes(gzip.compress(header))
    (tmp_path / "run.jsonl").write_text(
        '{"kind": "node", "name": "a"}\n{"kind": "entry", "node": "a", "text": "x"}\n'
    )
    workspace.init(tmp_path / "notes")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_at(elsewhere: Elsewhere, page: Page, command: str) -> Result:
    elsewhere.page = page
    return CliRunner().invoke(app, command.split(), env={"LINEAGE_URL": elsewhere.url})


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("page", NOT_OURS.values(), ids=NOT_OURS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_it_did_not_find_and_changes_nothing(
    elsewhere: Elsewhere, folder: Path, page: Page, command: str
) -> None:
    before = contents(folder)

    done = run_at(elsewhere, page, command)

    assert (done.exit_code, done.stdout) == (3, ""), done.exception
    assert done.stderr.startswith(f"letta-lineage: {elsewhere.url} ")
    assert done.stderr.endswith("is not letta-lineage.\n")
    assert done.stderr.count("\n") == 1
    assert contents(folder) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_about_a_failure_is_told_by_its_status(
    elsewhere: Elsewhere, folder: Path, command: str
) -> None:
    before = contents(folder)

    done = run_at(elsewhere, Page(500, HTML, "<html>Sorry.</html>"), command)

    assert (done.exit_code, done.stdout) == (1, ""), done.exception
    said = f"letta-lineage: {elsewhere.url} answers 500 Internal Server Error.\n"
    assert done.stderr == said
    assert contents(folder) == before


def test_the_commands_are_all_that_speak_http() -> None:
    of_the_machine = {"serve", "migrate", "openapi", "doctor", "workspace"}
    named = {command.callback.__name__ for command in app.registered_commands if command.callback}

    assert {command.split()[0] for command in COMMANDS} == (named - of_the_machine) | {"workspace"}
