"""doctor: what is well here, what is not, and what to do."""

# ruff: noqa: PLC0415  (the service's own parts take seconds to load; clients do without)

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import httpx
import typer
from rich.text import Text

from app.cli.options import DEFAULT_URL, EXIT_REFUSED, ApiKey, AsJson, ServiceUrl
from app.cli.output import printable, say, to_stdout
from app.client import NotConfigured, Refused, Service, Unreachable

if TYPE_CHECKING:
    from app.client import Answer
    from app.doctor import Check
    from app.settings import Settings

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
NAME_WIDTH = 15


def doctor(
    *,
    url: ServiceUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Look at settings, disk, database, Letta and the service, and say what to do.

    Run it where the service runs, with its environment. Exit code 1 if anything fails.
    """
    checks: list[Check] = []
    for check in _checks(url, api_key):
        checks.append(check)
        if not as_json:
            _show(check)
    failed = [check for check in checks if check.verdict == "fail"]
    if as_json:
        say({"ok": not failed, "checks": [asdict(check) for check in checks]}, "", as_json=True)
    raise typer.Exit(EXIT_REFUSED if failed else 0)


COMMANDS = {doctor: ("letta-lineage doctor", "letta-lineage doctor --json | jq .ok")}


def _checks(url: str, api_key: str | None) -> Iterator["Check"]:
    from app.doctor.check import fail, ok
    from app.settings import ENV_FILE, SettingsError, read_settings

    ready = _readiness(url)
    try:
        settings = read_settings()
    except SettingsError as error:
        yield fail("settings", str(error), do=f"Correct the environment or {ENV_FILE}.")
    else:
        also = f" and {ENV_FILE}" if ENV_FILE.exists() else ""
        yield ok("settings", f"Understood, from the environment{also}.")
        yield from _local(settings, ready)
    yield from _service(url, api_key, ready)


def _local(settings: "Settings", ready: "Answer | Exception") -> Iterator["Check"]:
    from app.doctor import check_embedder, check_folder, check_ledger, check_letta

    yield check_folder("data directory", settings.data_dir, setting="LINEAGE_DATA_DIR")
    yield from check_ledger(settings)
    if settings.snapshot_dir is not None:
        yield check_folder("snapshots", settings.snapshot_dir, setting="LINEAGE_SNAPSHOT_DIR")
    yield check_embedder(settings)
    # A running service has asked Letta already, from where it matters.
    if settings.archive == "letta" and not _tells_of_letta(ready):
        yield from check_letta(settings)


def _service(url: str, api_key: str | None, ready: "Answer | Exception") -> Iterator["Check"]:
    from app.doctor.check import fail, ok, warn
    from app.doctor.letta import check_version

    if isinstance(ready, Unreachable) and isinstance(ready.__cause__, httpx.TransportError):
        yield warn(
            "service", str(ready), do="Start it (letta-lineage serve), or correct LINEAGE_URL."
        )
        return
    if isinstance(ready, Exception):
        yield fail("service", f"{url}: {ready}", do="See to what stands at LINEAGE_URL.")
        return
    facts: Answer = ready.get("facts", {})
    if ready["ledger"]:
        yield fail("service", f"Takes no writes: {ready['ledger']}.", do="See to the database.")
    elif ready["archive"]:
        yield warn(
            "service",
            f"Degraded, takes writes: {ready['archive']}.",
            do="docs/operations.md, Alarms, says what each reason means.",
        )
    else:
        model = facts.get("embedding") or facts.get("model")
        yield ok("service", f"Ready at {url}" + (f", embeds with {model}." if model else "."))
    if "letta" in facts:
        yield check_version(facts["letta"])
    yield _credentials(url, api_key)


def _credentials(url: str, api_key: str | None) -> "Check":
    from app.doctor.check import fail, ok

    try:
        with Service(url, api_key=api_key) as service:
            service.list_checkpoints(limit=1)
    except (NotConfigured, Refused, Unreachable) as error:
        return fail("key", str(error), do="Set LINEAGE_API_KEY to one of its LINEAGE_API_KEYS.")
    return ok("key", "LINEAGE_API_KEY is good." if api_key else "The service asks for none.")


def _readiness(url: str) -> "Answer | Exception":
    try:
        with Service(url) as service:
            return service.ready()
    except (NotConfigured, Refused, Unreachable) as error:
        return error


def _tells_of_letta(ready: "Answer | Exception") -> bool:
    return not isinstance(ready, Exception) and "letta" in ready.get("facts", {})


def _show(check: "Check") -> None:
    console = to_stdout()
    console.print(
        Text.assemble(
            (f"{check.verdict:<4}", STYLES[check.verdict]),
            f"  {check.name:<{NAME_WIDTH}}",
            printable(check.says),
        ),
        soft_wrap=True,
    )
    if check.do is not None:
        console.print(
            Text.assemble(f"{'':<{6 + NAME_WIDTH}}", (f"→ {check.do}", "bold")), soft_wrap=True
        )
