"""What a failed call to Letta amounts to: an error of ours, without the key or foreign words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import httpx
from letta_client import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    LettaError,
    NotFoundError,
)

from app.lineage.errors import ArchiveUnavailable

LONGEST_DETAIL = 300
INPUT_AT_FAULT = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
UNSENT = (httpx.ConnectTimeout, httpx.PoolTimeout)
NOT_ALLOWED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class Gone(ArchiveUnavailable):
    """Letta does not know the id."""


class Busy(ArchiveUnavailable):
    """Somebody else changed the same thing at the same time; the change was not made."""


class Refused(ArchiveUnavailable):
    """Letta will not have what was sent, and stored none of it."""


class Broken(ArchiveUnavailable):
    """The connection broke before the whole answer was here."""


class Failures:
    """Turns what can go wrong with a call into errors of ours; every call ends in `timeout_s`."""

    def __init__(self, *, timeout_s: float, api_key: str | None) -> None:
        self._timeout_s = timeout_s
        self._api_key = api_key

    @asynccontextmanager
    async def told(self) -> AsyncIterator[None]:
        """Make a call in this block; ArchiveUnavailable and its kinds."""
        try:
            # httpx limits each read; a server that sends a byte a second needs this as well.
            async with asyncio.timeout(self._timeout_s):
                yield
        except (TimeoutError, APITimeoutError) as error:
            raise ArchiveUnavailable(
                f"Letta did not answer within {self._timeout_s:g} s",
                maybe_done=not isinstance(error.__cause__, UNSENT),
            ) from None
        except APIStatusError as error:
            raise self._of_status(error) from None
        except APIConnectionError as error:
            raise _of_connection(error) from None
        except (LettaError, httpx.HTTPError):
            raise ArchiveUnavailable("Letta's answer cannot be read", maybe_done=True) from None

    def _of_status(self, error: APIStatusError) -> ArchiveUnavailable:
        status = error.status_code
        if isinstance(error, NotFoundError):
            return Gone("Letta does not know what we stored there")
        if status in INPUT_AT_FAULT:
            return Refused(f"Letta answered {status}: {self._detail(error.body)}")
        if status in NOT_ALLOWED:
            return ArchiveUnavailable(f"Letta does not accept LETTA_API_KEY ({status})")
        if status == HTTPStatus.CONFLICT:
            return Busy("Letta was changing the same thing (409)")
        if error.response.is_redirect:
            return ArchiveUnavailable(f"Letta redirects ({status}); redirects are not followed")
        return ArchiveUnavailable(f"Letta answered {status}", maybe_done=True)

    def _detail(self, body: object) -> str:
        """Return what Letta says is wrong, without our key should it quote that."""
        detail = body.get("detail") if isinstance(body, dict) else None
        said = str(detail or "no reason given")
        if self._api_key:
            said = said.replace(self._api_key, "***")
        return said[:LONGEST_DETAIL]


def _of_connection(error: APIConnectionError) -> ArchiveUnavailable:
    match error.__cause__:
        case httpx.ConnectError():
            return ArchiveUnavailable("Letta cannot be reached")
        case httpx.InvalidURL():
            return ArchiveUnavailable("the query is too long for Letta")
        case _:
            return Broken("the exchange with Letta broke off", maybe_done=True)
