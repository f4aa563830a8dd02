"""Every error has its problem, every problem its page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.api.problems import PROBLEMS, all_problems, problem_of
from app.lineage.errors import LineageError
from tests.conftest import StartService
from tests.support.client import Api, answer
from tests.support.tree import Tree, grow_tree, unique_checkpoint

DOCS = Path(__file__).parents[2] / "docs" / "problems.md"


def below(kind: type[LineageError]) -> Iterator[type[LineageError]]:
    for child in kind.__subclasses__():
        yield child
        yield from below(child)


def test_every_error_of_the_rules_and_of_http_has_a_problem() -> None:
    for kind in below(LineageError):
        assert kind.slug() in all_problems(), kind


def test_no_two_problems_share_a_name() -> None:
    assert len({kind.slug() for kind in PROBLEMS}) == len(PROBLEMS)
    assert all(problem_of(kind.__new__(kind)) is problem for kind, problem in PROBLEMS.items())


def test_the_page_of_problems_tells_of_each_as_it_is() -> None:
    rows = {line for line in DOCS.read_text().splitlines() if line.startswith("| `")}

    assert rows == {
        f"| `{slug}` | {kind.status} | {kind.title} | {kind.remedy} |"
        for slug, kind in all_problems().items()
    }


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_each_type_can_be_asked_for(api: Api) -> None:
    for slug, kind in all_problems().items():
        told = answer(api.request("GET", f"/problems/{slug}"))
        assert (told["status"], told["remedy"]) == (kind.status, kind.remedy)
    assert api.request("GET", "/problems/none-such").status_code == 404


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_name_in_a_path_that_could_be_an_id_is_the_name(tree: Tree, api: Api) -> None:
    wrong = api.request("DELETE", f"/checkpoints/{tree.checkpoint}/archival/search")

    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_wrong_method_and_a_path_of_nothing_are_problems_too(tree: Tree, api: Api) -> None:
    wrong = api.request("DELETE", f"/nodes/{tree['a']}")
    nothing = api.request("GET", "/nothing/here")

    assert (wrong.status_code, wrong.json()["type"]) == (405, "/problems/method-not-allowed")
    assert "GET" in wrong.headers["Allow"]
    assert (nothing.status_code, nothing.json()["type"]) == (404, "/problems/unknown-path")
    for response in (wrong, nothing):
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["request_id"] == response.headers["X-Request-Id"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_bug_is_a_500_that_tells_no_more_than_where_to_look(
    start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start_service()
    ledger = service.app.state.services.ledger

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("SELECT secret FROM /var/lib/table")

    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        for method in ("read", "write", "append"):
            monkeypatch.setattr(ledger, method, fail)
        for response in (
            api.checkpoint("exp-bug"),
            api.get_checkpoint(tree.checkpoint),
            api.node(tree.checkpoint, "x"),
            api.entries(tree["root"]),
            api.write(tree["root"], "x"),
            api.trace_step(tree.checkpoint, "x"),
            api.core_memory(tree.checkpoint),
            api.reindex(tree.checkpoint),
        ):
            assert response.status_code == 500
            assert response.json()["type"] == "/problems/internal-error"
            assert response.json()["request_id"] == response.headers["X-Request-Id"]
            assert not any(word in response.text for word in ("secret", "SELECT", "Traceback"))
        monkeypatch.undo()
        assert api.get_checkpoint(tree.checkpoint).status_code == 200


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("sent", "kept"), [("run-7.worker_3", True), ("a b", False), ("x" * 65, False)]
)
def test_a_harmless_request_id_is_taken_over(api: Api, sent: str, *, kept: bool) -> None:
    response = api.request("GET", "/healthz", headers={"X-Request-Id": sent})

    assert (response.headers["X-Request-Id"] == sent) is kept
