"""How Hypothesis draws its examples.

The fast suites get the same ones every time: they fail for a change and not for luck. The slow ones
draw new ones, and so does every property under `pytest --hypothesis-profile explore`.
"""

from hypothesis import HealthCheck, Phase, settings

# No deadline and no example database: a slow machine is no failure, and nothing is left behind.
SAME = settings(
    deadline=None,
    database=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
# Where an example takes a service or a disk, making a failing one smaller would take for ever.
SAME_AND_LONG = settings(SAME, phases=[Phase.generate])
NEW = settings(SAME, derandomize=False)
MANY_NEW = settings(NEW, max_examples=3_000)
