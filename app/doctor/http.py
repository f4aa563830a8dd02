"""One question over HTTP, and what a failure means."""

from typing import Any

import httpx

TIMEOUT_S = 10.0


class Unanswered(Exception):
    """There is no answer to use; the message says why, without a word of the other side's."""

    def __init__(self, reason: str, *, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status

    @property
    def is_about_key(self) -> bool:
        """True where the key is missing or wrong."""
        return self.status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}


def ask(url: str, *, key: str | None, body: object = None) -> Any:
    """GET, or POST a body, and return the JSON: Unanswered. No redirect is followed with a key."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx.request(
            "GET" if body is None else "POST", url, headers=headers, json=body, timeout=TIMEOUT_S
        )
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise Unanswered(f"does not answer ({type(error).__name__})") from error
    if not response.is_success:
        raise Unanswered(f"answers {response.status_code}", status=response.status_code)
    try:
        return response.json()
    except ValueError as error:
        raise Unanswered("answers with something else than JSON") from error
