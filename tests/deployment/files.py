"""What the Dockerfile and the compose file say, read the way their engines read them."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]

VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<text>[^}]*))?\}")


class MissingVariableError(Exception):
    """A variable that the compose file insists on is empty; the message is the file's own."""


def read_compose(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the compose file with `${NAME:-default}` and `${NAME:?message}` filled in."""
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    filled = _fill(document, variables)
    assert isinstance(filled, dict)
    return filled


def _fill(part: object, variables: Mapping[str, str]) -> object:
    if isinstance(part, dict):
        return {key: _fill(value, variables) for key, value in part.items()}
    if isinstance(part, list):
        return [_fill(item, variables) for item in part]
    if isinstance(part, str):
        return VARIABLE.sub(lambda found: _value_of(found, variables), part)
    return part


def _value_of(found: re.Match[str], variables: Mapping[str, str]) -> str:
    value = variables.get(found["name"], "")
    if value or found["kind"] is None:
        return value
    if found["kind"] == "?":
        raise MissingVariableError(found["text"])
    return found["text"]


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, its continued lines joined."""

    word: str
    rest: str

    @property
    def exec_form(self) -> list[str]:
        """The JSON array that an instruction in exec form ends with, options left out."""
        return [str(part) for part in json.loads(self.rest[self.rest.index("[") :])]


def read_dockerfile() -> list[Instruction]:
    """Return the Dockerfile's instructions in order, comments left out."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    return [
        Instruction(*(part.strip() for part in line.split(maxsplit=1)))
        for line in text.splitlines()
        if line.strip()
    ]


def final_stage(instructions: list[Instruction]) -> list[Instruction]:
    """Return what the image itself is made of: everything after the last FROM."""
    last = max(i for i, step in enumerate(instructions) if step.word == "FROM")
    return instructions[last:]


def only(word: str, instructions: list[Instruction]) -> Instruction:
    """Return the one instruction with that word."""
    [found] = [step for step in instructions if step.word == word]
    return found


def image_environment(instructions: list[Instruction]) -> dict[str, str]:
    """Return the variables that the image sets."""
    return dict(
        pair.split("=", 1)
        for step in final_stage(instructions)
        if step.word == "ENV"
        for pair in shlex.split(step.rest)
    )
