"""What the tests of notes, days and movements start from."""

import pytest

from tests.support.client import Api, answer
from tests.support.tree import unique_checkpoint


@pytest.fixture
def checkpoint(api: Api) -> str:
    """A checkpoint of the test's own, without nodes."""
    name = unique_checkpoint()
    answer(api.checkpoint(name))
    return name
