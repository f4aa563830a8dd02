"""Where a worker stands: which service, which checkpoint, which node."""

import hashlib
import os
import re
from dataclasses import dataclass, field
from typing import TypeAlias

URL = "LINEAGE_URL"
API_KEY = "LINEAGE_API_KEY"
CURRENT_NODE = "ARI_CURRENT_NODE_ID"
CHECKPOINT_DIR = "ARI_CHECKPOINT_DIR"

# As the service has them; a test holds the two equal.
TOKEN_PREFIX = "lnt_"  # noqa: S105  (what tokens begin with, not one of them)
CHECKPOINT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
# Of names and ids alike; it becomes a header, which carries no other characters.
NODE = re.compile(r"[A-Za-z0-9._~-]+")
BEARER = re.compile(r"[\x21-\x7e]+")

PathLike: TypeAlias = os.PathLike[str]


class NotConfigured(Exception):
    """What a call needs is not given, or cannot be what it is; the message says what."""


@dataclass(frozen=True, slots=True)
class Address:
    """A service and the credential for it."""

    url: str
    api_key: str | None = field(repr=False)

    @property
    def with_token(self) -> bool:
        """True for a node token, which reaches neither checkpoints nor the tree."""
        return self.api_key is not None and self.api_key.startswith(TOKEN_PREFIX)


@dataclass(frozen=True, slots=True)
class CheckpointPath:
    """A checkpoint that is known by its directory: absolute, without a trailing slash."""

    path: str

    @property
    def derived_id(self) -> str:
        """The id that the service gives to this path where nobody chose another."""
        return hashlib.sha1(self.path.encode(), usedforsecurity=False).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What was given to a client; what is None is read from the environment, at each call.

    At each call, because the loops that run nodes one after the other in one process change
    ARI_CURRENT_NODE_ID between them. Every method raises NotConfigured.
    """

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    checkpoint: str | PathLike | None = None
    current_node: str | None = None

    def address(self) -> Address:
        """Return the service; there is no default, since a guess would hide a lost setting."""
        url = self.url or _variable(URL)
        if url is None:
            raise NotConfigured(
                f"{URL} is not set: it names the service, such as http://127.0.0.1:8000."
            )
        if not url.startswith(("http://", "https://")):
            raise NotConfigured(f"{URL} is {url!r}: it begins with http:// or https://.")
        return Address(url.rstrip("/"), usable_key(self.api_key or _variable(API_KEY)))

    def where(self) -> str | CheckpointPath:
        """Return the checkpoint: its id, or the path that the service knows it by."""
        if isinstance(self.checkpoint, str) and CHECKPOINT_ID.fullmatch(self.checkpoint):
            return self.checkpoint
        if self.checkpoint is not None:
            return checkpoint_path(os.fspath(self.checkpoint))
        if (directory := _variable(CHECKPOINT_DIR)) is not None:
            return checkpoint_path(directory)
        checkpoint, dot, _ = (self.node() or "").partition(".")
        if dot and CHECKPOINT_ID.fullmatch(checkpoint):
            return checkpoint
        raise NotConfigured(
            f"{CHECKPOINT_DIR} is not set: it is the directory of the checkpoint. "
            "Without it, pass `checkpoint`, or a current node with its whole id."
        )

    def node(self) -> str | None:
        """Return the current node, a name or a global id; None where nothing says which."""
        node = self.current_node or _variable(CURRENT_NODE)
        if node is not None and not NODE.fullmatch(node):
            raise NotConfigured(f"{CURRENT_NODE} is {node!r}: this is no name or id of a node.")
        return node


def usable_key(api_key: str | None) -> str | None:
    """Return a key that a header carries, or None; NotConfigured for another."""
    if api_key is not None and not BEARER.fullmatch(api_key):
        raise NotConfigured(f"{API_KEY} holds a character that no key has.")
    return api_key


def checkpoint_path(directory: str) -> CheckpointPath:
    """Return the path as the service keeps it; a relative one begins where the process runs."""
    absolute = directory if directory.startswith("/") else os.path.abspath(directory)  # noqa: PTH100  (a Path would normalise)
    return CheckpointPath(absolute.rstrip("/") or "/")


def global_id(node: str, *, checkpoint: str) -> str:
    """Return a node's id, given it or the node's name in this checkpoint."""
    return node if node.startswith(f"{checkpoint}.") else f"{checkpoint}.{node}"


def _variable(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
