"""Which JSON values the service keeps, and how it writes and compares them."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from app.lineage.errors import InvalidInput

MAX_JSON_BYTES = 16 * 1024
MAX_DEPTH = 16
BROKEN = re.compile("[\x00\ud800-\udfff]")
MIN_INT, MAX_INT = -(2**63), 2**63 - 1

Place: TypeAlias = tuple[str | int, ...]


def compact(value: object) -> str:
    """Return the value as compact JSON, keys in their order, characters unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def check_object(value: Mapping[str, Any], *, place: Place, max_bytes: int = MAX_JSON_BYTES) -> str:
    """Return the object's compact JSON; deeper, longer or stranger than allowed is InvalidInput."""
    _check_depth(value, place)
    _check_numbers(value, place)
    text = compact(value)
    if (size := len(text.encode())) > max_bytes:
        raise InvalidInput(
            f"As compact JSON it may have at most {max_bytes} bytes and has {size}.", place=place
        )
    return text


def check_characters(value: object, *, place: Place = ("body",)) -> None:
    """Refuse NUL and unpaired surrogates anywhere in keys and strings.

    Neither survives the stores behind us: one is stripped in silence, the other is no UTF-8.
    """
    for found, text in _strings(value, place):
        if (broken := BROKEN.search(text)) is None:
            continue
        if broken[0] == "\x00":
            raise InvalidInput("A NUL character is not allowed.", place=found)
        raise InvalidInput("Half of a surrogate pair is not a character.", place=found)


def json_equal(left: object, right: object) -> bool:
    """Compare two scalars as JSON does: true is not 1, and 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and left == right


def _strings(value: object, place: Place) -> Iterator[tuple[Place, str]]:
    """Walk without recursion: a request may nest as deep as the parser allows."""
    waiting: list[tuple[Place, object]] = [(place, value)]
    while waiting:
        where, item = waiting.pop()
        if isinstance(item, str):
            yield where, item
        elif isinstance(item, Mapping):
            for index, (key, inner) in enumerate(item.items()):
                yield (*where, f"(key {index + 1})"), key
                waiting.append(((*where, key), inner))
        elif isinstance(item, list):
            waiting.extend(((*where, index), inner) for index, inner in enumerate(item))


def _check_depth(value: object, place: Place) -> None:
    layer: list[object] = [value]
    for _ in range(MAX_DEPTH):
        layer = [inner for item in layer for inner in _children(item)]
        if not any(isinstance(item, Mapping | list) for item in layer):
            return
    raise InvalidInput(f"It may nest at most {MAX_DEPTH} deep.", place=place)


def _check_numbers(value: object, place: Place) -> None:
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        waiting.extend(_children(item))
        if isinstance(item, int) and not MIN_INT <= item <= MAX_INT:
            raise InvalidInput("An integer may have at most 64 bits.", place=place)
        if isinstance(item, float) and not math.isfinite(item):
            raise InvalidInput("NaN and infinity are not JSON.", place=place)


def _children(item: object) -> list[Any]:
    if isinstance(item, Mapping):
        return list(item.values())
    return item if isinstance(item, list) else []
