"""Notes that several tests write, and what they read of the answers."""

from tests.support.client import Json

RATE: Json = {
    "title": "Learning rate",
    "summary": "Halving the learning rate cured the divergence.",
    "details": "- loss 0.31 after 500 steps",
    "tags": ["training", "rates"],
    "date": "2026-06-08",
}
RATE_TEXT = """\
# Learning rate — 2026-06-08

## Summary

Halving the learning rate cured the divergence.

## Details

- loss 0.31 after 500 steps

## Tags

training, rates
"""
DOOR: Json = {"title": "Doors", "summary": "The blue door opens.", "date": "2026-06-08"}


def names(body: Json) -> list[str]:
    return [item["name"] for item in body["items" if "items" in body else "results"]]


def ids(body: Json) -> list[str]:
    return [item["id"] for item in body["items" if "items" in body else "results"]]
