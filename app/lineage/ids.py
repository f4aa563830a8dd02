"""Ids of checkpoints and nodes: their form, and how one is read from the other."""

import hashlib
import re
import secrets
from typing import NamedTuple, Self

from app.lineage.errors import InvalidInput, UnknownPath

CHECKPOINT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,199}")


class NodeId(NamedTuple):
    """A node's global id, `<checkpoint>.<name>`; an id splits at its first dot."""

    checkpoint: str
    name: str

    def __str__(self) -> str:
        return f"{self.checkpoint}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a global id; None where the text cannot be one."""
        checkpoint, _, name = text.partition(".")
        if CHECKPOINT_ID.fullmatch(checkpoint) and is_node_name(name, checkpoint=checkpoint):
            return cls(checkpoint, name)
        return None

    @classmethod
    def from_path(cls, text: str) -> Self:
        """Read a global id from a URL; a malformed one is UnknownPath, as nothing can be there."""
        if (node := cls.parse(text)) is None:
            raise UnknownPath("The node id in the path is malformed.")
        return node


def is_node_name(name: str, *, checkpoint: str) -> bool:
    """Tell whether a node of this checkpoint may be called so.

    A name that began with its checkpoint's id and a dot would read as an id.
    """
    return bool(NODE_NAME.fullmatch(name)) and not name.startswith(f"{checkpoint}.")


def local_name(text: str, *, checkpoint: str) -> str:
    """Return the name behind an id of this checkpoint, or the text itself as a name."""
    return text.removeprefix(f"{checkpoint}.")


def checkpoint_id(given: str | None, path: str | None, *, seed: bytes | None = None) -> str:
    """Return the id of a checkpoint: as given, else made from its path, else random.

    `seed` makes the random one repeatable, so that a repeated request names the same row.
    """
    if given is not None:
        if not CHECKPOINT_ID.fullmatch(given):
            raise InvalidInput(
                "A checkpoint id has 1 to 63 characters of a-z, 0-9, '_' and '-' "
                "and begins with a letter or digit.",
                place=("body", "id"),
            )
        return given
    if path is not None:
        return hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()[:12]
    return hashlib.sha256(seed).hexdigest()[:12] if seed else secrets.token_hex(6)


def checkpoint_path(path: str | None) -> str | None:
    """Return the path without a trailing slash; a relative one is InvalidInput."""
    if path is None:
        return None
    if not path.startswith("/"):
        raise InvalidInput("A checkpoint's path is absolute.", place=("body", "path"))
    return path.rstrip("/") or "/"
