"""Random requests by the OpenAPI description: no 5xx, no status that is not documented."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import API_KEY, StartLive
from tests.support.client import Api, answer
from tests.support.service import LiveService

CONFIG = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = "40"
# After one of these, most requests would end at a 404 or 409 and never reach what is behind.
ENDINGS = ("purge_checkpoint", "seal_node")


def plant(service: LiveService, bearer: str | None) -> None:
    """Make what the examples name, so that requests get past the look-ups."""
    with Api(service.base_url, bearer=bearer) as api:
        answer(api.checkpoint("exp1"))
        answer(api.node("exp1", "root", eval_summary="Find a rate that converges."))
        answer(api.write_batch("exp1.root", ["a blue door", "a green door"]))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("key", [None, API_KEY], ids=["open", "keyed"])
@pytest.mark.parametrize("left_out", [(), ENDINGS], ids=["all", "while the nodes live"])
def test_no_request_by_the_description_finds_a_5xx_or_an_undocumented_status(
    start_live: StartLive, key: str | None, left_out: tuple[str, ...]
) -> None:
    service = start_live() if key is None else start_live(LINEAGE_API_KEYS=key)
    plant(service, key)
    command = [
        *(sys.executable, "-m", "schemathesis.cli"),
        *("--config-file", str(CONFIG), "run", f"{service.base_url}/openapi.json"),
        *("--checks", "all", "--max-examples", EXAMPLES, "--seed", "7"),
    ]
    for operation in left_out:
        command += ["--exclude-operation-id", operation]
    if key is not None:
        command += ["--header", f"Authorization: Bearer {key}"]

    done = subprocess.run(
        command, cwd=service.log_path.parent, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout[-20_000:]
