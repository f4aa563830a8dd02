"""A transaction of the writer thread, as its jobs see it."""

from dataclasses import dataclass, field
from typing import TypeAlias

from sqlalchemy import Connection

from app.db.events import Event

# What a query of a reader thread works with: all that it reads is of one instant.
ReadTransaction: TypeAlias = Connection


@dataclass(slots=True)
class Transaction:
    """The connection, and the events that the commit makes true.

    `again` is set where a group failed and its jobs are done once more, one by one: a commit whose
    answer was lost may have stored them already.
    """

    connection: Connection
    again: bool = False
    events: list[Event] = field(default_factory=list)
