"""Refusals arrive as errors of their kind, with the whole problem document."""

import math
import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from app.api.problems import all_problems
from app.client import (
    InvalidInput,
    NodeSealed,
    Problem,
    Refused,
    ScopeViolation,
    TooLarge,
    UnknownCheckpoint,
)
from app.client.errors import KINDS, problem_of
from tests.client.conftest import NewWorker
from tests.support.client import answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, unique_checkpoint


def test_an_error_carries_the_problem_document(
    new_worker: NewWorker, service: InProcessService, tree: Tree
) -> None:
    worker = new_worker(service.base_url, checkpoint=tree.checkpoint, current_node="a1")

    with pytest.raises(ScopeViolation) as caught:
        list(worker.get_node_memory("b"))

    refused = caught.value
    assert isinstance(refused, Refused)
    assert (refused.status, refused.slug) == (403, "scope-violation")
    assert refused.title == "Outside of what the claim may read"
    assert str(refused) == refused.detail == refused.document["detail"]
    assert refused.extra == {"outside": [tree["b"]]}
    assert refused.document["request_id"]


def test_a_worker_tells_kinds_apart(
    new_worker: NewWorker, service: InProcessService, tree: Tree
) -> None:
    worker = new_worker(service.base_url, checkpoint=tree.checkpoint, current_node="a")
    lost = new_worker(service.base_url, checkpoint=unique_checkpoint(), current_node="a")

    with pytest.raises(TooLarge) as large:
        worker.add_memory("x" * 40_000)
    with pytest.raises(UnknownCheckpoint):
        lost.get_experiment_context()
    answer(tree.api.seal(tree["a"]))
    with pytest.raises(NodeSealed):
        worker.add_memory("late")

    assert large.value.extra["limit"] == 32_768


@pytest.mark.parametrize(
    ("text", "metadata"),
    [("x", {"loss": math.nan}), ("x", {"loss": math.inf}), ("cut \ud83d", {}), ("nul \0", {})],
    ids=["nan", "infinity", "surrogate", "nul"],
)
def test_what_json_cannot_hold_is_refused_by_the_service_with_its_place(
    text: str,
    metadata: dict[str, float],
    new_worker: NewWorker,
    service: InProcessService,
    tree: Tree,
) -> None:
    worker = new_worker(service.base_url, checkpoint=tree.checkpoint, current_node="a")

    with pytest.raises(InvalidInput) as refused:
        worker.add_memory(text, metadata)

    assert refused.value.extra["errors"]


def test_every_kind_that_has_a_class_is_one_of_the_services() -> None:
    assert set(KINDS) <= set(all_problems())


def test_an_error_comes_home_from_another_process() -> None:
    document = {"type": "/problems/scope-violation", "detail": "no", "outside": ["exp1.b"]}
    error = ScopeViolation(403, document, 2.0)

    came = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)

    assert isinstance(came, ScopeViolation)
    assert (came.status, came.document, came.retry_after_s) == (403, document, 2.0)


def test_a_proxys_refusal_is_told_by_its_status() -> None:
    refused = problem_of(httpx.Response(413, text="<html>"))

    assert type(refused) is Problem
    assert (str(refused), refused.slug) == ("413 Request Entity Too Large", "")


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("soon", 0, 0),
        ("-1", 0, 0),
    ],
)
def test_a_wait_may_be_given_in_seconds_or_as_a_date(value: str, least: int, most: int) -> None:
    response = httpx.Response(503, headers={"Retry-After": value})

    assert least <= problem_of(response).retry_after_s <= most


def test_a_date_to_come_is_a_wait_until_then() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    response = httpx.Response(503, headers={"Retry-After": date})

    assert 3_000 <= problem_of(response).retry_after_s <= 3_600
