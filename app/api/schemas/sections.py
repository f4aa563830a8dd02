"""The sections of core memory, one by one."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from app.api.schemas.base import Answer, Request
from app.layers.words import count_words
from app.lineage.errors import InvalidInput
from app.memory.core_sections import SectionText


class SectionIn(Request):
    """A section's whole text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "- Locatering: the last sweep runs until Friday"}]}
    )

    text: Annotated[str, Field(description="Markdown without the section's own heading.")]


class SectionEdit(Request):
    """One line more, or one in the place of another."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["append"]}, {"required": ["replace", "with"]}],
            "examples": [
                {"append": "- The cluster is down on Mondays"},
                {"replace": "- Sweep runs until Friday", "with": "- Sweep is done"},
            ],
        }
    )

    # None is the mark of a field left out; a null that is sent is refused by the types.
    append: Annotated[str, Field(description="A line for the end of the section.")] = None  # type: ignore[assignment]
    replace: Annotated[str, Field(description="A line as it stands there, whole.")] = None  # type: ignore[assignment]
    new: Annotated[str, Field(alias="with", description="The line in its place.")] = None  # type: ignore[assignment]

    @model_validator(mode="after")
    def _is_one_edit(self) -> Self:
        if self.model_fields_set not in ({"append"}, {"replace", "new"}):
            raise InvalidInput("Send either `append`, or `replace` and `with`.")
        return self

    @property
    def replacement(self) -> tuple[str, str] | None:
        """The old line and the new one; None where a line is appended."""
        return (self.replace, self.new) if "replace" in self.model_fields_set else None


class SectionOut(Answer):
    """A section of core memory."""

    section: Annotated[str, Field(description="Its name in paths, such as active-context.")]
    title: Annotated[str, Field(description="Its heading in the Markdown form.")]
    text: str
    words: int
    version: Annotated[int, Field(description="Counts up with each change of it; 0 until set.")]

    @classmethod
    def of(cls, stored: SectionText) -> Self:
        """Show a section."""
        return cls(
            section=stored.section.value,
            title=stored.section.title,
            text=stored.text,
            words=count_words(stored.text),
            version=stored.version,
        )
