"""The service against the plain model, on both databases."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import ArchiveKind, StartService
from tests.property.machine import lives_in
from tests.property.world import World
from tests.support.client import Json
from tests.support.examples import NEW, SAME_AND_LONG


@pytest.fixture
def world(start_service: StartService, archive_settings: Json) -> Iterator[World]:
    world = World(start_service, archive_settings)
    yield world
    world.close()


def test_a_few_lives_are_as_the_model_says(world: World, archive: ArchiveKind) -> None:
    # Each write waits for Letta, which takes 0.1 s.
    lives, steps = (8, 40) if archive == "embedded" else (4, 30)
    few = settings(SAME_AND_LONG, max_examples=lives, stateful_step_count=steps)
    run_state_machine_as_test(lives_in(world), settings=few)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_steps_are_as_the_model_says(world: World, archive: ArchiveKind) -> None:
    some = settings(NEW, max_examples=20, stateful_step_count=50)
    enough = 2_000 if archive == "embedded" else 200

    while world.steps < enough:
        run_state_machine_as_test(lives_in(world), settings=some)
