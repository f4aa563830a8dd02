"""How long to wait before the next try."""

from dataclasses import dataclass

from app.randomness import RANDOM


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles with each failure, with jitter, so that those who failed at once do not come back so.

    "Equal jitter", half of the interval at random, after Marc Brooker, "Exponential Backoff And
    Jitter", AWS Architecture Blog, 2015.
    """

    first_s: float
    longest_s: float

    def pause_s(self, failures: int) -> float:
        """Return seconds to wait after so many failures in a row, at least one."""
        longest = min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 30))
        return longest * RANDOM.uniform(0.5, 1.0)

    def pause_us(self, failures: int) -> int:
        """Return the same in microseconds."""
        return int(self.pause_s(failures) * 1_000_000)
