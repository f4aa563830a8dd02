"""Every setting of the service, read once from the environment and `.env`."""

import os
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    SettingsConfigDict,
)

PREFIX = "LINEAGE_"
ENV_FILE = Path(".env")
# Read by the command line and by workers, not by the service.
LETTA_VARIABLES = {"LETTA_BASE_URL", "LETTA_API_KEY", "LETTA_EMBEDDING"}
CLIENT_VARIABLES = {"LINEAGE_URL", "LINEAGE_API_KEY"}
# Listed among the zones: one is this machine's own choice, the other says that nobody chose.
NO_ZONES = {"localtime", "Factory"}


class SettingsError(Exception):
    """A setting is misspelt or impossible; the message names it."""


class Settings(BaseSettings):
    """The service's settings; README's table explains each one."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=ENV_FILE,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        str_strip_whitespace=True,
    )

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    data_dir: Path = Path("data")
    database_url: SecretStr | None = None
    archive: Literal["embedded", "letta"] = "embedded"
    letta_base_url: Annotated[str | None, Field(validation_alias="LETTA_BASE_URL")] = None
    letta_api_key: Annotated[SecretStr | None, Field(validation_alias="LETTA_API_KEY")] = None
    letta_embedding: Annotated[str | None, Field(validation_alias="LETTA_EMBEDDING")] = None
    letta_instance: Annotated[str, Field(min_length=1, max_length=200)] = "default"
    letta_overfetch: Annotated[int, Field(ge=1, le=100_000)] = 200
    letta_timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    search: Literal["auto", "archive", "scoped"] = "auto"
    embeddings_url: str | None = None
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
    timezone: ZoneInfo = ZoneInfo("UTC")
    core_max_words: Annotated[int, Field(ge=50, le=100_000)] = 1000
    access_log_days: Annotated[int, Field(ge=1)] = 30
    access_log_rows: Annotated[int, Field(ge=1)] = 1_000_000
    cache_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    max_text_bytes: Annotated[int, Field(ge=1, le=32 * 1024)] = 32 * 1024
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024 * 1024
    max_snapshot_bytes: Annotated[int, Field(ge=1024)] = 4 * 1024 * 1024 * 1024
    snapshot_dir: Path | None = None
    snapshot_quiet_s: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("api_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        """Read a comma-separated list."""
        if not isinstance(value, str):
            return value
        keys = tuple(SecretStr(key.strip()) for key in value.split(",") if key.strip())
        if value.strip() and not keys:
            raise ValueError("holds commas and no key")
        return keys

    @field_validator("embeddings_key", "embedding_api_key", "letta_api_key")
    @classmethod
    def _strip_key(cls, value: SecretStr | None) -> SecretStr | None:
        """Take an empty line of a `.env` for a key that is not set."""
        key = value.get_secret_value().strip() if value else ""
        return SecretStr(key) if key else None

    @field_validator("letta_embedding")
    @classmethod
    def _strip_handle(cls, value: str | None) -> str | None:
        """Take an empty line of a `.env` for a handle that is not set."""
        return value or None

    @field_validator("embedding_url", "embeddings_url", "letta_base_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if not value:
            return None
        try:
            url = urlsplit(value)
        except ValueError:
            raise ValueError("is no URL") from None
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError("is an http: or https: URL with a host")
        return value

    @field_validator("timezone", mode="before")
    @classmethod
    def _known_zone(cls, value: object) -> object:
        """Read a zone by its name, as the machines of all workers know it."""
        if not isinstance(value, str):
            return value
        if (name := value.strip()) not in available_timezones() - NO_ZONES:
            raise ValueError("is the IANA name of a time zone, as Asia/Tokyo or UTC")
        return ZoneInfo(name)

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        scheme, _, rest = value.get_secret_value().strip().partition(":")
        if (
            scheme == "sqlite"
            and rest.startswith("///")
            and rest.strip("/") not in {"", ":memory:"}
        ):
            return SecretStr(f"{scheme}:{rest}")
        if scheme not in {"postgres", "postgresql", "postgresql+psycopg"} or not _is_server(rest):
            raise ValueError("is a sqlite:///<file> or postgresql://<user>@<host>/<database> URL")
        return SecretStr(f"postgresql+psycopg:{rest}")

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
    def _letta_is_complete(self) -> Self:
        if self.archive != "letta":
            return self
        if not self.letta_base_url:
            raise ValueError("LINEAGE_ARCHIVE=letta needs LETTA_BASE_URL")
        if self.letta_embedding and not self.embedding_dim:
            raise ValueError(
                "LETTA_EMBEDDING needs LINEAGE_EMBEDDING_DIM, the length of its vectors"
            )
        if not self.letta_embedding and not self.embeddings_key:
            raise ValueError(
                "LINEAGE_ARCHIVE=letta needs LINEAGE_EMBEDDINGS_KEY, which Letta sends to "
                "/v1/embeddings (set it as Letta's OPENAI_API_KEY), or a LETTA_EMBEDDING"
            )
        if not self.letta_embedding and not self.embeddings_url and not self.port:
            raise ValueError("LINEAGE_PORT=0 needs LINEAGE_EMBEDDINGS_URL, for Letta to find us")
        if self.search == "scoped" and not self.knows_embedder_of_letta:
            raise ValueError(
                "LINEAGE_SEARCH=scoped needs the embedder that Letta uses: with LETTA_EMBEDDING, "
                "set LINEAGE_EMBEDDER=openai to its endpoint"
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
    def knows_embedder_of_letta(self) -> bool:
        """True where a query's vector made here is the one that Letta would make."""
        return not self.letta_embedding or self.embedder == "openai"

    @property
    def own_embeddings_url(self) -> str:
        """Where Letta reaches our `/v1`."""
        return self.embeddings_url or f"http://127.0.0.1:{self.port}/v1"

    @property
    def database(self) -> str:
        """The database's URL, with its password."""
        if self.database_url is None:
            return f"sqlite:///{self.data_dir / 'lineage.db'}"
        return self.database_url.get_secret_value()


def read_settings() -> Settings:
    """Read the settings; anything misspelt or impossible is a SettingsError that names it."""
    try:
        _check_names(os.environ, "the environment")
        _check_names(DotEnvSettingsSource(Settings, env_file=ENV_FILE).env_vars, str(ENV_FILE))
        return Settings()
    except UnicodeDecodeError:
        raise SettingsError(f"{ENV_FILE} is not UTF-8.") from None
    except ValidationError as error:
        raise SettingsError("; ".join(_sentences(error))) from None


def _check_names(names: Iterable[str], where: str) -> None:
    # The names of settings are read in any case, and so are the wrong ones.
    known = {variable(name) for name in Settings.model_fields} | CLIENT_VARIABLES
    ours = {name.upper() for name in names if name.upper().startswith(PREFIX)}
    if unknown := sorted(ours - known):
        raise SettingsError(f"{', '.join(unknown)} in {where}: no such setting.")


def _sentences(error: ValidationError) -> list[str]:
    """Say what is wrong with which variable, without repeating a value that may be secret."""
    return [
        f"{variable(str(item['loc'][0]))}: {message}" if item["loc"] else message
        for item in error.errors()
        for message in [item["msg"].removeprefix("Value error, ")]
    ]


def variable(name: str) -> str:
    """Return the environment variable of a field; Letta's own keep their names."""
    variable = name.upper()
    return variable if variable in LETTA_VARIABLES else f"{PREFIX}{variable}"


def _is_server(rest: str) -> bool:
    """Tell whether what follows a scheme names a database of a server."""
    try:
        url = urlsplit(rest)
        return bool(url.netloc or url.query) and url.port != 0 and bool(url.path.strip("/"))
    except ValueError:  # brackets that do not close, a port that is none
        return False


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
