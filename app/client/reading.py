"""What is to be read of an answer, or the answer is somebody else's."""

from collections.abc import Callable
from typing import TypeVar

from app.client.connection import Answer, NotTheService

T = TypeVar("T")


def about(named: str, answer: Answer, *, address: str) -> Answer:
    """Return an answer about what has this id; NotTheService for one about something else."""
    if answer["id"] != named:
        raise NotTheService(f"{address} is not letta-lineage.")
    return answer


def read_as(read: Callable[[Answer], T], answer: Answer, *, address: str) -> T:
    """Return what an answer says; NotTheService where it does not say it."""
    try:
        return read(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise NotTheService(f"{address} is not letta-lineage.") from error
