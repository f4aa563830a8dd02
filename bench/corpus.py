"""Entry texts and queries, the same on every machine and in every run."""

import random
from collections.abc import Iterator
from pathlib import Path

# About as long as what a worker writes down after a step.
TEXT_CHARACTERS = 300
QUERIES = 200

# Of the texts' words, one in twenty is a number instead.
NUMBERS = 0.05

_WORDS = Path(__file__).with_name("words.txt").read_text().split()


def texts(*, seed: int) -> Iterator[str]:
    """Yield texts of about TEXT_CHARACTERS characters without end."""
    rng = random.Random(seed)
    while True:
        words: list[str] = [f"Step {rng.randrange(100_000)}:"]
        length = len(words[0])
        while length < TEXT_CHARACTERS:
            word = rng.choice(_WORDS) if rng.random() >= NUMBERS else f"{rng.random():.4f}"
            words.append(word)
            length += len(word) + 1
        yield " ".join(words)


def queries() -> list[str]:
    """Return QUERIES different questions of five to nine words."""
    rng = random.Random(20_000)
    return [" ".join(rng.choices(_WORDS, k=rng.randint(5, 9))) for _ in range(QUERIES)]
