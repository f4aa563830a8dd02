"""What all schemas share."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Request(BaseModel):
    """A request body: no unknown fields, no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """An answer: every field is there."""

    model_config = ConfigDict(frozen=True)


Instant = Annotated[datetime, Field(description="RFC 3339, UTC.")]
Json = Annotated[dict[str, Any], Field(description="A JSON object; kept as it was received.")]
Cursor = Annotated[
    str | None, Field(description="Send it as `cursor` for the next page; null on the last one.")
]
