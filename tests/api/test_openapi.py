"""The OpenAPI description is whole, and its examples work when pressed in Swagger UI."""

import gzip
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tests.conftest import StartService
from tests.support.client import Api

ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
PROBLEM = "application/problem+json"
SNAPSHOT = gzip.compress(b'{"kind":"react_step","text":"tried it","metadata":{},"ts":1.5}\n')


def operations(api: Api) -> Iterator[tuple[str, str, dict[str, Any]]]:
    document = api.request("GET", "/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


@ONE_DATABASE
def test_every_operation_says_what_it_does_and_what_can_go_wrong(api: Api) -> None:
    names = []
    for method, path, operation in operations(api):
        for word in ("summary", "description", "tags", "operationId"):
            assert operation[word], (method, path, word)
        names.append(operation["operationId"])
        errors = {code: told for code, told in operation["responses"].items() if code >= "4"}
        if path not in {"/healthz", "/readyz"}:
            assert {"401", "422", "500", "503"} <= set(errors), (method, path)
            for code, told in errors.items():
                assert PROBLEM in told["content"], (method, path, code)
                assert told["content"][PROBLEM]["examples"], (method, path, code)
        if "requestBody" in operation:
            assert {"413", "415"} <= set(errors), (method, path)
    assert len(names) == len(set(names))


@ONE_DATABASE
def test_every_operation_with_an_id_in_its_path_says_what_a_malformed_one_gets(api: Api) -> None:
    for method, path, operation in operations(api):
        if "{" in path:
            told = operation["responses"]["404"]["content"][PROBLEM]["examples"]
            assert "unknown-path" in told, (method, path)


@ONE_DATABASE
def test_the_description_names_both_credentials_and_no_server(api: Api) -> None:
    document = api.request("GET", "/openapi.json").json()

    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert document["security"] == [{"bearer": []}, {}]
    assert "servers" not in document


@ONE_DATABASE
def test_the_examples_work_from_top_to_bottom_with_what_ends_things_last(
    start_service: StartService, tmp_path: Path
) -> None:
    with Api(start_service(snapshot_dir=tmp_path).base_url) as api:
        document = api.request("GET", "/openapi.json").json()
        pressed = last_of_all_the_purge(operations(api))
        for method, template, operation in pressed:
            known = template.replace("{note}", note_in(api))
            answer = press(api, method, known, operation, document)
            assert answer.is_success, (method, template, answer.text)
    assert len(pressed) > 30


@ONE_DATABASE
def test_a_bug_below_any_operation_is_a_500_that_tells_nothing_of_it(
    start_service: StartService,
) -> None:
    service = start_service()
    state = service.app.state
    whole = state.services, state.readiness, state.metrics
    failed = []
    with Api(service.base_url) as api, capture_logs() as logged:
        document = api.request("GET", "/openapi.json").json()
        state.services = state.readiness = state.metrics = Broken()
        for method, template, operation in operations(api):
            answer = press(api, method, template, operation, document)
            if operation["operationId"] in {"get_health", "get_problem"}:  # nothing is below them
                assert answer.status_code == 200
                continue
            problem = answer.json()
            assert (answer.status_code, problem["type"]) == (500, "/problems/internal-error")
            assert problem["request_id"] == answer.headers["X-Request-Id"]
            for word in ("SELECT", "secret", "/var/lib", "Traceback", "RuntimeError"):
                assert word not in answer.text, (method, template)
            assert logged.pop()["request_id"] == problem["request_id"]
            failed.append(operation["tags"][0])
        state.services, state.readiness, state.metrics = whole
        assert api.checkpoints().status_code == 200
    assert set(failed) == {tag["name"] for tag in document["tags"]} - {"problems"}


class Broken:
    """Stands where a part of the service was, and fails however it is used."""

    def __getattr__(self, _: str) -> object:
        raise RuntimeError("SELECT secret FROM /var/lib/table")


def press(
    api: Api, method: str, template: str, operation: dict[str, Any], document: dict[str, Any]
) -> httpx.Response:
    """Send an operation with what Swagger UI fills in."""
    path, headers, query = template, {}, {}
    for parameter in operation.get("parameters", []):
        value = example_of(parameter)
        if value is None:
            assert not parameter["required"], (method, template, parameter["name"])
        elif parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", value)
        elif parameter["in"] == "header":
            headers[parameter["name"]] = value
        else:
            query[parameter["name"]] = value
    if takes_snapshot(operation):
        headers["Content-Type"] = "application/gzip"
        return api.request(method, path, headers=headers, params=query, content=SNAPSHOT)
    return api.request(
        method, path, headers=headers, params=query, json=body_of(operation, document)
    )


def note_in(api: Api) -> str:
    """Return the id of a note that was written by pressing: no example can know it."""
    listed = api.notes("exp1")
    notes = listed.json()["items"] if listed.is_success else []
    return notes[0]["id"] if notes else "no-note-yet"


def takes_snapshot(operation: dict[str, Any]) -> bool:
    return "application/gzip" in operation.get("requestBody", {}).get("content", {})


def last_of_all_the_purge(
    found: Iterator[tuple[str, str, dict[str, Any]]],
) -> list[tuple[str, str, dict[str, Any]]]:
    """Press what ends things after the rest, as a person would."""
    rank = {"clear_entries": 1, "seal_node": 2, "purge_checkpoint": 3}
    return sorted(found, key=lambda item: rank.get(item[2]["operationId"], 0))


def example_of(parameter: dict[str, Any]) -> Any:
    # Swagger UI fills in this one; it only lists the examples of the schema.
    return parameter.get("example")


def body_of(operation: dict[str, Any], document: dict[str, Any]) -> Any:
    if "requestBody" not in operation:
        return None
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    name = schema["$ref"].rsplit("/", 1)[-1]
    return document["components"]["schemas"][name]["examples"][0]


class Loaded(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = {"script": "src", "link": "href", "img": "src"}.get(tag)
        self.urls += [value for name, value in attrs if name == wanted and value]


@ONE_DATABASE
def test_swagger_ui_loads_everything_from_the_service_itself(api: Api) -> None:
    page = api.request("GET", "/docs")
    loaded = Loaded()
    loaded.feed(page.text)

    assert len(loaded.urls) == 3
    for url in loaded.urls:
        assert url.startswith("/docs/assets/")
        assert api.request("GET", url).status_code == 200
    assert not re.findall(r"https?://", page.text)
