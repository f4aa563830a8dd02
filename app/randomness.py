"""Random numbers of our own.

The generator of `random` belongs to the whole process: a training script seeds it alike on every
machine, a test freezes it. Ids drawn from it would repeat, and workers would retry in step.
"""

import os
import random

# No secret is drawn from it: those come from `secrets`, at a system call each.
RANDOM = random.Random()  # noqa: S311
os.register_at_fork(after_in_child=RANDOM.seed)


def random_id() -> str:
    """Return 16 hex digits."""
    return f"{RANDOM.getrandbits(64):016x}"
