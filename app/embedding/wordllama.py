"""Embeddings computed in this process by wordllama's static model, its steps written out.

Two files of the wordllama distribution are read and its package is never imported: importing it
sets up the root logger, loads `requests` and takes 145 ms, and its loader looks for the tokenizer
in a folder that does not exist and then asks the network. Read directly, no code that could open
a connection is ever loaded, and the start costs 0.15 s, NumPy included.

The steps are wordllama's own: tokenise without special tokens, add up the rows of the token ids,
scale to length 1 (wordllama divides by their number first, which only a mean needs). Their cost
for one text not seen before, in µs, on two cores (Python 3.11, NumPy 2.4, tokenizers 0.23):

    characters                     34    94   189   387   a batch of 1,000 of 300, each
    wordllama's embed(norm=True)   29    46    71   120   94
    here                           15    25    39    71   43

What differs, and why:

- Each text is summed over its own tokens alone, so a row depends on nothing but its text. wordllama
  pads every text to the longest of its batch and multiplies by a mask. Its row of a text without
  tokens is NaN; here it is zeros.
- Sums are taken in blocks of 512 tokens: a text of 32 KiB needs 0.5 MiB instead of 17, and is off
  the exact sum by 2e-8 a coordinate, where one pass in float32 is off by 4e-6. Texts of up to
  512 tokens equal wordllama's within 1e-7, those of 8,000 within 1e-6.
- The tokenizer keeps no cache. It has no pre-tokenizer, so it would cache whole texts, which seldom
  come again: 43 MiB after 10,000 texts of 120 characters, to save 4 µs on one that does.
- `encode_batch_fast` even for one text: `encode` holds the interpreter lock throughout (11 ms for
  32 KiB, which would stall the event loop from any thread) and computes offsets nobody reads.

Resident: 31 MiB of weights (32,000 x 256, widened to float32 once; NumPy takes 65 µs to widen the
float16 rows of 187 tokens and 10 to add them up) and 16 MiB of tokenizer.
"""

import asyncio
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from typing import Self

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from app.embedding.port import Vectors

_MODEL = "wordllama-l2-supercat-256"
_WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
_TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"

_BLOCK_TOKENS = 512

# About a millisecond: 4 KiB took from 0.2 (Japanese) over 0.6 (English) to 1.1 ms (blanks), and a
# text of one letter 5 µs, as much as 24 bytes.
_INLINE_COST = 4096
_TEXT_COST = 24

# Tokenised at once: enough for both cores, and few enough that freeing the encodings, which needs
# the interpreter lock, holds up the event loop for 1 ms (27 ms were seen at four times as much).
_ENCODE_BYTES = 64 * 1024


class WordLlamaEmbedder:
    """The embedder that needs nothing beside this process."""

    model = _MODEL
    dimensions = 256
    local = True

    def __init__(self, tokenizer: Tokenizer, weights: Vectors) -> None:
        """Take a tokenizer that neither pads nor truncates, and one row of weights for each id."""
        self._tokenizer = tokenizer
        self._weights = weights

    @classmethod
    def load(cls) -> Self:
        """Read the model from the files of the installed wordllama distribution."""
        installed = distribution("wordllama")
        tokenizer = Tokenizer.from_file(str(installed.locate_file(_TOKENIZER)))
        # The public way, `cache_capacity`, is an argument of a model built token by token.
        tokenizer.model._resize_cache(0)  # noqa: SLF001
        weights = load_file(str(installed.locate_file(_WEIGHTS)))["embedding.weight"]
        return cls(tokenizer, weights.astype(np.float32))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row a text, of length 1, or of zeros where the text has no token.

        The row of a text is the same to the last bit whatever else is in `texts`. Only the empty
        text has no token: what is not in the vocabulary is spelt in bytes, which are. Work of more
        than about a millisecond is done in a thread.
        """
        if sum(_cost(text) for text in texts) <= _INLINE_COST:
            return self._rows(texts)
        return await asyncio.to_thread(self._rows, texts)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _rows(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        encodings = (
            encoding
            for part in _parts(texts)
            for encoding in self._tokenizer.encode_batch_fast(part, add_special_tokens=False)
        )
        for row, encoding in zip(rows, encodings, strict=True):
            if ids := encoding.ids:
                self._direction(ids, out=row)
        return rows

    def _direction(self, ids: list[int], *, out: Vectors) -> None:
        total = self._sum(ids[:_BLOCK_TOKENS])
        for start in range(_BLOCK_TOKENS, len(ids), _BLOCK_TOKENS):
            total += self._sum(ids[start : start + _BLOCK_TOKENS])
        # Not a BLAS product: its order of additions may depend on where in memory the row lies.
        length = np.sqrt(np.add.reduce(np.square(total)))
        if length > 0:
            np.divide(total, length, out=out)

    def _sum(self, ids: list[int]) -> Vectors:
        total: Vectors = np.add.reduce(self._weights.take(ids, axis=0), axis=0)
        return total


def _cost(text: str) -> int:
    """Return a text's share of `_INLINE_COST`, in bytes."""
    return len(text.encode()) + _TEXT_COST


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split `texts`, in order, so that the encodings of a part stay small."""
    part: list[str] = []
    room = _ENCODE_BYTES
    for text in texts:
        size = len(text.encode())
        if part and size > room:
            yield part
            part, room = [], _ENCODE_BYTES
        part.append(text)
        room -= size
    if part:
        yield part
