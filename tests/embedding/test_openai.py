"""The embedder behind an HTTP endpoint, against a real server that misbehaves on request."""

import asyncio
import gzip
import json
import math
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import AsyncRetrying, RetryCallState
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable

from app.embedding.openai import OpenAIEmbedder, _Passing, _seconds
from app.embedding.port import Embedder, EmbedderRefused, EmbedderUnavailable
from tests.embedding import endpoint as answers
from tests.embedding.endpoint import Answer, Endpoint, Request
from tests.support.ports import LOOPBACK, port_of, reserve_port

KEY = "sk-very-secret"
ECHO = "a line of the endpoint's own"


def vector_of(text: str) -> list[float]:
    """A vector that tells which text it belongs to."""
    return [float(len(text)), 3.0, 4.0]


def direction_of(text: str) -> list[float]:
    vector = vector_of(text)
    return [number / math.hypot(*vector) for number in vector]


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with Endpoint(otherwise=answers.embeddings(vector_of)) as running:
        yield running


@pytest.fixture
def endpoint(server: Endpoint) -> Endpoint:
    """The server with an empty script; it follows the contract."""
    server.begin(otherwise=answers.embeddings(vector_of))
    return server


@pytest.fixture
async def embedder(endpoint: Endpoint) -> AsyncIterator[OpenAIEmbedder]:
    """An embedder with the key, that hardly waits before it asks again."""
    embedder = OpenAIEmbedder(
        endpoint.url, "some-model", dimensions=3, api_key=KEY, first_wait_s=0.001
    )
    yield embedder
    await embedder.close()


async def test_it_is_an_embedder(embedder: OpenAIEmbedder) -> None:
    port: Embedder = embedder

    assert (port.model, port.dimensions, port.local) == ("some-model", 3, False)


async def test_a_request_is_what_the_contract_says(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    await embedder.embed(["one", "評価"])

    (request,) = endpoint.requests
    assert request.path == f"{endpoint.path}/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "some-model",
        "input": ["one", "評価"],
        "encoding_format": "float",
    }


async def test_without_a_key_none_is_sent(endpoint: Endpoint) -> None:
    embedder = OpenAIEmbedder(endpoint.url, "some-model", dimensions=3)
    await embedder.embed(["one"])
    await embedder.close()

    assert "authorization" not in endpoint.requests[0].headers


async def test_rows_are_float32_of_length_one(embedder: OpenAIEmbedder) -> None:
    rows = await embedder.embed(["one", "three"])

    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [direction_of("one"), direction_of("three")], atol=1e-7)


async def test_vectors_are_matched_by_index(embedder: OpenAIEmbedder, endpoint: Endpoint) -> None:
    endpoint.script.append(
        answers.data(
            answers.item(2, [0, 0, 1]), answers.item(0, [1, 0, 0]), answers.item(1, [0, 1, 0])
        )
    )

    np.testing.assert_array_equal(await embedder.embed(["a", "b", "c"]), np.eye(3))


async def test_a_zero_vector_stays_zero(embedder: OpenAIEmbedder, endpoint: Endpoint) -> None:
    endpoint.script.append(answers.data(answers.item(0, [0, 0, 0])))

    np.testing.assert_array_equal(await embedder.embed(["?"]), [[0, 0, 0]])


async def test_a_tiny_and_a_huge_vector_get_length_one(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(
        answers.data(answers.item(0, [1e-44, 0, 0]), answers.item(1, [0, 1e38, 1e38]))
    )

    np.testing.assert_allclose(
        await embedder.embed(["tiny", "huge"]), [[1, 0, 0], [0, 0.5**0.5, 0.5**0.5]], atol=1e-6
    )


async def test_no_texts_ask_nothing(embedder: OpenAIEmbedder, endpoint: Endpoint) -> None:
    assert (await embedder.embed([])).shape == (0, 3)
    assert endpoint.requests == []


async def test_many_texts_go_in_requests_of_128_and_come_back_in_order(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    texts = ["x" * length for length in range(1, 301)]

    rows = await embedder.embed(texts)

    assert sorted(len(request.texts) for request in endpoint.requests) == [44, 128, 128]
    np.testing.assert_allclose(rows, [direction_of(text) for text in texts], atol=1e-6)


async def test_long_texts_go_in_requests_of_256_kib(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    await embedder.embed(["あ" * 30_000] * 5 + ["x" * 300_000])

    sizes = [sum(len(text.encode()) for text in request.texts) for request in endpoint.requests]
    assert sorted(sizes) == [90_000, 180_000, 180_000, 300_000]


async def test_wide_vectors_go_in_answers_of_65536_numbers(endpoint: Endpoint) -> None:
    endpoint.otherwise = answers.embeddings(lambda _: [1.0] * 3_072)
    embedder = OpenAIEmbedder(endpoint.url, "wide", dimensions=3_072)
    await embedder.embed(["x"] * 30)
    await embedder.close()

    assert sorted(len(request.texts) for request in endpoint.requests) == [9, 21]


async def test_requests_at_once_are_bounded(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = OpenAIEmbedder(endpoint.url, "some-model", dimensions=3, concurrency=2)
    ask = embedder._ask
    at_once: list[int] = []
    open_now = 0

    async def ask_and_count(texts: list[str]) -> bytes:
        nonlocal open_now
        open_now += 1
        at_once.append(open_now)
        body = await ask(texts)
        open_now -= 1
        return body

    monkeypatch.setattr(embedder, "_ask", ask_and_count)
    await embedder.embed(["x"] * 128 * 6)
    await embedder.close()

    assert len(at_once) == 6
    assert max(at_once) == 2


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_failure_that_may_pass_is_tried_again(
    status: int, embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.extend([answers.body(ECHO, status=status)] * 2)

    np.testing.assert_allclose(await embedder.embed(["one"]), [direction_of("one")], atol=1e-7)
    assert len(endpoint.requests) == 3


async def test_a_broken_connection_is_tried_again(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.cut_short('{"data": ['))

    np.testing.assert_allclose(await embedder.embed(["one"]), [direction_of("one")], atol=1e-7)


async def test_a_silent_endpoint_is_tried_again(endpoint: Endpoint) -> None:
    endpoint.script.append(answers.silence)
    embedder = OpenAIEmbedder(
        endpoint.url, "some-model", dimensions=3, timeout_s=0.5, first_wait_s=0.001
    )

    np.testing.assert_allclose(await embedder.embed(["one"]), [direction_of("one")], atol=1e-7)
    await embedder.close()


async def failure_of(embedder: OpenAIEmbedder, *texts: str) -> EmbedderUnavailable:
    """Return the error; nothing of the key, the texts or the endpoint's words may be in it."""
    with pytest.raises(EmbedderUnavailable) as caught:
        await embedder.embed(texts or ["one"])
    shown = "".join([caught.value.reason, str(caught.value), repr(caught.value)])
    for secret in (KEY, ECHO):
        assert secret not in shown
    assert caught.value.__cause__ is None
    return caught.value


async def test_after_four_attempts_it_says_so(embedder: OpenAIEmbedder, endpoint: Endpoint) -> None:
    endpoint.otherwise = answers.body(ECHO, status=503)

    assert (await failure_of(embedder)).reason == "the embedding endpoint answered 503"
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize("stall", [answers.silence, answers.headers_then_silence])
async def test_a_stalling_endpoint_is_given_up(stall: Answer, endpoint: Endpoint) -> None:
    endpoint.otherwise = stall
    embedder = OpenAIEmbedder(
        endpoint.url, "some-model", dimensions=3, timeout_s=0.1, first_wait_s=0.001
    )

    failure = await failure_of(embedder)
    await embedder.close()

    assert failure.reason == "the embedding endpoint did not answer within 0.1 s"


async def test_all_attempts_together_have_a_limit(endpoint: Endpoint) -> None:
    """The first attempt alone would be allowed an hour."""
    endpoint.otherwise = answers.silence
    embedder = OpenAIEmbedder(
        endpoint.url, "some-model", dimensions=3, timeout_s=3600, give_up_s=0.1
    )

    failure = await failure_of(embedder)
    await embedder.close()

    assert failure.reason == "the embedding endpoint did not answer within 0.1 s"


async def test_a_longer_retry_after_than_we_may_wait_is_handed_on(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.body(ECHO, status=429, headers={"retry-after": "120"}))

    failure = await failure_of(embedder)

    assert (failure.reason, failure.retry_after_s) == (
        "the embedding endpoint answered 429",
        120.0,
    )
    assert len(endpoint.requests) == 1


async def test_a_retry_after_is_waited_for_and_otherwise_the_waits_grow(
    embedder: OpenAIEmbedder,
) -> None:
    def wait_s(attempt: int, failure: EmbedderUnavailable) -> float:
        state = RetryCallState(AsyncRetrying(), None, (), {})
        state.attempt_number = attempt
        state.set_exception((type(failure), failure, None))
        return embedder._wait_s(state)

    assert wait_s(1, _Passing("busy", hint_s=7.0)) == 7.0
    assert 0.0005 <= wait_s(1, _Passing("busy")) <= 0.001
    assert 0.002 <= wait_s(3, _Passing("busy")) <= 0.004


def test_a_retry_after_may_be_a_date() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)

    assert 0 < _seconds(in_a_minute) <= 60
    assert _seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert _seconds("Wed, 21 Oct 2015 07:28:00") == 0.0


@given(value=st.one_of(st.text(), st.integers().map(str)))
def test_any_retry_after_is_a_wait_of_at_most_an_hour(value: str) -> None:
    assert 0 <= _seconds(value) <= 3600


async def test_an_endpoint_that_is_not_there_cannot_be_reached() -> None:
    with reserve_port() as nobody:
        embedder = OpenAIEmbedder(
            f"http://{LOOPBACK}:{port_of(nobody)}/v1",
            "some-model",
            dimensions=3,
            api_key=KEY,
            first_wait_s=0.001,
        )
        failure = await failure_of(embedder)
        await embedder.close()

    assert failure.reason == "the embedding endpoint cannot be reached"


async def test_a_key_that_no_header_can_carry_is_not_shown(endpoint: Endpoint) -> None:
    embedder = OpenAIEmbedder(
        endpoint.url, "some-model", dimensions=3, api_key=f"{KEY}\n", first_wait_s=0.001
    )
    failure = await failure_of(embedder)
    await embedder.close()

    assert failure.reason == (
        "the exchange with the embedding endpoint broke off (LocalProtocolError)"
    )


async def test_a_body_that_is_always_cut_is_a_broken_exchange(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.otherwise = answers.cut_short(json.dumps({"data": [answers.item(0, [1, 0, 0])]}))

    assert (await failure_of(embedder)).reason == (
        "the exchange with the embedding endpoint broke off (RemoteProtocolError)"
    )


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_with_the_key(
    status: int, embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    with Endpoint(otherwise=answers.embeddings(vector_of)) as elsewhere:
        location = f"{elsewhere.url}/embeddings"
        endpoint.otherwise = answers.body("", status=status, headers={"location": location})

        failure = await failure_of(embedder)

        assert elsewhere.requests == []
    assert failure.reason == (
        f"the embedding endpoint redirects ({status}); redirects are not followed"
    )
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_not_accepted_is_not_tried_again(
    status: int, embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.body(f"{ECHO} {KEY}", status=status))

    failure = await failure_of(embedder)

    assert failure.reason == f"the embedding endpoint does not accept our key ({status})"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [204, 404, 405])
async def test_another_status_is_named(
    status: int, embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.body("" if status == 204 else ECHO, status=status))

    assert (await failure_of(embedder)).reason == f"the embedding endpoint answered {status}"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_texts_that_are_not_taken_are_refused(
    status: int, embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.body(f"{ECHO} {KEY}", status=status))

    with pytest.raises(EmbedderRefused) as caught:
        await embedder.embed(["a text too long for the model"])

    assert caught.value.reason == f"the embedding endpoint does not take the texts ({status})"
    assert len(endpoint.requests) == 1


NOT_EMBEDDINGS = {
    "html": f"<html>{ECHO}</html>",
    "nothing": "",
    "null": "null",
    "empty object": "{}",
    "error in a 200": json.dumps({"error": {"message": ECHO}}),
    "data is null": '{"data": null}',
    "half": '{"data": [{"index": 0, "embedding": [1.0,',
    "no embedding": '{"data": [{"index": 0}]}',
    "embedding is null": '{"data": [{"index": 0, "embedding": null}]}',
    "a number is null": '{"data": [{"index": 0, "embedding": [1, null, 3]}]}',
    "base64": '{"data": [{"index": 0, "embedding": "AACAPwAAAAAAAAAA"}]}',
    "no index": '{"data": [{"embedding": [1, 0, 0]}]}',
    "not utf-8": '{"data": "\udcff"}',
}


@pytest.mark.parametrize("text", NOT_EMBEDDINGS.values(), ids=NOT_EMBEDDINGS.keys())
async def test_what_is_not_embeddings_is_refused(
    text: str, embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.body(text))

    assert (await failure_of(embedder)).reason == (
        "the embedding endpoint answered 200 with something else than embeddings"
    )
    assert len(endpoint.requests) == 1


WRONG_VECTORS = {
    "too few": ([answers.item(0, [1, 0, 0])], "2 texts with 1 vectors, 1 of which"),
    "none": ([], "2 texts with 0 vectors, 0 of which"),
    "too many": (
        [answers.item(index, [1, 0, 0]) for index in range(3)],
        "2 texts with 3 vectors, 2 of which",
    ),
    "an index twice": ([answers.item(0, [1, 0, 0])] * 2, "2 texts with 2 vectors, 1 of which"),
    "indexes from 1": (
        [answers.item(1, [1, 0, 0]), answers.item(2, [1, 0, 0])],
        "2 texts with 2 vectors, 1 of which",
    ),
    "a negative index": (
        [answers.item(0, [1, 0, 0]), answers.item(-1, [1, 0, 0])],
        "2 texts with 2 vectors, 1 of which",
    ),
    "too narrow": (
        [answers.item(0, [1, 0, 0]), answers.item(1, [1, 0])],
        "a vector of 2 dimensions, where 3 are configured",
    ),
    "too wide": (
        [answers.item(index, [1, 0, 0, 0]) for index in range(2)],
        "a vector of 4 dimensions, where 3 are configured",
    ),
    "NaN": (
        [answers.item(0, [1, 0, 0]), answers.item(1, [math.nan, 0, 0])],
        "a number that is not finite",
    ),
    "infinite": (
        [answers.item(0, [1, 0, 0]), answers.item(1, [math.inf, 0, 0])],
        "a number that is not finite",
    ),
    "infinite as float32": (
        [answers.item(0, [1, 0, 0]), answers.item(1, [1e300, 0, 0])],
        "a number that is not finite",
    ),
}


@pytest.mark.parametrize(("items", "said"), WRONG_VECTORS.values(), ids=WRONG_VECTORS.keys())
async def test_vectors_that_do_not_fit_are_refused(
    items: list[dict[str, object]], said: str, embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.data(*items))

    assert said in (await failure_of(embedder, "one", "two")).reason


async def test_an_answer_without_end_is_cut_off(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.body(" " * 1_000_000 + "{}"))

    assert (await failure_of(embedder)).reason == (
        "the embedding endpoint answered with more than 65728 bytes"
    )


async def test_a_compressed_answer_is_read(embedder: OpenAIEmbedder, endpoint: Endpoint) -> None:
    async def compressed(
        request: Request, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        text = json.dumps({"data": [answers.item(0, vector_of(request.texts[0]))]})
        await answers.content(gzip.compress(text.encode()), headers={"content-encoding": "gzip"})(
            request, receive, send
        )

    endpoint.script.append(compressed)

    np.testing.assert_allclose(await embedder.embed(["one"]), [direction_of("one")], atol=1e-7)


async def test_an_answer_compressed_wrongly_is_refused(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    endpoint.script.append(answers.body(ECHO, headers={"content-encoding": "gzip"}))

    assert (await failure_of(embedder)).reason == (
        "the embedding endpoint compressed its answer in a way that cannot be undone"
    )


async def test_one_failed_request_fails_the_call_and_drops_the_others(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    """The others get no answer, so each of them would ask four times if it were not dropped."""
    endpoint.script.append(answers.body(ECHO, status=401))
    endpoint.otherwise = answers.silence

    assert "does not accept our key" in (await failure_of(embedder, *["x"] * 128 * 4)).reason
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(endpoint.requests) <= 4


async def test_the_embedder_works_on_after_a_failure(
    embedder: OpenAIEmbedder, endpoint: Endpoint
) -> None:
    """Eight failures would use up the places of four requests if one were kept."""
    for _ in range(8):
        endpoint.script.append(answers.body("null"))
        await failure_of(embedder)

    np.testing.assert_allclose(await embedder.embed(["one"]), [direction_of("one")], atol=1e-7)
