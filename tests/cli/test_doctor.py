"""doctor and migrate: what is well, what is not, and what to do."""

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.conftest import API_KEY, NewStorage, StartLive, StartService
from tests.support.client import Json
from tests.support.ports import port_of, reserve_port
from tests.support.service import InProcessService

SECRET = "sk-very-secret"


@contextmanager
def answering(answers: Mapping[str, object], *, status: int = 200) -> Iterator[str]:
    """Serve JSON by path; what is not listed is 404. For a Letta in states that a real one lacks.

    Like a real one it echoes the credentials where it refuses them.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path in answers
            body = answers.get(self.path, {"detail": self.headers.get("Authorization")})
            content = json.dumps(body).encode()
            self.send_response(status if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody can answer: bound, and never listened on."""
    with reserve_port() as bound:
        yield f"http://127.0.0.1:{port_of(bound)}"


def examined(cwd: Path, *, url: str, **variables: str) -> tuple[int, dict[str, Json]]:
    """Return the exit code, and the checks by name."""
    done = run("doctor", "--json", url=url, cwd=cwd, **variables)
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is (done.returncode == 0)
    for check in report["checks"]:
        assert (check["do"] is None) is (check["verdict"] == "ok"), check
    return done.returncode, {check["name"]: check for check in report["checks"]}


def test_a_machine_before_its_first_start_may_begin(tmp_path: Path, nobody: str) -> None:
    code, checks = examined(tmp_path, url=nobody)

    assert code == 0
    assert {name: check["verdict"] for name, check in checks.items()} == {
        "settings": "ok",
        "data directory": "ok",
        "database": "ok",
        "schema": "warn",
        "embedder": "ok",
        "service": "warn",
    }
    assert "letta-lineage migrate" in checks["schema"]["do"]
    assert list(tmp_path.iterdir()) == []  # looking changes nothing


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_a_running_service_is_well(
    new_storage: NewStorage, start_service: StartService, tmp_path: Path
) -> None:
    storage = new_storage()
    service = start_service(storage=storage, api_keys=(API_KEY,))
    variables = {
        "LINEAGE_DATA_DIR": str(storage.data_dir),
        "LINEAGE_SNAPSHOT_DIR": str(tmp_path / "snapshots"),
    }
    if storage.database_url:
        variables["LINEAGE_DATABASE_URL"] = storage.database_url

    code, checks = examined(tmp_path, url=service.base_url, LINEAGE_API_KEY=API_KEY, **variables)
    assert code == 0
    assert {check["verdict"] for check in checks.values()} == {"ok"}
    assert {"snapshots", "key", "schema", "service"} <= checks.keys()

    code, checks = examined(tmp_path, url=service.base_url, **variables)
    assert (code, checks["key"]["verdict"]) == (1, "fail")


def test_people_get_a_line_for_each_check_and_what_to_do(tmp_path: Path, nobody: str) -> None:
    (tmp_path / ".env").write_text("LINEAGE_POTR=8000\n")

    done = run("doctor", url=nobody, cwd=tmp_path)

    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "fail  settings       LINEAGE_POTR in .env: no such setting."
    assert lines[1].strip() == "→ Correct the environment or .env."
    assert lines[2].startswith("warn  service")


def test_a_folder_and_a_database_that_cannot_be_written_are_named(
    tmp_path: Path, nobody: str
) -> None:
    (tmp_path / "file").write_text("no directory")
    (tmp_path / "bad.db").write_bytes(b"no database " * 1000)

    code, checks = examined(
        tmp_path,
        url=nobody,
        LINEAGE_DATA_DIR="file",
        LINEAGE_SNAPSHOT_DIR="file/snapshots",
        LINEAGE_DATABASE_URL="sqlite:///bad.db",
    )

    assert code == 1
    assert [checks[name]["verdict"] for name in ("data directory", "snapshots", "database")] == [
        "fail"
    ] * 3
    assert "LINEAGE_SNAPSHOT_DIR" in checks["snapshots"]["do"]
    assert "schema" not in checks


def test_a_database_that_is_away_is_told_without_its_password(tmp_path: Path, nobody: str) -> None:
    host = nobody.removeprefix("http://")

    code, checks = examined(
        tmp_path, url=nobody, LINEAGE_DATABASE_URL=f"postgresql://me:{SECRET}@{host}/lineage"
    )

    assert (code, checks["database"]["verdict"]) == (1, "fail")
    assert "PostgreSQL" in checks["database"]["do"]


def test_a_schema_is_brought_up_once_and_one_of_the_future_is_refused(
    tmp_path: Path, nobody: str
) -> None:
    first = run("migrate", "--json", cwd=tmp_path)
    again = run("migrate", cwd=tmp_path)
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert json.loads(first.stdout)["before"] is None
    assert again.stdout.endswith("there was nothing to do.\n")
    assert examined(tmp_path, url=nobody)[1]["schema"]["verdict"] == "ok"

    with closing(sqlite3.connect(tmp_path / "data" / "lineage.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    refused = run("migrate", cwd=tmp_path)
    code, checks = examined(tmp_path, url=nobody)

    assert (refused.returncode, "newer than this version" in refused.stderr) == (3, True)
    assert (code, checks["schema"]["verdict"]) == (1, "fail")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_database_that_is_served_is_not_migrated_beside(start_live: StartLive) -> None:
    live = start_live()

    done = run("migrate", LINEAGE_DATA_DIR=str(live.storage.data_dir))

    assert (done.returncode, "another letta-lineage serves" in done.stderr) == (2, True)


LETTA = {
    "LINEAGE_ARCHIVE": "letta",
    "LETTA_API_KEY": SECRET,
    "LINEAGE_EMBEDDINGS_KEY": SECRET,
}
HEALTHY: dict[str, object] = {
    "/v1/health/": {"version": "0.16.7", "status": "ok"},
    "/v1/agents/count": 3,
    "/v1/models/embedding": [{"handle": "openai/small", "embedding_dim": 1536}],
}


@pytest.mark.parametrize(
    ("answers", "status", "expected"),
    [
        (HEALTHY, 200, ("ok", "0.16.7 answers")),
        (HEALTHY | {"/v1/health/": {"version": "0.17.0"}}, 200, ("warn", "tested with 0.16.x")),
        (HEALTHY, 401, ("fail", "answers 401")),
        (HEALTHY, 500, ("fail", "answers 500")),
        ({"/v1/health/": {"version": "0.16.7"}}, 200, ("fail", "answers 404")),
        ({"/v1/health/": ["no Letta"]}, 200, ("fail", "something else than Letta")),
    ],
)
def test_letta_is_asked_for_its_release_and_its_database(
    tmp_path: Path,
    nobody: str,
    answers: Mapping[str, object],
    status: int,
    expected: tuple[str, str],
) -> None:
    with answering(answers, status=status) as letta:
        code, checks = examined(tmp_path, url=nobody, LETTA_BASE_URL=letta, **LETTA)

    verdict, said = expected
    assert (checks["letta"]["verdict"], said in checks["letta"]["says"]) == (verdict, True)
    assert code == (1 if verdict == "fail" else 0)


def test_a_letta_that_is_away_is_told_with_what_to_do(tmp_path: Path, nobody: str) -> None:
    code, checks = examined(tmp_path, url=nobody, LETTA_BASE_URL=nobody, **LETTA)

    assert (code, checks["letta"]["verdict"]) == (1, "fail")
    assert "make letta" in checks["letta"]["do"]


@pytest.mark.parametrize(
    ("handle", "dimensions", "expected"),
    [
        ("openai/small", "1536", ("ok", "")),
        ("openai/small", "256", ("fail", "Set LINEAGE_EMBEDDING_DIM=1536")),
        ("nope/none", "256", ("fail", "openai/small")),
    ],
)
def test_the_embedding_of_letta_is_one_that_it_knows(
    tmp_path: Path, nobody: str, handle: str, dimensions: str, expected: tuple[str, str]
) -> None:
    with answering(HEALTHY) as letta:
        _, checks = examined(
            tmp_path,
            url=nobody,
            LETTA_BASE_URL=letta,
            LETTA_EMBEDDING=handle,
            LINEAGE_EMBEDDING_DIM=dimensions,
            **LETTA,
        )

    verdict, do = expected
    assert checks["letta embeds"]["verdict"] == verdict
    assert do in (checks["letta embeds"]["do"] or "")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_key_that_letta_sends_must_be_the_one_that_the_service_takes(
    start_service: StartService, tmp_path: Path, nobody: str
) -> None:
    service = start_service(api_keys=(API_KEY,), embeddings_key=SECRET)
    where = {"LINEAGE_EMBEDDINGS_URL": f"{service.base_url}/v1"}

    with answering(HEALTHY) as letta:
        variables = {**LETTA, **where, "LETTA_BASE_URL": letta}
        good = examined(tmp_path, url=nobody, **variables)[1]
        bad = examined(tmp_path, url=nobody, **{**variables, "LINEAGE_EMBEDDINGS_KEY": "x"})[1]

    assert (good["letta embeds"]["verdict"], bad["letta embeds"]["verdict"]) == ("ok", "fail")


@pytest.mark.parametrize(
    ("numbers", "dimensions", "verdict"), [(3, "3", "ok"), (3, "4", "fail"), (None, "3", "fail")]
)
def test_an_embedding_endpoint_is_tried(
    tmp_path: Path, nobody: str, numbers: int | None, dimensions: str, verdict: str
) -> None:
    answers = {"/v1/embeddings": {"data": [{"embedding": [0.5] * numbers}] if numbers else []}}
    with answering(answers) as endpoint:
        _, checks = examined(
            tmp_path,
            url=nobody,
            LINEAGE_EMBEDDER="openai",
            LINEAGE_EMBEDDING_URL=f"{endpoint}/v1",
            LINEAGE_EMBEDDING_MODEL="m",
            LINEAGE_EMBEDDING_DIM=dimensions,
            LINEAGE_EMBEDDING_API_KEY=SECRET,
        )

    assert checks["embedder"]["verdict"] == verdict


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_service_in_front_of_a_lost_letta_is_degraded_and_told(
    start_service: StartService, tmp_path: Path, nobody: str
) -> None:
    service: InProcessService = start_service(
        archive="letta", letta_base_url=nobody, embeddings_key=SECRET
    )

    code, checks = examined(tmp_path, url=service.base_url)

    assert (code, checks["service"]["verdict"]) == (0, "warn")
    assert "Degraded" in checks["service"]["says"]


def test_what_is_no_service_of_ours_is_told(tmp_path: Path) -> None:
    with answering({"/readyz": {"status": "fine"}}) as other:
        code, checks = examined(tmp_path, url=other)

    assert (code, checks["service"]["verdict"]) == (1, "fail")
