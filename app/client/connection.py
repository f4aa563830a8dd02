"""How the service is spoken to: attempts, waits, and what can go wrong."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import IO, Any, TypeAlias

import httpx
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_attempt,
)

from app.backoff import Backoff
from app.client.environment import URL, NotConfigured, usable_key
from app.client.spelling import body_of

Answer: TypeAlias = dict[str, Any]
Advance: TypeAlias = Callable[[int], None]
"""Told how many bytes more have passed."""

TIMEOUT_S = 60.0
# For whole checkpoints: Letta is compared at 500 passages a second.
LONG_TIMEOUT = httpx.Timeout(TIMEOUT_S, read=3600.0)
LAST_PORT = 65_535
STEP_BYTES = 256 * 1024
GZIP = {"Content-Type": "application/gzip"}
JSON = {"Content-Type": "application/json"}
# Enough for a service that starts anew.
ATTEMPTS = 6
BACKOFF = Backoff(first_s=0.25, longest_s=4.0)
PASSING = {408, 429, 502, 503, 504}
# Who has no such path, or another place for it, is somebody else.
LEADS_ELSEWHERE = {404, 405}
PROBLEM = "application/problem+json"
# What reading JSON raises: it is none, or it is nested more deeply than anything of the service's.
NOT_JSON = (ValueError, RecursionError)


class Unreachable(Exception):
    """Nothing answers at the address."""


class NotTheService(Unreachable):
    """What answered is something else, such as the login page of a proxy."""


class Refused(Exception):
    """The service, or a gateway before it, refused; the message is the problem's detail."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        super().__init__(str(document.get("detail") or document))
        self.status = status
        self.document = document


class Connection:
    """One service and one credential; every call raises Refused and Unreachable.

    NotConfigured where the one or the other can be none. What has the same effect once or twice is
    repeated while the service is away.
    """

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        key = usable_key(api_key or None)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=_usable(url), headers=headers, timeout=TIMEOUT_S)

    @property
    def address(self) -> str:
        """Where the service is."""
        return str(self._http.base_url)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, method: str, path: str, **request: Any) -> Answer:
        """Return the answer to a call that has the same effect once or twice."""
        return _attempts(_passes)(self.send_once, method, path, **request)

    def edit(self, method: str, path: str, **request: Any) -> Answer:
        """Return the answer to a call that a repeat would break, as one with If-Match.

        It is repeated only where no connection was made.
        """
        return _attempts(_was_not_sent)(self.send_once, method, path, **request)

    def send_once(
        self, method: str, path: str, *, members: Collection[str] = (), **request: Any
    ) -> Answer:
        """Return the answer to a call that is not repeated.

        NotTheService where it is no JSON object, or lacks one of the members.
        """
        response = self._request(method, path, **request)
        try:
            answer = response.json()
        except NOT_JSON as error:
            raise self._not_the_service() from error
        if not isinstance(answer, dict) or not answer.keys() >= set(members):
            raise self._not_the_service()
        return answer

    def text(self, path: str, *, accept: str) -> str:
        """Return what is at a path in another form than JSON."""
        headers = {"Accept": accept}
        response = _attempts(_passes)(self._request, "GET", path, headers=headers)
        if not _is(accept, response):
            raise self._not_the_service()
        try:
            return response.content.decode()
        except UnicodeDecodeError as error:
            raise self._not_the_service() from error

    def download(
        self,
        path: str,
        file: IO[bytes],
        *,
        on_size: Callable[[int | None], None],
        advance: Advance,
    ) -> int:
        """Write the gzip file that is at a path into a file; return how many bytes it has.

        `on_size` is told once how many will come. Where this raises, the file holds a part.
        """
        response = _attempts(_passes)(self._open, path)
        size = 0
        try:
            on_size(_length(response))
            for chunk in response.iter_raw(STEP_BYTES):
                file.write(chunk)
                size += len(chunk)
                advance(len(chunk))
        except httpx.RequestError as error:
            raise self._unreachable(error, "broke off") from error
        finally:
            response.close()
        return size

    def upload(self, path: str, file: IO[bytes], advance: Advance, **request: Any) -> Answer:
        """Send a file; a part of it may have come where this raises."""
        size = file.seek(0, 2)

        def send() -> Answer:
            file.seek(0)
            return self.send_once(
                "POST",
                path,
                content=_chunks(file, advance),
                headers=GZIP | {"Content-Length": str(size)},
                timeout=LONG_TIMEOUT,
                **request,
            )

        return _attempts(_was_not_sent)(send)

    def _open(self, path: str) -> httpx.Response:
        request = self._http.build_request("GET", path, timeout=LONG_TIMEOUT)
        try:
            response = self._http.send(request, stream=True)
            if not response.is_success:
                with closing(response):
                    response.read()
        except httpx.RequestError as error:
            raise self._unreachable(error, "does not answer") from error
        if not response.is_success:
            raise self._refusal(response)
        if not _is(GZIP["Content-Type"], response):
            response.close()
            raise self._not_the_service()
        return response

    def _request(self, method: str, path: str, **request: Any) -> httpx.Response:
        if "json" in request:
            request["content"] = body_of(request.pop("json"))
            request["headers"] = JSON | request.get("headers", {})
        try:
            response = self._http.request(method, path, **request)
        except httpx.RequestError as error:
            raise self._unreachable(error, "does not answer") from error
        if not response.is_success:
            raise self._refusal(response)
        return response

    def _refusal(self, response: httpx.Response) -> Refused | NotTheService:
        """Return what to raise: the problem, or what a gateway or something else answered."""
        document = _document(response)
        if _is(PROBLEM, response) and document:
            return Refused(response.status_code, document)
        said = f"{self.address} answers {response.status_code} {response.reason_phrase}"
        if response.is_redirect or response.status_code in LEADS_ELSEWHERE:
            return NotTheService(f"{said}: it is not letta-lineage.")
        return Refused(response.status_code, {**document, "detail": f"{said}."})

    def _not_the_service(self) -> NotTheService:
        return NotTheService(f"{self.address} is not letta-lineage.")

    def _unreachable(self, error: httpx.RequestError, what: str) -> Unreachable:
        """Return what to raise: something answered where it is no matter of the transport."""
        if not isinstance(error, httpx.TransportError):
            return self._not_the_service()
        return Unreachable(f"{self._http.base_url} {what} ({type(error).__name__}).")


def _usable(url: str) -> httpx.URL:
    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise NotConfigured(f"{URL} is {url!r}: this is not a URL ({error}).") from error
    if read.scheme not in {"http", "https"} or not read.host:
        raise NotConfigured(f"{URL} is {url!r}: it begins with http:// or https:// and a host.")
    if read.port is not None and read.port > LAST_PORT:
        raise NotConfigured(f"{URL} is {url!r}: there is no port above {LAST_PORT}.")
    return read


def _attempts(retry: Callable[[BaseException], bool]) -> Retrying:
    return Retrying(
        retry=retry_if_exception(retry),
        stop=stop_after_attempt(ATTEMPTS),
        wait=lambda state: BACKOFF.pause_s(state.attempt_number),
        reraise=True,
    )


def _was_not_sent(error: BaseException) -> bool:
    return isinstance(error, Unreachable) and isinstance(error.__cause__, httpx.ConnectError)


def _chunks(file: IO[bytes], advance: Advance) -> Iterator[bytes]:
    while chunk := file.read(STEP_BYTES):
        yield chunk
        advance(len(chunk))


def _length(response: httpx.Response) -> int | None:
    length = response.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None


def _passes(error: BaseException) -> bool:
    """Tell whether a repeat may go well, of a call that has the same effect once or twice."""
    if isinstance(error, Refused):
        return error.status in PASSING
    return isinstance(error, Unreachable) and not isinstance(error, NotTheService)


def _document(response: httpx.Response) -> Mapping[str, Any]:
    """Return the JSON object that was answered, an empty one where it was something else."""
    try:
        document = response.json()
    except NOT_JSON:
        return {}
    return document if isinstance(document, dict) else {}


def _is(media_type: str, response: httpx.Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.startswith(media_type)
