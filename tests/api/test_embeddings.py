"""`/v1/embeddings` and `/v1/models` speak OpenAI's contract with this service's own vectors."""

from base64 import b64encode
from typing import Any

import httpx
import numpy as np
import pytest

from app.embedding.wordllama import WordLlamaEmbedder
from tests.conftest import API_KEY, StartService
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import grow_tree, unique_checkpoint

EMBEDDINGS_KEY = "key-of-the-embeddings"
MODEL = WordLlamaEmbedder.model

# What is asked of the embedder alone is asked once: the database has no say in it.
pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder.load()


@pytest.fixture
def guarded(start_service: StartService) -> InProcessService:
    return start_service(api_keys=(API_KEY,), embeddings_key=EMBEDDINGS_KEY)


def embed(api: Api, given: object, **fields: object) -> httpx.Response:
    body = {"input": given, "model": MODEL, **fields}
    return api.request("POST", "/v1/embeddings", json=body)


def vectors(response: httpx.Response) -> list[Any]:
    items = answer(response)["data"]
    assert [item["index"] for item in items] == list(range(len(items)))
    return [item["embedding"] for item in items]


async def test_texts_get_the_vectors_that_searches_rank_with(
    api: Api, embedder: WordLlamaEmbedder
) -> None:
    texts = ["dropout made it worse", "学習率を下げた", "🦊"]

    assert np.array_equal(
        np.array(vectors(embed(api, texts)), np.float32), await embedder.embed(texts)
    )


async def test_one_text_is_a_list_of_one(api: Api, embedder: WordLlamaEmbedder) -> None:
    [vector] = vectors(embed(api, "alone"))

    assert vector == (await embedder.embed(["alone"]))[0].tolist()


async def test_base64_holds_the_same_floats_little_endian(
    api: Api, embedder: WordLlamaEmbedder
) -> None:
    """OpenAI's Python client asks for base64 unless told otherwise, and reads it so."""
    [encoded] = vectors(embed(api, ["as the client asks"], encoding_format="base64"))
    [row] = await embedder.embed(["as the client asks"])

    assert encoded == b64encode(row.astype("<f4").tobytes()).decode()


async def test_as_many_texts_as_a_client_sends_at_once_are_all_embedded_in_order(
    api: Api, embedder: WordLlamaEmbedder
) -> None:
    texts = [f"step {number} lowered the loss" for number in range(2048)]
    got = vectors(embed(api, texts, encoding_format="base64"))
    expected = await embedder.embed(texts)

    assert got == [b64encode(row.tobytes()).decode() for row in expected.astype("<f4")]


def test_the_answer_names_the_model_and_counts_the_bytes_embedded(api: Api) -> None:
    body = answer(embed(api, ["abc", "é"], dimensions=256, user="letta"))

    assert body["model"] == MODEL
    assert body["usage"] == {"prompt_tokens": 5, "total_tokens": 5}


def test_the_list_of_models_names_the_embedder_alone(api: Api) -> None:
    [model] = answer(api.request("GET", "/v1/models"))["data"]

    assert model["id"] == MODEL
    assert model["dimensions"] == 256


@pytest.mark.parametrize(
    ("given", "fields", "place"),
    [
        ([], {}, "input"),
        ("", {}, "input"),
        (["good", ""], {}, "input"),
        ([1, 2, 3], {}, "input"),
        ([[1, 2], [3]], {}, "input"),
        (["text", 1], {}, "input"),
        (None, {}, "input"),
        (["a"] * 2049, {}, "input"),
        ("text", {"dimensions": 128}, "dimensions"),
        ("text", {"model": "another-model"}, "model"),
        ("text", {"encoding_format": "int8"}, "encoding_format"),
        ("text", {"unknown": 1}, "unknown"),
    ],
)
def test_what_cannot_be_embedded_as_asked_is_refused_naming_the_field(
    api: Api, given: object, fields: dict[str, object], place: str
) -> None:
    refused = embed(api, given, **fields)

    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert place in refused.json()["errors"][0]["loc"]


def test_token_ids_are_refused_in_words(api: Api) -> None:
    assert "token ids are not taken" in embed(api, [[1, 2], [3]]).json()["detail"]


def test_a_text_over_the_limit_is_413(api: Api) -> None:
    refused = embed(api, ["short", "a" * (32 * 1024 + 1)])

    assert refused.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    assert refused.json()["limit"] == 32 * 1024


def test_nul_is_refused_naming_its_place(api: Api) -> None:
    refused = embed(api, ["fine", "run 7\0 loss"])

    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert refused.json()["errors"][0]["loc"] == ["body", "input", 1]


@pytest.mark.parametrize("key", [API_KEY, EMBEDDINGS_KEY])
def test_an_api_key_and_the_embeddings_key_both_embed(guarded: InProcessService, key: str) -> None:
    with Api(guarded.base_url, bearer=key) as api:
        assert embed(api, "text").is_success
        assert api.request("GET", "/v1/models").is_success


def test_the_embeddings_key_is_good_for_nothing_else(guarded: InProcessService) -> None:
    with Api(guarded.base_url, bearer=EMBEDDINGS_KEY) as api:
        assert api.checkpoints().status_code == httpx.codes.FORBIDDEN
        assert api.checkpoint("any").status_code == httpx.codes.FORBIDDEN


@pytest.mark.parametrize("bearer", [None, "another"])
def test_without_a_known_key_nothing_is_embedded(
    guarded: InProcessService, bearer: str | None
) -> None:
    with Api(guarded.base_url, bearer=bearer) as api:
        assert embed(api, "text").status_code == httpx.codes.UNAUTHORIZED


def test_a_node_token_does_not_embed(guarded: InProcessService) -> None:
    with Api(guarded.base_url, bearer=API_KEY) as api:
        tree = grow_tree(api, unique_checkpoint())
        token = answer(api.token(tree["a"]))["token"]
    with Api(guarded.base_url, bearer=token) as worker:
        assert embed(worker, "text").status_code == httpx.codes.FORBIDDEN
