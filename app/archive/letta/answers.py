"""What we read of Letta's answers: these fields must be there, whatever else comes with them.

Letta's client builds its objects without looking; a cut or foreign answer would fail somewhere
later, so the bytes are validated here.
"""

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Version(_Part):
    """Of `GET /v1/health/`, which answers 200 even where nothing works."""

    version: str


class EmbeddingConfig(_Part):
    """How an agent or an archive embeds, frozen when it was made."""

    model_config = ConfigDict(extra="allow", frozen=True)

    embedding_model: str
    embedding_dim: int
    embedding_endpoint: str | None = None


class Agent(_Part):
    """An agent."""

    id: str
    name: str
    metadata: dict[str, object] | None
    embedding_config: EmbeddingConfig | None


class ArchiveRow(_Part):
    """An archive."""

    id: str
    name: str
    description: str | None


class Block(_Part):
    """A block of an agent's core memory."""

    id: str
    label: str
    value: str


class StoredPassage(_Part):
    """A passage as inserts, listings and flat searches show it; padded to 4,096 numbers."""

    id: str
    text: str
    metadata: dict[str, object] | None
    created_at: AwareDatetime
    embedding: list[float] | None


class _Wrapped(_Part):
    passage: StoredPassage


class FoundPassage(_Part):
    """A result of an agent's search; its id and text are no reason to show anything."""

    id: str
    content: str


class _Results(_Part):
    results: list[FoundPassage]


VERSION = TypeAdapter(Version)
COUNT = TypeAdapter(int)
AGENT = TypeAdapter(Agent)
AGENTS = TypeAdapter(list[Agent])
ARCHIVE = TypeAdapter(ArchiveRow)
ARCHIVES = TypeAdapter(list[ArchiveRow])
BLOCK = TypeAdapter(Block)
BLOCKS = TypeAdapter(list[Block])
PASSAGES = TypeAdapter(list[StoredPassage])
WRAPPED = TypeAdapter(list[_Wrapped])
RESULTS = TypeAdapter(_Results)
ANYTHING = TypeAdapter(object)
