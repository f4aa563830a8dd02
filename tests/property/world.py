"""The service under test, as the machine drives it: requests by any caller, and restarts."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from app.embedding.port import Vector
from app.embedding.wordllama import WordLlamaEmbedder
from tests.conftest import API_KEY, StartService
from tests.property.leaky_archive import make_leaky
from tests.property.model import OPERATOR, Caller
from tests.support.client import Api, Json

EMBEDDER = WordLlamaEmbedder.load()


@dataclass(frozen=True)
class Sent:
    """A request that can be sent again, byte for byte."""

    caller: Caller
    method: str
    path: str
    json: Json | None = None
    params: Json | None = None
    key: str | None = None


class World:
    """One storage and the service that serves it now, its archive leaking all ids it ever had."""

    def __init__(self, start: StartService, settings: Json) -> None:
        self._start = start
        self._settings = {"api_keys": (API_KEY,), **settings}
        self.known_ids: list[str] = []
        self.numbers = itertools.count()
        self.steps = 0
        self._vectors: dict[str, Vector] = {}
        self._service = start(**self._settings)
        self._api = Api(self._service.base_url)

    def begin_life(self) -> None:
        """Let the leak do the same in the same life, so that a failing one can be made shorter."""
        self.known_ids.clear()
        make_leaky(self._service, self.known_ids, seed=0)

    def restart(self) -> None:
        self._service.stop()
        self._api.close()
        self._service = self._start(storage=self._service.storage, **self._settings)
        self._api = Api(self._service.base_url)
        make_leaky(self._service, self.known_ids, seed=len(self.known_ids))

    def close(self) -> None:
        self._api.close()

    def send(self, sent: Sent) -> httpx.Response:
        return self._api.request(
            sent.method,
            sent.path,
            headers={"Authorization": f"Bearer {sent.caller.token or API_KEY}"},
            claim=None if sent.caller.token else sent.caller.node,
            key=sent.key,
            json=sent.json,
            params=sent.params,
        )

    def get(self, path: str, *, caller: Caller = OPERATOR, params: Json | None = None) -> Json:
        """Return the JSON of a read that must succeed."""
        return accepted(self.send(Sent(caller, "GET", path, params=params)), status=200)

    def walk(self, path: str, *, caller: Caller, params: Json) -> list[Json]:
        """Return the items of all pages of a list."""
        page = self.get(path, caller=caller, params=params)
        items: list[Json] = page["items"]
        while page["next_cursor"] is not None:
            page = self.get(path, caller=caller, params={**params, "cursor": page["next_cursor"]})
            items += page["items"]
        return items

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Embed as the service does: with the same model, one text at a time."""
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = asyncio.run(EMBEDDER.embed([text]))[0]
        return [self._vectors[text] for text in texts]


def accepted(response: httpx.Response, *, status: int) -> Json:
    """Return the JSON of a response that must have this status."""
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    body: Json = response.json()
    return body


def refused(response: httpx.Response, slug: str) -> None:
    """Hold a response to be this problem."""
    body = response.text
    assert response.headers["content-type"] == "application/problem+json", body
    assert response.json()["type"] == f"/problems/{slug}", body
