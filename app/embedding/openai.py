"""Embeddings from any endpoint that speaks OpenAI's `/v1/embeddings`.

An answer is believed only when it is whole: as many vectors as texts, each with its own index, of
the configured length, every number finite. What failed is told in our own words; neither the key
nor anything the endpoint wrote goes into a reason.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
import numpy as np
from pydantic import BaseModel, ValidationError
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
)

from app.backoff import Backoff
from app.embedding.port import EmbedderRefused, EmbedderUnavailable, Vectors

_TEXTS_PER_REQUEST = 128
_BYTES_PER_REQUEST = 256 * 1024
# Reading an answer holds up the event loop: 64 Ki numbers take 3 ms.
_NUMBERS_PER_ANSWER = 64 * 1024

# A number in JSON has at most 25 characters; the rest is room for indentation and the envelope.
_ANSWER_BYTES_PER_NUMBER = 64
_ANSWER_BYTES_BESIDE = 64 * 1024

_ATTEMPTS = 4
_LONGEST_WAIT_S = 8.0
# Callers hand the wait on to their own clients, and an endpoint may ask for a thousand years.
_LONGEST_HINT_S = 3600.0

_TRANSIENT = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
_TEXTS_AT_FAULT = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
_NOT_ALLOWED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class _Passing(EmbedderUnavailable):
    """A failure that may pass; `hint_s` is how long the endpoint asks us to wait."""

    def __init__(self, reason: str, *, hint_s: float = 0.0) -> None:
        super().__init__(reason, retry_after_s=max(hint_s, 5.0))
        self.hint_s = hint_s


class _Item(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Item]


class OpenAIEmbedder:
    """The embedder behind an HTTP endpoint."""

    local = False

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        dimensions: int,
        api_key: str | None = None,
        timeout_s: float = 10.0,
        give_up_s: float = 30.0,
        first_wait_s: float = 0.25,
        concurrency: int = 4,
    ) -> None:
        """Speak to `{base_url}/embeddings`, in at most `concurrency` requests at once.

        An attempt has `timeout_s` seconds, and a request `give_up_s` for all its attempts and the
        waits between them, which grow from `first_wait_s`.
        """
        self.model = model
        self.dimensions = dimensions
        self._timeout_s = timeout_s
        self._give_up_s = give_up_s
        self._backoff = Backoff(first_wait_s, longest_s=_LONGEST_WAIT_S)
        self._places = asyncio.Semaphore(concurrency)
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
            timeout=timeout_s,
            # A redirect would carry the key and the texts to a host that nobody configured.
            follow_redirects=False,
        )

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row a text, of length 1, or of zeros where the endpoint sent zeros.

        Raises EmbedderRefused where the endpoint blames the texts, else EmbedderUnavailable. Then
        the requests still under way are dropped.
        """
        parts = list(_parts(texts, most=self._texts_per_request()))
        if len(parts) == 1:
            return await self._vectors(parts[0])
        tasks = [asyncio.ensure_future(self._vectors(part)) for part in parts]
        try:
            rows = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return np.concatenate([np.empty((0, self.dimensions), np.float32), *rows])

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _texts_per_request(self) -> int:
        return max(1, min(_TEXTS_PER_REQUEST, _NUMBERS_PER_ANSWER // self.dimensions))

    async def _vectors(self, texts: list[str]) -> Vectors:
        async with self._places:
            body = await self._body(texts)
        return self._checked(body, count=len(texts))

    async def _body(self, texts: list[str]) -> bytes:
        """Return the body of a 200, asking again after failures that may pass."""
        deadline = asyncio.get_running_loop().time() + self._give_up_s
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_Passing),
            wait=self._wait_s,
            stop=stop_after_attempt(_ATTEMPTS) | stop_before_delay(self._give_up_s),
            reraise=True,
        )
        return await retrying(self._attempt, texts, deadline=deadline)

    def _wait_s(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        hint_s = failure.hint_s if isinstance(failure, _Passing) else 0.0
        return max(hint_s, self._backoff.pause_s(state.attempt_number))

    async def _attempt(self, texts: list[str], *, deadline: float) -> bytes:
        allowed_s = min(self._timeout_s, deadline - asyncio.get_running_loop().time())
        try:
            # httpx limits each read; an endpoint that sends a byte a second needs this as well.
            async with asyncio.timeout(allowed_s):
                return await self._ask(texts)
        except (TimeoutError, httpx.TimeoutException):
            raise _Passing(
                f"the embedding endpoint did not answer within {allowed_s:.1f} s"
            ) from None
        except httpx.ConnectError:
            raise _Passing("the embedding endpoint cannot be reached") from None
        except httpx.TransportError as error:
            # Not chained: the text of a protocol error may hold the header with the key.
            raise _Passing(
                f"the exchange with the embedding endpoint broke off ({type(error).__name__})"
            ) from None
        except httpx.DecodingError:
            raise EmbedderUnavailable(
                "the embedding endpoint compressed its answer in a way that cannot be undone"
            ) from None

    async def _ask(self, texts: list[str]) -> bytes:
        question = {"model": self.model, "input": texts, "encoding_format": "float"}
        async with self._client.stream("POST", "embeddings", json=question) as response:
            if response.status_code != HTTPStatus.OK:
                raise _failure(response)
            return await _read(response, limit=self._longest_answer(len(texts)))

    def _longest_answer(self, count: int) -> int:
        return count * self.dimensions * _ANSWER_BYTES_PER_NUMBER + _ANSWER_BYTES_BESIDE

    def _checked(self, body: bytes, *, count: int) -> Vectors:
        """Return the answer's vectors in the order of their indexes, scaled to length 1."""
        try:
            items = _Answer.model_validate_json(body).data
        except ValidationError:
            # Not chained: its text quotes the body.
            raise EmbedderUnavailable(
                "the embedding endpoint answered 200 with something else than embeddings"
            ) from None
        by_index = {item.index: item.embedding for item in items}
        if len(items) != count or by_index.keys() != set(range(count)):
            raise EmbedderUnavailable(
                f"the embedding endpoint answered {count} texts with {len(items)} vectors, "
                f"{len(by_index.keys() & set(range(count)))} of which belong to one of them"
            )
        vectors = [by_index[index] for index in range(count)]
        self._check_dimensions(vectors)
        return _scaled(vectors)

    def _check_dimensions(self, vectors: list[list[float]]) -> None:
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise EmbedderUnavailable(
                    f"the embedding endpoint sent a vector of {len(vector)} dimensions, "
                    f"where {self.dimensions} are configured"
                )


def _scaled(vectors: list[list[float]]) -> Vectors:
    # Lengths are taken in float64, where no square of a float32 overflows or vanishes.
    with np.errstate(over="ignore"):
        rows = np.array(vectors, np.float32).astype(np.float64)
    if not np.isfinite(rows).all():
        raise EmbedderUnavailable("the embedding endpoint sent a number that is not finite")
    lengths = np.sqrt(np.add.reduce(np.square(rows), axis=1, keepdims=True))
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows.astype(np.float32)


def _failure(response: httpx.Response) -> EmbedderUnavailable | EmbedderRefused:
    """Return the error that an answer other than 200 amounts to."""
    status = response.status_code
    if status in _TRANSIENT or response.is_server_error:
        return _Passing(
            f"the embedding endpoint answered {status}",
            hint_s=_seconds(response.headers.get("Retry-After", "")),
        )
    if status in _TEXTS_AT_FAULT:
        return EmbedderRefused(f"the embedding endpoint does not take the texts ({status})")
    if status in _NOT_ALLOWED:
        return EmbedderUnavailable(f"the embedding endpoint does not accept our key ({status})")
    if response.is_redirect:
        return EmbedderUnavailable(
            f"the embedding endpoint redirects ({status}); redirects are not followed"
        )
    return EmbedderUnavailable(f"the embedding endpoint answered {status}")


def _seconds(retry_after: str) -> float:
    """Return a Retry-After, which is seconds or a date, in seconds from now: 0 to an hour."""
    if retry_after.isascii() and retry_after.isdecimal():
        return min(float(retry_after), _LONGEST_HINT_S)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), _LONGEST_HINT_S)


async def _read(response: httpx.Response, *, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limit:
            raise EmbedderUnavailable(
                f"the embedding endpoint answered with more than {limit} bytes"
            )
    return bytes(body)


def _parts(texts: Sequence[str], *, most: int) -> Iterator[list[str]]:
    """Split `texts`, in order, into requests of at most `most` texts and 256 KiB."""
    part: list[str] = []
    room = _BYTES_PER_REQUEST
    for text in texts:
        size = len(text.encode())
        if part and (len(part) == most or size > room):
            yield part
            part, room = [], _BYTES_PER_REQUEST
        part.append(text)
        room -= size
    if part:
        yield part
