"""What routes depend on, declared once."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from app.api.callers import Caller
from app.lineage.errors import UnknownPath
from app.lineage.guard import Claim
from app.lineage.ids import CHECKPOINT_ID
from app.memory.services import Services


@dataclass(frozen=True, slots=True)
class Context:
    """A request's caller, and what the use cases work with."""

    services: Services
    caller: Caller

    @property
    def claim(self) -> Claim | None:
        """The node that the request says it executes."""
        return self.caller.claim


async def context(request: Request) -> Context:
    """Return the request's context. Async, since a sync one would take a thread hop."""
    return Context(request.app.state.services, request.state.caller)


Ctx = Annotated[Context, Depends(context)]

NodePath = Annotated[
    str,
    Path(alias="node", description="A node's id, `<checkpoint>.<name>`.", examples=["exp1.root"]),
]


NotePath = Annotated[
    str, Path(alias="note", description="A note's id.", examples=["01a22d80f45c3d505c97d184"])
]


def known_checkpoint(checkpoint: str) -> str:
    """Return the id; a malformed one names nothing: UnknownPath."""
    if not CHECKPOINT_ID.fullmatch(checkpoint):
        raise UnknownPath("The checkpoint id in the path is malformed.")
    return checkpoint


CheckpointPath = Annotated[
    str, Path(alias="checkpoint", description="A checkpoint's id.", examples=["exp1"])
]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
CursorQuery = Annotated[
    str | None, Query(alias="cursor", description="`next_cursor` of the page before.")
]
