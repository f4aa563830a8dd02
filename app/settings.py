"""Every setting of the service, read once from the environment and `.env`."""

import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "LINEAGE_"
# Read by the command line and by workers, not by the service.
CLIENT_VARIABLES = {"LINEAGE_URL", "LINEAGE_API_KEY"}


class SettingsError(Exception):
    """A setting is misspelt or impossible; the message names it."""


class Settings(BaseSettings):
    """The service's settings; README's table explains each one."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", extra="ignore", frozen=True, str_strip_whitespace=True
    )

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    data_dir: Path = Path("data")
    database_url: SecretStr | None = None
    archive: Literal["embedded"] = "embedded"
    embedder: Literal["wordllama", "openai"] = "wordllama"
    embedding_url: str | None = None
    embedding_model: str | None = None
    embedding_dim: Annotated[int, Field(ge=1, le=4096)] | None = None
    embedding_api_key: SecretStr | None = None
    embedding_timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    index_wait_s: Annotated[float, Field(ge=0, le=300)] = 5.0
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    embeddings_key: SecretStr | None = None
    allow_open: bool = False
    access_log_days: Annotated[int, Field(ge=1)] = 30
    access_log_rows: Annotated[int, Field(ge=1)] = 1_000_000
    cache_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    max_text_bytes: Annotated[int, Field(ge=1, le=32 * 1024)] = 32 * 1024
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024 * 1024
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("api_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        """Read a comma-separated list."""
        if isinstance(value, str):
            return tuple(SecretStr(key.strip()) for key in value.split(",") if key.strip())
        return value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        scheme = value.get_secret_value().partition(":")[0]
        if scheme in {"postgresql", "postgres"}:
            _, rest = value.get_secret_value().split(":", 1)
            return SecretStr(f"postgresql+psycopg:{rest}")
        if scheme not in {"sqlite", "postgresql+psycopg"}:
            raise ValueError("is a sqlite: or postgresql: URL")
        return value

    @model_validator(mode="after")
    def _embedding_endpoint_is_complete(self) -> Self:
        if self.embedder == "openai" and not (
            self.embedding_url and self.embedding_model and self.embedding_dim
        ):
            raise ValueError(
                "LINEAGE_EMBEDDER=openai needs LINEAGE_EMBEDDING_URL, LINEAGE_EMBEDDING_MODEL and "
                "LINEAGE_EMBEDDING_DIM"
            )
        return self

    @model_validator(mode="after")
    def _open_only_on_loopback(self) -> Self:
        if self.api_keys or self.allow_open or _is_loopback(self.host):
            return self
        raise ValueError(
            f"LINEAGE_HOST={self.host} is reachable by others and LINEAGE_API_KEYS is empty: set "
            "keys, or LINEAGE_ALLOW_OPEN=true to serve everyone"
        )

    @property
    def database(self) -> str:
        """The database's URL, with its password."""
        if self.database_url is None:
            return f"sqlite:///{self.data_dir / 'lineage.db'}"
        return self.database_url.get_secret_value()


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; anything misspelt or impossible is a SettingsError that names it."""
    names = os.environ if environment is None else environment
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | CLIENT_VARIABLES
    if unknown := sorted(name for name in names if name.startswith(PREFIX) and name not in known):
        raise SettingsError(f"{', '.join(unknown)}: no such setting.")
    try:
        return Settings()
    except ValidationError as error:
        raise SettingsError("; ".join(_sentences(error))) from None


def _sentences(error: ValidationError) -> list[str]:
    """Say what is wrong with which variable, without repeating a value that may be secret."""
    return [
        f"{PREFIX}{str(item['loc'][0]).upper()}: {item['msg']}"
        if item["loc"]
        else item["msg"].removeprefix("Value error, ")
        for item in error.errors()
    ]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
