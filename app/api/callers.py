"""Who calls: the credential and the claim of a request."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest

from app.lineage.errors import AmbiguousClaim, ForbiddenToToken, Unauthenticated
from app.lineage.guard import Claim
from app.memory.nodes import TOKEN_PREFIX

CLAIM_HEADER = b"x-current-node"
OPEN_PATHS = re.compile(r"/(healthz|readyz|openapi\.json|docs(/.*)?|problems(/.*)?)")
EMBEDDINGS_PATHS = re.compile(r"/v1/.*")
# All that a node token reaches; whatever is not listed is refused.
TOKEN_REACH = (
    (frozenset({"GET", "PATCH"}), re.compile(r"/nodes/[^/]+")),
    (frozenset({"GET", "POST", "DELETE"}), re.compile(r"/nodes/[^/]+/memory(/[a-z]+)?")),
    (frozenset({"GET"}), re.compile(r"/nodes/[^/]+/working-context")),
    (frozenset({"POST"}), re.compile(r"/nodes/[^/]+/seal")),
    (frozenset({"GET", "POST"}), re.compile(r"/checkpoints/[^/]+/trace(/search)?")),
    (frozenset({"GET"}), re.compile(r"/checkpoints/[^/]+/(core-memory(/sections/[^/]+)?|context)")),
    (frozenset({"GET"}), re.compile(r"/checkpoints/[^/]+/(archival(/[^/]+)?|notes|session)")),
    (frozenset({"POST"}), re.compile(r"/checkpoints/[^/]+/(archival|recall)/search")),
)


class Kind(StrEnum):
    """Which credential a request came with."""

    OPEN = "open"
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105  (a kind, not a secret)
    EMBEDDINGS_KEY = "embeddings_key"


@dataclass(frozen=True, slots=True)
class Caller:
    """A known caller. `credential` is a hash that tells one from another."""

    kind: Kind
    credential: bytes
    claim: Claim | None

    @property
    def holds_api_key(self) -> bool:
        """True where the request came with an API key."""
        return self.kind is Kind.API_KEY


NOBODY = Caller(Kind.OPEN, b"", None)

FindToken = Callable[[bytes], Awaitable[Claim | None]]


class Doorkeeper:
    """Knows the keys, as hashes, and finds out who calls."""

    def __init__(
        self, api_keys: Sequence[str], embeddings_key: str | None, find_token: FindToken
    ) -> None:
        self._api_keys = [_hash(key) for key in api_keys]
        self._embeddings_key = _hash(embeddings_key) if embeddings_key else None
        self._find_token = find_token

    async def caller(
        self, method: str, path: str, headers: Sequence[tuple[bytes, bytes]]
    ) -> Caller:
        """Return who calls.

        Unauthenticated for a missing or unknown credential, ForbiddenToToken for a path that a
        credential of its kind does not reach, AmbiguousClaim for more than one claim.
        """
        if OPEN_PATHS.fullmatch(path):
            return NOBODY
        bearer = _bearer(headers)
        known = self._anonymous() if bearer is None else await self._known(bearer, path)
        if known.kind is Kind.TOKEN:
            _check_reach(method, path)
        return _claiming(known, headers)

    def _anonymous(self) -> Caller:
        if self._api_keys:
            raise Unauthenticated("This service asks for a credential.")
        return NOBODY

    async def _known(self, bearer: str, path: str) -> Caller:
        hashed = _hash(bearer)
        if _is_one_of(hashed, self._api_keys):
            return Caller(Kind.API_KEY, hashed, None)
        if bearer.startswith(TOKEN_PREFIX) and (claim := await self._find_token(hashed)):
            return Caller(Kind.TOKEN, hashed, claim)
        if self._embeddings_key and compare_digest(hashed, self._embeddings_key):
            if EMBEDDINGS_PATHS.fullmatch(path):
                return Caller(Kind.EMBEDDINGS_KEY, hashed, None)
            raise ForbiddenToToken("The embeddings key reaches /v1 only.")
        raise Unauthenticated("The bearer is not known.")


def _bearer(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return the bearer, "" where the header says nothing of use; None without any."""
    sent = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
    if not sent:
        return None
    scheme, _, bearer = sent[0].partition(" ")
    if len(sent) > 1 or scheme.lower() != "bearer":
        return ""
    return bearer.strip()


def _claiming(known: Caller, headers: Sequence[tuple[bytes, bytes]]) -> Caller:
    """Return the caller with the claim of the header; a token's own claim may be repeated in it."""
    claimed = [
        # Blanks around a value are no part of it (RFC 9110, 5.5), but some parsers leave them.
        value.decode("latin-1").strip(" \t")
        for name, value in headers
        if name == CLAIM_HEADER
    ]
    if not claimed:
        return known
    if len(claimed) > 1:
        raise AmbiguousClaim("X-Current-Node was sent more than once.")
    if known.claim is None:
        return Caller(known.kind, known.credential, Claim(claimed[0]))
    if claimed[0] != known.claim.node:
        raise AmbiguousClaim("X-Current-Node names another node than the token.")
    return known


def _is_one_of(hashed: bytes, keys: Sequence[bytes]) -> bool:
    """Compare with every key, so that the time taken tells nothing."""
    matches = [compare_digest(hashed, key) for key in keys]
    return any(matches)


def _check_reach(method: str, path: str) -> None:
    if not any(method in methods and form.fullmatch(path) for methods, form in TOKEN_REACH):
        raise ForbiddenToToken(f"A node token does not reach {method} {path}.")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
