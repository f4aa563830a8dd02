"""One thing that was looked at."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How it is: `warn` does not keep the service from working, `fail` does."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, and what to do where it is not well."""

    name: str
    verdict: Verdict
    says: str
    do: str | None = None


def ok(name: str, says: str) -> Check:
    """Tell that all is well."""
    return Check(name, Verdict.OK, says)


def warn(name: str, says: str, *, do: str) -> Check:
    """Tell that the service works, and that somebody should look."""
    return Check(name, Verdict.WARN, says, do)


def fail(name: str, says: str, *, do: str) -> Check:
    """Tell that the service does not work so."""
    return Check(name, Verdict.FAIL, says, do)
