"""docs/snapshot.schema.json says what a line of a snapshot is, and what is none."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError

from tests.snapshot.files import entry, header, node, records, without
from tests.snapshot.sample import fill
from tests.support.client import Api, Json
from tests.support.tree import unique_checkpoint

SCHEMA = Path(__file__).parents[2] / "docs" / "snapshot.schema.json"
KINDS = {"header", "node", "core_seed", "node_scope", "react_step", "end"}
END = {"kind": "end", "lines": 3, "counts": {"node": 2}, "sha256": "0" * 64}
SEED: Json = {"kind": "core_seed", "persona": "", "human": None, "context": {}, "seeded_at": 1.5}
BLOCK = {"kind": "core_block", "label": "active_context", "value": "", "updated_at": 1.5}
NOTE = entry(
    node_id=None,
    kind="reference",
    metadata={"topic": "people", "name": "ada", "date": "2026-06-08", "supersedes": ["x"]},
)
DAILY_NOTE = entry(
    node_id=None,
    kind="daily_note",
    metadata={"date": "2026-06-08", "at": "2026-06-08T09:30:00+09:00", "heading": "Doors"},
)


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    described = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(described)
    return Draft202012Validator(described)


def test_every_line_of_a_snapshot_is_as_the_schema_says(
    api: Api, schema: Draft202012Validator
) -> None:
    checkpoint = unique_checkpoint()
    fill(api, checkpoint)
    lines = records(api.backup(checkpoint).content)
    assert {line["kind"] for line in lines} == KINDS

    for line in lines:
        schema.validate(line)


@pytest.mark.parametrize(
    "line", [header(), node("a", "root"), entry(), SEED, BLOCK, NOTE, DAILY_NOTE, END]
)
def test_no_line_may_lack_a_field_or_have_one_more(
    schema: Draft202012Validator, line: Json
) -> None:
    schema.validate(line)

    for key in line:
        with pytest.raises(ValidationError):
            schema.validate(without(line, key))
    with pytest.raises(ValidationError):
        schema.validate({**line, "surprise": 1})


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"kind": "no such kind"},
        header(format=2),
        header(checkpoint="EXP1"),
        node("../x"),
        node("a", ""),
        node("a", metadata=[]),
        node("a", created_at="yesterday"),
        entry(text=" "),
        entry(text=7),
        entry(id="with blank"),
        entry(sha256="F" * 64),
        entry(ts=True),
        {**BLOCK, "label": "persona"},
        {**BLOCK, "label": "style"},
        entry(ts="2026-W01-1"),
        {**NOTE, "metadata": {"topic": "pets"}},
        {**NOTE, "metadata": {"name": "../x"}},
        {**NOTE, "metadata": {"date": "today"}},
        {**NOTE, "metadata": {"supersedes": "a"}},
        {**DAILY_NOTE, "metadata": {"date": "../x"}},
        {**DAILY_NOTE, "metadata": {"at": "noon"}},
        {**DAILY_NOTE, "metadata": {"heading": ""}},
        {**END, "counts": {"unicorn": 1}},
        {**END, "lines": "3"},
    ],
    ids=repr,
)
def test_a_broken_line_is_none(schema: Draft202012Validator, broken: Json) -> None:
    with pytest.raises(ValidationError):
        schema.validate(broken)
