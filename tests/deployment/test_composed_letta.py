"""Letta as the compose file starts it, run as a plain process; only places are the test's own."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from letta.local.folder import Folder
from tests.deployment.files import ROOT, read_compose
from tests.support.ports import LOOPBACK, port_of, reserve_port
from tests.support.postgres import SUPERUSER, Postgres
from tests.support.proxy import Endpoint, FaultProxy
from tests.support.wait import wait_until

PASSWORD = "not-asked-for"  # the tests' PostgreSQL trusts whoever comes
SECRETS = {
    "LINEAGE_API_KEYS": "some-key",
    "LINEAGE_EMBEDDINGS_KEY": "key-of-letta",
    "POSTGRES_PASSWORD": PASSWORD,
}

pytestmark = pytest.mark.letta


@dataclass(frozen=True)
class ComposedLetta:
    process: "subprocess.Popen[bytes]"
    port: int
    health_check: list[str]
    log: Path

    def is_healthy(self) -> bool:
        """Tell what the container engine would be told."""
        check = subprocess.run(
            self.health_check, stderr=subprocess.DEVNULL, timeout=30, check=False
        )
        return check.returncode == 0

    def claims_health(self) -> bool:
        return httpx.get(f"http://{LOOPBACK}:{self.port}/v1/health/", timeout=30).is_success

    def says(self, words: str) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return words in self.log.read_text()


@pytest.fixture
def way_to_database(postgres: Postgres) -> Iterator[FaultProxy]:
    with FaultProxy(Endpoint.unix(postgres.socket_path)) as proxy:
        yield proxy


@pytest.fixture
def composed(
    installed_letta: Folder, postgres: Postgres, way_to_database: FaultProxy, tmp_path: Path
) -> Iterator[ComposedLetta]:
    """Letta, started before its database answers and before it exists."""
    letta = read_compose(SECRETS)["services"]["letta"]
    database = f"t_{uuid.uuid4().hex}"
    way_to_database.refuse()
    with reserve_port() as reserved:
        port = port_of(reserved)
        places = {
            "python": str(installed_letta.python),
            f"lineage:{PASSWORD}@postgres:5432/letta": (
                f"{SUPERUSER}:{PASSWORD}@{LOOPBACK}:{way_to_database.port}/{database}"
            ),
            "--migrations=/app": f"--migrations={installed_letta.migrations}",
            "--host=0.0.0.0": f"--host={LOOPBACK}",
            "8283": str(port),
            **mounted_files(letta),
        }
        log = tmp_path / "letta.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [in_its_place(part, places) for part in letta["entrypoint"]],
                cwd=tmp_path,
                env={"PATH": os.defpath, "HOME": str(tmp_path)}
                | {
                    name: in_its_place(value, places)
                    for name, value in letta["environment"].items()
                },
                stdout=output,
                stderr=output,
            )
        form, _, *check = letta["healthcheck"]["test"]
        assert form == "CMD"
        command = [sys.executable, *(in_its_place(part, places) for part in check)]
        yield ComposedLetta(process, port, command, log)
        process.terminate()
        process.wait(timeout=60)
    way_to_database.restore()
    postgres.drop_database(database)


def mounted_files(service: dict[str, Any]) -> dict[str, str]:
    """Return which of our files is what in the container."""
    mounts = (mount.split(":") for mount in service["volumes"])
    return {there: str((ROOT / here).resolve()) for here, there, _ in mounts}


def in_its_place(text: str, places: dict[str, str]) -> str:
    """Put the test's own places into a word of the compose file."""
    if text in places:
        return places[text]
    for theirs, ours in places.items():
        if theirs != "python":
            text = text.replace(theirs, ours)
    return text


def test_letta_waits_for_its_database_makes_it_and_is_healthy_while_it_can_read_it(
    composed: ComposedLetta, way_to_database: FaultProxy
) -> None:
    wait_until(lambda: composed.says("Waiting for PostgreSQL"), describe="Letta waits")
    assert not composed.is_healthy()

    way_to_database.restore()
    wait_until(
        lambda: composed.says("Migrating") and composed.is_healthy(),
        describe=lambda: f"Letta is healthy; its log: {composed.log.read_text()[-5000:]}",
        timeout=180,
    )
    assert not [secret for secret in SECRETS.values() if secret in composed.log.read_text()]

    way_to_database.refuse()
    wait_until(lambda: not composed.is_healthy(), describe="the health check fails")
    assert composed.claims_health()

    way_to_database.restore()
    wait_until(composed.is_healthy, describe="Letta reads again without a restart", timeout=60)
