"""Embeddings, in the shapes of OpenAI's API."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from app.api.schemas.base import Answer, Request

# OpenAI's own limit of texts in a request, at which its clients cut.
MAX_INPUTS = 2048


class EmbeddingsIn(Request):
    """What to embed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"input": ["dropout made it worse"], "model": "wordllama-l2-supercat-256"}]
        }
    )

    input: Annotated[
        str | list[str],
        Field(description="One text, or 1 to 2048. Token ids are another model's: not taken."),
    ]
    model: Annotated[str, Field(description="The embedder's model: see GET /v1/models.")]
    encoding_format: Annotated[
        Literal["float", "base64"],
        Field(description="`base64` is of little-endian float32, as OpenAI's clients ask for."),
    ] = "float"
    dimensions: Annotated[
        int | None, Field(description="The embedder's own; no vector is cut.")
    ] = None
    user: Annotated[str | None, Field(description="Taken, and not used.")] = None

    @field_validator("input", mode="before")
    @classmethod
    def _texts_only(cls, value: Any) -> Any:
        """Say what is wrong with what OpenAI would take and we do not."""
        if not isinstance(value, str | list):
            raise ValueError("input is a text or a list of texts")  # noqa: TRY004  (a 422)
        texts = [value] if isinstance(value, str) else value
        if not 1 <= len(texts) <= MAX_INPUTS:
            raise ValueError(f"input holds 1 to {MAX_INPUTS} texts")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("input is a text or a list of texts; token ids are not taken")
        if "" in texts:
            raise ValueError("an empty text cannot be embedded")
        return value

    @property
    def texts(self) -> list[str]:
        """The texts to embed, in order."""
        return [self.input] if isinstance(self.input, str) else self.input


class EmbeddingOut(Answer):
    """One vector, of length 1."""

    object: Literal["embedding"]
    index: Annotated[int, Field(description="The text's place in `input`, from 0.")]
    embedding: list[float] | str


class UsageOut(Answer):
    """What was embedded, in UTF-8 bytes: the one measure that every embedder shares."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsOut(Answer):
    """The vectors, in the order of the texts."""

    object: Literal["list"]
    data: list[EmbeddingOut]
    model: str
    usage: UsageOut


class ModelOut(Answer):
    """A model that texts can be embedded with."""

    id: str
    object: Literal["model"]
    created: Annotated[int, Field(description="Unix seconds; 0, for nobody knows.")]
    owned_by: str
    dimensions: int


class ModelsOut(Answer):
    """The one model of this service."""

    object: Literal["list"]
    data: list[ModelOut]
