"""Core memory, the working context, the access log and the state of the index."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field

from app.api.schemas.base import Answer, Cursor, Instant, Json, Request
from app.api.schemas.entries import EntryOut, SearchOut
from app.layers.core import core_words
from app.lineage.access import AccessRecord
from app.lineage.core_memory import EMPTY_TEXTS, CoreChange, CoreMemory
from app.memory.core_memory import section_texts


class CoreMemoryIn(Request):
    """The blocks to set; one left out stays, and `context` is replaced whole."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "persona": "A careful experimenter.",
                    "context": {"goal": "lowest validation loss", "primary_metric": "val_loss"},
                }
            ]
        }
    )

    # None is the mark of a field left out; a null that is sent is refused by the types.
    persona: Annotated[str, Field(description="Who the agent is: the section Identity.")] = None  # type: ignore[assignment]
    human: Annotated[str, Field(description="Whom it works for: the section User.")] = None  # type: ignore[assignment]
    active_context: Annotated[str, Field(description="What is being worked on.")] = None  # type: ignore[assignment]
    quick_reference: Annotated[str, Field(description="What is looked up all the time.")] = None  # type: ignore[assignment]
    context: Annotated[
        dict[str, Any], Field(description="The experiment's facts: goal, primary metric, hardware.")
    ] = None  # type: ignore[assignment]

    def change(self) -> CoreChange:
        """Return it as the rules know it."""
        given = [label for label in EMPTY_TEXTS if label in self.model_fields_set]
        return CoreChange({label: getattr(self, label) for label in given}, self.context)


class CoreMemoryOut(Answer):
    """The blocks that are always in context, empty until set."""

    persona: str
    human: str
    active_context: str
    quick_reference: str
    context: Json
    words: Annotated[int, Field(description="Of the four texts; `context` is not counted.")]
    max_words: Annotated[int, Field(description="LINEAGE_CORE_MAX_WORDS.")]
    over_budget: Annotated[bool, Field(description="True where trim has something to do.")]

    @classmethod
    def of(cls, core: CoreMemory, *, max_words: int) -> Self:
        """Show core memory."""
        words = core_words(section_texts(core))
        return cls(
            **core.texts,
            context=dict(core.context),
            words=words,
            max_words=max_words,
            over_budget=words > max_words,
        )


class WorkingContextOut(Answer):
    """What a worker loads when it starts on a node."""

    node: str
    context: Json
    core_memory: CoreMemoryOut
    inherited: Annotated[
        list[EntryOut],
        Field(description="The lineage's `type=result_summary` entries, root first."),
    ]
    next_cursor: Annotated[
        str | None,
        Field(description="Goes on in .../memory/inherited?metadata.type=result_summary."),
    ]
    search: Annotated[
        SearchOut | None, Field(description="Null without a query and without an eval_summary.")
    ]


class TouchedOut(Answer):
    """An entry that was read or written, and the node it comes from."""

    id: str
    node: str | None


class AccessOut(Answer):
    """One record of the access log."""

    id: str
    at: Instant
    operation: str
    reader: Annotated[str | None, Field(description="The claim; null for an operator.")]
    node: Annotated[str | None, Field(description="The node that was asked.")]
    query: str | None
    entries: list[TouchedOut]
    refusal: Annotated[str | None, Field(description="The problem, where it was refused.")]

    @classmethod
    def of(cls, record: AccessRecord) -> Self:
        """Show a record."""
        access = record.access
        return cls(
            id=record.id,
            at=record.at,
            operation=access.operation.value,
            reader=access.reader,
            node=None if access.target is None else str(access.target),
            query=access.query,
            entries=[TouchedOut(id=item.id, node=item.node) for item in access.entries],
            refusal=access.refusal,
        )


class AccessPage(Answer):
    """A page of the access log, newest first."""

    items: list[AccessOut]
    next_cursor: Cursor


class ReconciledOut(Answer):
    """What did not fit between the ledger and the archive."""

    checked: Annotated[int, Field(description="Entries that count as indexed.")]
    missing: Annotated[
        list[str],
        Field(description="Of these, the ids without a usable vector or passage: indexed again."),
    ]
    differing: Annotated[
        list[str], Field(description="Entry ids whose passage has another text: only reported.")
    ]
    orphans: Annotated[
        list[str], Field(description="Passage ids of no entry in the ledger: deleted.")
    ]
    doubles: Annotated[
        list[str], Field(description="Passage ids of entries that have another one: deleted.")
    ]
    dry_run: Annotated[bool, Field(description="True where nothing was changed.")]
