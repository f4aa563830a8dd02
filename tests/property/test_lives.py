"""The service against the plain model, on both databases."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import StartService
from tests.property.machine import lives_in
from tests.property.world import World

# No deadline and no example database: a slow machine is no failure, and nothing is left behind.
COMMON = settings(
    deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def world(start_service: StartService) -> Iterator[World]:
    world = World(start_service)
    yield world
    world.close()


def test_a_few_lives_are_as_the_model_says(world: World) -> None:
    # The same lives every time: the fast suite fails for a change and not for luck.
    few = settings(
        COMMON, max_examples=8, stateful_step_count=40, derandomize=True, phases=[Phase.generate]
    )
    run_state_machine_as_test(lives_in(world), settings=few)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_thousand_steps_are_as_the_model_says(world: World) -> None:
    some = settings(COMMON, max_examples=20, stateful_step_count=50)

    while world.steps < 2_000:
        run_state_machine_as_test(lives_in(world), settings=some)
