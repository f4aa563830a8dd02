"""A misspelt or impossible setting stops the start with a sentence that names it."""

from pathlib import Path

import pytest

from app.settings import Settings, SettingsError, read_settings
from tests.conftest import StartLive

OPENAI = {
    "LINEAGE_EMBEDDER": "openai",
    "LINEAGE_EMBEDDING_URL": "http://127.0.0.1:9/v1",
    "LINEAGE_EMBEDDING_MODEL": "m",
    "LINEAGE_EMBEDDING_DIM": "8",
}
LETTA = {
    "LINEAGE_ARCHIVE": "letta",
    "LETTA_BASE_URL": "http://127.0.0.1:8283",
    "LINEAGE_EMBEDDINGS_KEY": "a key",
}
BY_HANDLE = {
    "LINEAGE_ARCHIVE": "letta",
    "LETTA_BASE_URL": "http://127.0.0.1:8283",
    "LETTA_EMBEDDING": "openai/text-embedding-3-small",
    "LINEAGE_EMBEDDING_DIM": "1536",
}
IMPOSSIBLE_OF_LETTA = [
    ("LETTA_BASE_URL", "127.0.0.1:8283"),
    ("LETTA_BASE_URL", "ftp://127.0.0.1"),
    ("LINEAGE_LETTA_OVERFETCH", "0"),
    ("LINEAGE_LETTA_OVERFETCH", "many"),
    ("LINEAGE_LETTA_TIMEOUT_S", "0"),
    ("LINEAGE_LETTA_INSTANCE", ""),
    ("LINEAGE_SEARCH", "fast"),
    ("LINEAGE_EMBEDDINGS_URL", "lineage:8000/v1"),
]
IMPOSSIBLE = [
    ("LINEAGE_PORT", "eighty"),
    ("LINEAGE_PORT", "65536"),
    ("LINEAGE_PORT", ""),
    ("LINEAGE_DATABASE_URL", "mysql://127.0.0.1/lineage"),
    ("LINEAGE_DATABASE_URL", "lineage.db"),
    ("LINEAGE_DATABASE_URL", "sqlite://"),
    ("LINEAGE_DATABASE_URL", "sqlite:///:memory:"),
    ("LINEAGE_DATABASE_URL", "postgresql://127.0.0.1:port/lineage"),
    ("LINEAGE_DATABASE_URL", "postgresql://[::1/lineage"),
    ("LINEAGE_DATABASE_URL", "postgresql://127.0.0.1"),
    ("LINEAGE_ARCHIVE", "chroma"),
    ("LINEAGE_EMBEDDER", "word-llama"),
    ("LINEAGE_EMBEDDING_URL", "ftp://127.0.0.1/v1"),
    ("LINEAGE_EMBEDDING_URL", "127.0.0.1:8080/v1"),
    ("LINEAGE_EMBEDDING_URL", "http://[::1/v1"),
    ("LINEAGE_EMBEDDING_DIM", "0"),
    ("LINEAGE_EMBEDDING_TIMEOUT_S", "0"),
    ("LINEAGE_INDEX_WAIT_S", "-1"),
    ("LINEAGE_INDEX_WAIT_S", "nan"),
    ("LINEAGE_API_KEYS", ","),
    ("LINEAGE_ALLOW_OPEN", "perhaps"),
    ("LINEAGE_TIMEZONE", "Asia/Tokio"),
    ("LINEAGE_TIMEZONE", "asia/tokyo"),
    ("LINEAGE_TIMEZONE", "JST-9"),
    ("LINEAGE_TIMEZONE", "../../etc/localtime"),
    ("LINEAGE_TIMEZONE", "localtime"),
    ("LINEAGE_TIMEZONE", ""),
    ("LINEAGE_CORE_MAX_WORDS", "49"),
    ("LINEAGE_CORE_MAX_WORDS", "100001"),
    ("LINEAGE_ACCESS_LOG_DAYS", "0"),
    ("LINEAGE_MAX_TEXT_BYTES", "40000"),
    ("LINEAGE_MAX_BODY_BYTES", "1"),
    ("LINEAGE_LOG_LEVEL", "loud"),
]

Environment = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: Environment) -> Path:
    """An empty working directory, where a test may leave a `.env`."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["environment", ".env"])
def give(request: pytest.FixtureRequest, folder: Path, monkeypatch: Environment) -> "Give":
    return Give(folder if request.param == ".env" else None, monkeypatch)


class Give:
    """Sets settings the one way or the other."""

    def __init__(self, folder: Path | None, monkeypatch: Environment) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch

    def __call__(self, **values: str) -> None:
        if self._folder is not None:
            lines = [f'{name}="{value}"\n' for name, value in values.items()]
            (self._folder / ".env").write_text("".join(lines))
            return
        for name, value in values.items():
            self._monkeypatch.setenv(name, value)


def test_without_any_setting_the_service_is_open_on_loopback_with_sqlite_beside_it() -> None:
    settings = read_settings()

    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.database == "sqlite:///data/lineage.db"
    assert settings.api_keys == ()


@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE)
def test_an_impossible_value_is_refused_by_its_name(give: Give, name: str, value: str) -> None:
    give(**{name: value})

    with pytest.raises(SettingsError, match=f"^{name}: ") as refused:
        read_settings()

    assert "Value error" not in str(refused.value)


@pytest.mark.parametrize("name", ["LINEAGE_PROT", "LINEAGE_API_KEY_", "lineage_data"])
def test_a_misspelt_name_is_refused_by_that_name(give: Give, name: str) -> None:
    give(**{name: "1"})

    with pytest.raises(SettingsError, match=f"{name.upper()} in .*: no such setting"):
        read_settings()


def test_the_zone_is_utc_unless_named(give: Give) -> None:
    assert read_settings().timezone.key == "UTC"

    give(LINEAGE_TIMEZONE=" Asia/Tokyo ")
    assert read_settings().timezone.key == "Asia/Tokyo"


def test_names_of_others_in_a_shared_env_file_are_left_alone(give: Give) -> None:
    give(POSTGRES_PASSWORD="secret", LETTA_BASE_URL="http://127.0.0.1:8283", LINEAGE_URL="any")

    assert read_settings().port == 8000


def test_the_environment_wins_over_the_env_file(folder: Path, monkeypatch: Environment) -> None:
    (folder / ".env").write_text("LINEAGE_PORT=9001\nLINEAGE_LOG_LEVEL=error\n")
    monkeypatch.setenv("LINEAGE_PORT", "9002")

    settings = read_settings()

    assert (settings.port, settings.log_level) == (9002, "error")


def test_an_env_file_that_is_not_utf_8_is_refused(folder: Path) -> None:
    (folder / ".env").write_bytes(b"LINEAGE_PORT=\xff\n")

    with pytest.raises(SettingsError, match="UTF-8"):
        read_settings()


@pytest.mark.parametrize("missing", sorted(OPENAI.keys() - {"LINEAGE_EMBEDDER"}))
def test_an_embedding_endpoint_that_is_not_whole_names_what_it_needs(
    give: Give, missing: str
) -> None:
    give(**{name: value for name, value in OPENAI.items() if name != missing})

    with pytest.raises(SettingsError, match=missing):
        read_settings()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "lineage.example"])  # noqa: S104  (refused)
def test_without_keys_nothing_but_loopback_is_bound(give: Give, host: str) -> None:
    give(LINEAGE_HOST=host)

    with pytest.raises(SettingsError, match=r"LINEAGE_HOST=.*LINEAGE_API_KEYS.*LINEAGE_ALLOW_OPEN"):
        read_settings()


@pytest.mark.parametrize(
    "more", [{"LINEAGE_API_KEYS": "key"}, {"LINEAGE_ALLOW_OPEN": "true"}], ids=["keys", "allowed"]
)
def test_with_keys_or_when_told_so_every_address_is_bound(give: Give, more: dict[str, str]) -> None:
    give(LINEAGE_HOST="0.0.0.0", **more)  # noqa: S104  (the case)

    assert read_settings().host == "0.0.0.0"  # noqa: S104  (the case)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_without_keys_loopback_is_bound(give: Give, host: str) -> None:
    give(LINEAGE_HOST=host)

    assert read_settings().host == host


def test_keys_are_read_without_the_blanks_around_them(give: Give) -> None:
    give(
        LINEAGE_API_KEYS=" one , two ,",
        LINEAGE_EMBEDDINGS_KEY=" three ",
        LINEAGE_EMBEDDING_API_KEY=" four ",
    )

    settings = read_settings()

    assert [key.get_secret_value() for key in settings.api_keys] == ["one", "two"]
    assert settings.embeddings_key is not None
    assert settings.embeddings_key.get_secret_value() == "three"
    assert settings.embedding_api_key is not None
    assert settings.embedding_api_key.get_secret_value() == "four"


def test_a_blank_key_is_no_key(give: Give) -> None:
    give(LINEAGE_API_KEYS=" ", LINEAGE_EMBEDDINGS_KEY=" ", LINEAGE_EMBEDDING_API_KEY="")

    settings = read_settings()

    assert settings.api_keys == ()
    assert settings.embeddings_key is None
    assert settings.embedding_api_key is None


def test_a_refusal_repeats_no_secret(give: Give) -> None:
    give(LINEAGE_DATABASE_URL="mysql://user:hunter2@127.0.0.1/lineage")

    with pytest.raises(SettingsError) as refused:
        read_settings()

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_each_way_to_write_postgresql_reaches_the_one_driver(give: Give, scheme: str) -> None:
    give(LINEAGE_DATABASE_URL=f"{scheme}://user:pass@127.0.0.1:5432/lineage")

    assert read_settings().database == "postgresql+psycopg://user:pass@127.0.0.1:5432/lineage"


def test_the_settings_show_no_secret() -> None:
    settings = Settings(_env_file=None, api_keys=("hunter2",), embeddings_key="hunter3")

    assert "hunter" not in repr(settings)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_refused_start_ends_with_the_sentence_and_nothing_else(start_live: StartLive) -> None:
    live = start_live(until=None, LINEAGE_PROT="80")

    assert live.wait() == 2
    assert live.log == "letta-lineage: LINEAGE_PROT in the environment: no such setting.\n"


def without(values: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in values.items() if key != name}


@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE_OF_LETTA)
def test_an_impossible_value_of_letta_is_refused_by_its_name(
    give: Give, name: str, value: str
) -> None:
    give(**LETTA | {name: value})

    with pytest.raises(SettingsError, match=f"^{name}: "):
        read_settings()


def test_letta_is_searched_in_the_automatic_mode_unless_told_otherwise(give: Give) -> None:
    give(**LETTA)

    assert read_settings().search == "auto"


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (LETTA, "LETTA_BASE_URL"),
        (LETTA, "LINEAGE_EMBEDDINGS_KEY"),
        (BY_HANDLE, "LETTA_BASE_URL"),
        (BY_HANDLE, "LINEAGE_EMBEDDING_DIM"),
    ],
    ids=["address", "embeddings key", "address with a handle", "dimensions of a handle"],
)
def test_a_letta_that_is_not_whole_names_what_it_needs(
    give: Give, given: dict[str, str], missing: str
) -> None:
    give(**without(given, missing))

    with pytest.raises(SettingsError, match=missing):
        read_settings()


@pytest.mark.parametrize("name", ["LETTA_BASE_URL", "LINEAGE_EMBEDDINGS_KEY"])
def test_a_blank_line_is_not_what_letta_needs(give: Give, name: str) -> None:
    give(**LETTA | {name: ""})

    with pytest.raises(SettingsError, match=name):
        read_settings()


def test_a_handle_of_letta_needs_no_key_for_our_embeddings(give: Give) -> None:
    give(**BY_HANDLE)

    settings = read_settings()

    assert settings.letta_embedding == "openai/text-embedding-3-small"
    assert not settings.knows_embedder_of_letta


def test_a_handle_whose_embedder_is_not_known_refuses_to_rank_here(give: Give) -> None:
    give(**BY_HANDLE, LINEAGE_SEARCH="scoped")

    with pytest.raises(SettingsError, match=r"LINEAGE_SEARCH=scoped needs .*LETTA_EMBEDDING"):
        read_settings()


def test_a_handle_whose_embedder_is_ours_too_may_rank_here(give: Give) -> None:
    give(**OPENAI | BY_HANDLE, LINEAGE_SEARCH="scoped")

    settings = read_settings()

    assert settings.search == "scoped"
    assert settings.knows_embedder_of_letta


def test_letta_finds_our_embeddings_at_our_port_unless_told_otherwise(give: Give) -> None:
    give(**LETTA, LINEAGE_PORT="9001")

    assert read_settings().own_embeddings_url == "http://127.0.0.1:9001/v1"


def test_letta_finds_our_embeddings_where_it_is_told_to(give: Give) -> None:
    give(**LETTA, LINEAGE_EMBEDDINGS_URL="http://lineage:8000/v1")

    assert read_settings().own_embeddings_url == "http://lineage:8000/v1"


def test_a_port_of_chance_needs_the_address_of_our_embeddings(give: Give) -> None:
    give(**LETTA, LINEAGE_PORT="0")

    with pytest.raises(SettingsError, match="LINEAGE_EMBEDDINGS_URL"):
        read_settings()


def test_the_key_of_letta_is_a_secret_without_the_blanks_around_it(give: Give) -> None:
    give(**LETTA, LETTA_API_KEY=" hunter2 ")

    settings = read_settings()

    assert settings.letta_api_key is not None
    assert settings.letta_api_key.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize("name", ["LETTA_API_KEY", "LETTA_EMBEDDING"])
def test_a_blank_line_is_no_key_and_no_handle(give: Give, name: str) -> None:
    give(**LETTA | {name: " "})

    settings = read_settings()

    assert settings.letta_api_key is None
    assert settings.letta_embedding is None
