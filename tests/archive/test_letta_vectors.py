"""What Letta stores of a text is taken for its vector only where it is one."""

import numpy as np
import pytest

from app.archive.letta.embeddings import Embedding, Unsound
from app.archive.port import Vector

DIMENSIONS = 16
PADDED = 4096

EMBEDDING = Embedding.of_endpoint("http://127.0.0.1:8000/v1", "a model", DIMENSIONS)


def unit(length: int) -> Vector:
    """A vector of length 1 with no zero in it."""
    numbers = np.arange(1.0, length + 1)
    vector: Vector = (numbers / np.sqrt((numbers**2).sum())).astype(np.float32)
    return vector


def padded(vector: Vector) -> list[float]:
    """The vector as Letta returns it: with zeros up to the width of its column."""
    return [*vector.tolist(), *[0.0] * (PADDED - len(vector))]


def test_a_vector_is_cut_to_the_models_dimensions_and_no_bit_of_it_differs() -> None:
    vector = unit(DIMENSIONS)

    assert EMBEDDING.vector(padded(vector)).tobytes() == vector.tobytes()


def test_a_vector_that_letta_did_not_pad_is_taken_as_it_is() -> None:
    vector = unit(DIMENSIONS)

    assert EMBEDDING.vector(vector.tolist()).tobytes() == vector.tobytes()


def test_a_vector_of_another_length_than_one_is_scaled_to_it() -> None:
    vector = EMBEDDING.vector(padded(unit(DIMENSIONS) * 7))

    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)
    assert vector == pytest.approx(unit(DIMENSIONS), abs=1e-6)


def test_a_vector_of_zeros_is_returned_as_it_is() -> None:
    vector = EMBEDDING.vector([0.0] * PADDED)

    assert vector.shape == (DIMENSIONS,)
    assert not vector.any()


def test_a_vector_that_ends_in_one_zero_is_no_shorter_vector() -> None:
    vector = unit(DIMENSIONS)
    vector[-1] = 0.0

    assert EMBEDDING.vector(padded(vector)).shape == (DIMENSIONS,)


def test_no_vector_is_unsound() -> None:
    with pytest.raises(Unsound, match="no vector"):
        EMBEDDING.vector(None)


@pytest.mark.parametrize("length", [1, DIMENSIONS - 9, DIMENSIONS - 8])
def test_a_shorter_models_vector_that_letta_padded_is_unsound(length: int) -> None:
    with pytest.raises(Unsound, match=f"fewer than {DIMENSIONS} dimensions"):
        EMBEDDING.vector(padded(unit(length)))


@pytest.mark.parametrize("length", [0, 1, DIMENSIONS - 1])
def test_a_shorter_vector_that_letta_did_not_pad_is_unsound(length: int) -> None:
    with pytest.raises(Unsound, match=f"not {DIMENSIONS} dimensions"):
        EMBEDDING.vector(unit(length).tolist())


@pytest.mark.parametrize("length", [DIMENSIONS + 1, PADDED])
def test_a_longer_models_vector_is_unsound(length: int) -> None:
    with pytest.raises(Unsound, match=f"not {DIMENSIONS} dimensions"):
        EMBEDDING.vector(padded(unit(length)))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 1e39])
@pytest.mark.parametrize("place", [0, DIMENSIONS - 1, DIMENSIONS, PADDED - 1])
def test_a_number_that_is_not_finite_is_unsound_wherever_it_stands(
    number: float, place: int
) -> None:
    numbers = padded(unit(DIMENSIONS))
    numbers[place] = number

    with pytest.raises(Unsound, match="not finite"):
        EMBEDDING.vector(numbers)
