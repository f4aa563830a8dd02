"""What docs/operations.md tells operators to watch is there, and all that is there is told."""

import re
from pathlib import Path

import pytest

from app.api.metrics import Metrics
from tests.cli.running import ROOT
from tests.conftest import API_KEY, StartLive
from tests.docs.shell import Shell, blocks
from tests.support.client import Api
from tests.support.tree import grow_tree

PAGE = ROOT / "docs" / "operations.md"
OPERATIONS = PAGE.read_text(encoding="utf-8")
# What needs containers, or changes the checkout.
NOT_RUN = ("docker compose ", "cp .env.example .env")


def metrics() -> set[str]:
    """Return the names that Prometheus sees; a histogram's without its suffixes."""
    return {
        f"{metric.name}_total" if metric.type == "counter" else metric.name
        for metric in Metrics().registry.collect()
    }


def test_every_metric_has_its_line_and_every_line_its_metric() -> None:
    assert set(re.findall(r"`(lineage_\w+)`", OPERATIONS)) == metrics()


def test_every_event_of_the_log_that_is_named_is_logged_somewhere() -> None:
    named = re.findall(r"log ((?:`\w+`(?:, )?)+)", OPERATIONS)
    events = [event for group in named for event in re.findall(r"\w+", group)]
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "app").rglob("*.py"))

    assert len(events) > 5
    assert [event for event in events if f'"{event}"' not in code] == []


def test_every_make_target_that_is_named_is_one() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"`make\s+([a-z-]+)`", OPERATIONS)

    assert "letta" in named
    assert [target for target in named if f"\n{target}:" not in makefile] == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_every_line_for_a_shell_runs_on_a_service_with_keys(
    start_live: StartLive, tmp_path: Path
) -> None:
    service = start_live(LINEAGE_API_KEYS=API_KEY)
    with Api(service.base_url, bearer=API_KEY) as api:
        grow_tree(api, "exp1")
    shell = Shell(tmp_path, service.base_url, KEY=API_KEY)
    lines = [
        line
        for block in blocks(PAGE)
        for line in block.text.splitlines()
        if not line.startswith(NOT_RUN)
    ]

    assert len(lines) >= 2
    for line in lines:
        # curl takes a refusal for an answer.
        assert "/problems/" not in shell.run(line), line
