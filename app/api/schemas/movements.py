"""What is moved between the layers, and what came of it."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field

from app.api.schemas.base import Answer, Request
from app.api.schemas.notes import TopicName
from app.layers.core import Section
from app.layers.movements.consolidate import DAYS
from app.layers.movements.state import Action
from app.layers.note import Topic
from app.memory.movements import Demotion
from app.memory.moving import Movement

SectionName = Literal["identity", "user", "active-context", "quick-reference"]
Days = Annotated[
    int,
    Field(ge=1, le=36_500, description="How many days back, today in LINEAGE_TIMEZONE included."),
]
MaxWords = Annotated[
    int | None,
    Field(ge=1, le=100_000, description="The limit of core memory; else LINEAGE_CORE_MAX_WORDS."),
]


class DemoteIn(Request):
    """Which item of core memory goes to the archive."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "section": "active-context",
                    "item": "Locatering: the last sweep runs until Friday",
                    "topic": "projects",
                    "title": "Locatering",
                }
            ]
        }
    )

    section: SectionName
    item: Annotated[str, Field(description="Its text, or its first line, with or without bullet.")]
    topic: Annotated[
        TopicName | None, Field(description="Of the note; else told by the item and its section.")
    ] = None
    title: Annotated[
        str | None, Field(description="The note's: one of this topic and title takes the item up.")
    ] = None
    tags: Annotated[list[str], Field(default_factory=list, description="For the note.")]

    def demotion(self) -> Demotion:
        """Return it as the use case knows it."""
        topic = None if self.topic is None else Topic(self.topic)
        return Demotion(Section(self.section), self.item, topic, self.title, self.tags)


class PromoteIn(Request):
    """Which note goes to core memory."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"section": "quick-reference"}]})

    note: Annotated[
        str | None,
        Field(description="By id or ref; else those that were found three times in seven days."),
    ] = None
    section: SectionName = "quick-reference"


class ConsolidateIn(Request):
    """How far back daily notes are read."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"days": DAYS}]})

    days: Days = DAYS


class TrimIn(Request):
    """How long core memory may be."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max_words": 1_000}]})

    max_words: MaxWords = None


class HeartbeatIn(Request):
    """How far back, and how long."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"days": DAYS}]})

    days: Days = DAYS
    max_words: MaxWords = None


class StepOut(Answer):
    """One thing that was done, or left alone and why."""

    action: Literal["demoted", "promoted", "extracted", "merged", "kept"]
    text: Annotated[str, Field(description="What it is about, in a line.")]
    section: str | None
    ref: Annotated[str | None, Field(description="The note, `topic/name`.")]


class MovementOut(Answer):
    """What a movement did; with `dry_run`, what it would do."""

    dry_run: bool
    changed: Annotated[bool, Field(description="Whether anything differs afterwards.")]
    steps: list[StepOut]
    diff: Annotated[
        str, Field(description="A unified diff of the layers as files; empty for no change.")
    ]
    words: Annotated[int, Field(description="Of core memory afterwards.")]
    max_words: int
    over_budget: bool

    @classmethod
    def of(cls, movement: Movement, *, max_words: int) -> Self:
        """Show what came of a movement."""
        return cls(
            dry_run=movement.dry_run,
            changed=bool(movement.diff),
            steps=[
                StepOut(
                    action=_name(step.action), text=step.text, section=step.section, ref=step.ref
                )
                for step in movement.steps
            ],
            diff=movement.diff,
            words=movement.words,
            max_words=max_words,
            over_budget=movement.words > max_words,
        )


def _name(action: Action) -> Literal["demoted", "promoted", "extracted", "merged", "kept"]:
    return action.value
