"""The embedder that ships its weights: equal to wordllama, and a function of the text alone."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import wordllama
from hypothesis import given
from hypothesis import strategies as st

from app.embedding.port import Embedder, Vectors
from app.embedding.wordllama import WordLlamaEmbedder

MODEL = WordLlamaEmbedder.load()
REPOSITORY = Path(__file__).parents[2]

# Special tokens, bytes outside the vocabulary and blanks are where tokenisers disagree.
TEXTS = [
    "The learning rate of 3e-4 diverged after 200 steps; halve it below node_A1.",
    "評価は改善した。次は学習率を下げる。",
    "<s>begin</s> and <unk> in the middle",
    "  two blanks before,\ttab,\nnewline, two after  ",
    " ",
    "\u200b",
    "!!! ??? …",
    "😀",
    "e\u0301 and \u00e9",
]

# No surrogates: the service refuses them before anything is embedded.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
batches = st.lists(texts, min_size=1, max_size=12)
places = st.integers(min_value=0, max_value=11)


@pytest.fixture(scope="module")
def original() -> wordllama.WordLlamaInference:
    """wordllama's own inference over the same files."""
    package = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=package, disable_download=True)


def long_text(characters: int) -> str:
    """English-like text whose words do not repeat in order."""
    words = [word for text in TEXTS for word in text.split()]
    picks = np.random.default_rng(7).integers(len(words), size=characters)
    return " ".join(words[pick] for pick in picks)[:characters]


async def rows(*wanted: str) -> Vectors:
    return await MODEL.embed(wanted)


def test_it_is_an_embedder() -> None:
    embedder: Embedder = MODEL

    assert (embedder.model, embedder.dimensions, embedder.local) == (
        "wordllama-l2-supercat-256",
        256,
        True,
    )


def test_every_token_has_a_row_of_weights() -> None:
    assert MODEL._weights.shape == (MODEL._tokenizer.get_vocab_size(), MODEL.dimensions)


@pytest.mark.parametrize("text", [*TEXTS, long_text(1_200)])
async def test_a_text_gets_the_vector_that_wordllama_gives_it(
    text: str, original: wordllama.WordLlamaInference
) -> None:
    np.testing.assert_allclose(await rows(text), original.embed(text, norm=True), rtol=0, atol=1e-6)


@given(text=texts.filter(bool))
async def test_any_text_gets_the_vector_that_wordllama_gives_it(
    text: str, original: wordllama.WordLlamaInference
) -> None:
    np.testing.assert_allclose(await rows(text), original.embed(text, norm=True), rtol=0, atol=1e-6)


async def test_a_long_text_is_embedded_whole_and_summed_exactly() -> None:
    text = long_text(32_768)
    ids = MODEL._tokenizer.encode(text, add_special_tokens=False).ids
    exact = MODEL._weights.astype(np.float64)[ids].sum(axis=0)

    assert len(ids) > 10_000
    np.testing.assert_allclose(
        (await rows(text))[0], exact / np.linalg.norm(exact), rtol=0, atol=2e-7
    )


@given(batch=batches, place=places)
async def test_a_row_is_the_same_bits_alone_and_in_any_batch(batch: list[str], place: int) -> None:
    place %= len(batch)

    alone = await rows(batch[place])
    together = await rows(*batch)

    assert together.dtype == np.float32
    assert together[place].tobytes() == alone[0].tobytes()


async def test_a_row_is_the_same_bits_on_the_event_loop_and_in_a_thread() -> None:
    together = await rows(*TEXTS, *[long_text(20_000 + n) for n in range(8)], *TEXTS)

    for place, text in enumerate(TEXTS):
        alone = (await rows(text))[0].tobytes()
        assert together[place].tobytes() == alone
        assert together[place - len(TEXTS)].tobytes() == alone


@given(batch=batches)
async def test_a_row_has_length_one_or_is_zero(batch: list[str]) -> None:
    lengths = np.linalg.norm((await rows(*batch)).astype(np.float64), axis=1)

    np.testing.assert_allclose(lengths, [1.0 if text else 0.0 for text in batch], atol=1e-6)


async def test_only_the_empty_text_is_a_row_of_zeros() -> None:
    vectors = await rows("", *TEXTS, "a" * 30_000)

    assert vectors.any(axis=1).tolist() == [False] + [True] * (len(TEXTS) + 1)


async def test_tokens_whose_weights_cancel_out_are_a_row_of_zeros() -> None:
    weightless = WordLlamaEmbedder(MODEL._tokenizer, np.zeros_like(MODEL._weights))

    assert not (await weightless.embed(["a text"])).any()


async def test_no_texts_are_no_rows() -> None:
    assert (await rows()).shape == (0, 256)


async def test_a_text_is_nearer_to_its_paraphrase_than_to_another_subject() -> None:
    query, near, far = await rows(
        "the optimizer's step size was too big",
        "training diverged because the learning rate was too large",
        "the invoice was paid in cash at the hotel",
    )

    assert query @ near > query @ far


async def test_long_work_leaves_the_event_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work waits for the loop to answer, which it can only do while it is not the loop."""
    loop = asyncio.get_running_loop()
    turned = threading.Event()
    pooled = WordLlamaEmbedder._direction

    def pool_once_the_loop_has_turned(
        self: WordLlamaEmbedder, ids: list[int], *, out: Vectors
    ) -> None:
        loop.call_soon_threadsafe(turned.set)
        assert turned.wait(timeout=10), "the event loop stood still"
        pooled(self, ids, out=out)

    monkeypatch.setattr(WordLlamaEmbedder, "_direction", pool_once_the_loop_has_turned)

    assert (await rows(long_text(8_000))).any()


async def test_a_short_text_is_embedded_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    pooled = WordLlamaEmbedder._direction

    def note_the_thread(self: WordLlamaEmbedder, ids: list[int], *, out: Vectors) -> None:
        threads.append(threading.current_thread())
        pooled(self, ids, out=out)

    monkeypatch.setattr(WordLlamaEmbedder, "_direction", note_the_thread)
    await rows("a short text", "and another")

    assert threads == [threading.current_thread()] * 2


OFFLINE = """
import sys

def refuse(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.posix_spawn", "os.exec")):
        raise RuntimeError(f"touched the network: {event}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise RuntimeError(f"opened for writing: {arguments[0]}")

sys.addaudithook(refuse)

from app.embedding.wordllama import WordLlamaEmbedder

model = WordLlamaEmbedder.load()
print(model._rows(["a text"]).any())
print(sorted({"httpx", "huggingface_hub", "requests", "wordllama"} & set(sys.modules)))

import socket

try:
    socket.create_connection(("127.0.0.1", 9))
except RuntimeError as refused:
    print(refused)
"""


def test_loading_and_embedding_open_no_connection_and_need_no_home(tmp_path: Path) -> None:
    """The last line shows that the hook would have caught a connection."""
    environment = {"HOME": str(tmp_path / "missing"), "PYTHONPATH": str(REPOSITORY)}

    run = subprocess.run(
        [sys.executable, "-B", "-c", OFFLINE],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        "True",
        "[]",
        "touched the network: socket.getaddrinfo",
    ]
