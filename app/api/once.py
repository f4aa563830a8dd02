"""Creates: their answers, and how a repeated one gets the first answer again."""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from starlette.responses import Response

from app.lineage.errors import InvalidInput
from app.memory.idempotency import Answer, Once

JSON = "application/json"
REPLAYED = {"Idempotency-Replayed": "true"}

Render = Callable[[Any], tuple[int, str]]

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]*$",
        description="A repeat with the same key and body gets the first answer again, for 24 h.",
    ),
]


async def repeatable(request: Request, key: KeyHeader = None) -> Callable[[Render], Once | None]:
    """Return what makes a Once of the request, given how its answer is rendered.

    The key counts for one credential with its claim, one method and one path. InvalidInput for
    two keys.
    """
    if key is None:
        return lambda _render: None
    if len(request.headers.getlist("idempotency-key")) > 1:
        raise InvalidInput(
            "Idempotency-Key was sent more than once.", place=("header", "Idempotency-Key")
        )
    caller = request.state.caller
    # The claim is part of who asks: another node's first answer is not for this one to see.
    claimed = caller.claim.node if caller.claim else ""
    who = caller.credential + claimed.encode()
    parts = (who, request.method.encode(), request.url.path.encode(), key.encode())
    scope = hashlib.sha256(b"\x00".join(hashlib.sha256(part).digest() for part in parts)).digest()
    body = hashlib.sha256(await request.body()).digest()
    return lambda render: Once(scope, body, render)


Repeatable = Annotated[Callable[[Render], Once | None], Depends(repeatable)]


async def no_idempotency_key(request: Request) -> None:
    """Refuse a key where no answer may be kept: InvalidInput."""
    if "idempotency-key" in request.headers:
        raise InvalidInput(
            "This operation takes no Idempotency-Key: its answer is not kept.",
            place=("header", "Idempotency-Key"),
        )


def rendered(answer: BaseModel, *, status: int) -> tuple[int, str]:
    """Return status and body as they are sent, and kept."""
    return status, answer.model_dump_json()


def answered(outcome: Any, render: Render) -> Response:
    """Send what a create stored, or a kept answer byte for byte."""
    if isinstance(outcome, Answer):
        return Response(outcome.body, outcome.status, headers=REPLAYED, media_type=JSON)
    status, body = render(outcome)
    return Response(body, status, media_type=JSON)
