"""Plain HTTP calls for setting up, and the request bytes that the load generator sends."""

import http.client
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

# Decoded JSON; its shape is the server's contract, read where it is used.
Json: TypeAlias = Any


class CallFailed(Exception):
    """A call while setting up was not answered with 200 or 201."""


class Api:
    """One kept connection to a server on loopback; JSON in and out."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, path: str, body: object, *, headers: Mapping[str, str] | None = None) -> Json:
        """Return the decoded answer. Raises CallFailed, or OSError where nothing listens."""
        return self._call("POST", path, json.dumps(body), headers=headers or {})

    def get(self, path: str) -> Json:
        """Return the decoded answer. Raises CallFailed, or OSError where nothing listens."""
        return self._call("GET", path, None, headers={})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _call(
        self, method: str, path: str, body: str | None, *, headers: Mapping[str, str]
    ) -> Json:
        self._connection.request(
            method, path, body, {"Content-Type": "application/json", **headers}
        )
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status not in (200, 201):
            raise CallFailed(f"{method} {path}: {answer.status} {content[:500]!r}")
        return json.loads(content) if content else None


def get_request(path: str) -> bytes:
    """Return the bytes of a GET."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def post_request(path: str, body: object, *, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a POST with a JSON body."""
    content = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: bench",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content
