"""Filters on an entry's metadata: top-level keys, scalar values, all must match."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.lineage.entry import Metadata
from app.lineage.errors import InvalidInput
from app.lineage.json_rules import check_object, compact, json_equal

Test: TypeAlias = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class MetadataFilter:
    """A conjunction of tests, one for each named key."""

    tests: tuple[tuple[str, Test], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tests)

    def matches(self, metadata: Metadata) -> bool:
        """Tell whether every named key is there and passes its test."""
        return all(key in metadata and test(metadata[key]) for key, test in self.tests)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "MetadataFilter":
        """Ask for JSON equality with each value; a value that is no scalar is InvalidInput."""
        check_object(values, place=("body", "filter"))
        for key, value in values.items():
            if isinstance(value, dict | list):
                raise InvalidInput("A filter value is a scalar.", place=("body", "filter", key))
        return cls(tuple((key, _equals(value)) for key, value in values.items()))

    @classmethod
    def from_texts(cls, pairs: Iterable[tuple[str, str]]) -> "MetadataFilter":
        """Ask for the string itself, or for the scalar whose compact JSON it is."""
        return cls(tuple((key, _reads_as(text)) for key, text in pairs))


def _equals(wanted: object) -> Test:
    return lambda value: json_equal(value, wanted)


def _reads_as(text: str) -> Test:
    def test(value: object) -> bool:
        if isinstance(value, str):
            return value == text
        return not isinstance(value, dict | list) and compact(value) == text

    return test
