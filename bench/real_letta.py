"""The Letta that LETTA_BASE_URL names, called past the service: what is compared, and cleaning."""

import http.client
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench.calls import CallFailed, Json

VARIABLE = "LETTA_BASE_URL"
MISSING = (
    f"{VARIABLE} names no Letta to measure: `make letta` brings one up and prints it as its last "
    "line."
)
# What `make letta` gives Letta as the key of our `/v1/embeddings`.
EMBEDDINGS_KEY = "local-letta"
# What the service calls its own there, by checkpoint.
AGENT = "ari_agent_{}"
ARCHIVE = "ari_node_{}"


def base_url() -> str | None:
    """Return where the Letta is, None where nobody says."""
    return os.environ.get(VARIABLE) or None


class RealLetta:
    """A Letta server. Every call is a connection of its own: Letta closes idle ones."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        self.host, self.port = parts.hostname or "", parts.port or 80

    def search(self, agent_id: str, params: Mapping[str, object]) -> bytes:
        """Return the bytes of a search's answer; CallFailed where it is none."""
        return self.call("GET", f"/v1/agents/{agent_id}/archival-memory/search", params=params)

    def agent_of(self, checkpoint: str) -> str:
        """Return the id of the agent that the service made for a checkpoint."""
        ((agent_id, _),) = self._agents(AGENT.format(checkpoint))
        return agent_id

    def make_archive(self, checkpoint: str, embedding_config: Mapping[str, object]) -> str:
        """Make an archive, named as the service's are so that `wipe` finds it; return its id."""
        body = {"name": ARCHIVE.format(checkpoint), "embedding_config": dict(embedding_config)}
        archive_id: str = json.loads(self.call("POST", "/v1/archives/", body=body))["id"]
        return archive_id

    def wipe(self, checkpoint: str) -> None:
        """Remove the archives, agents and blocks of a checkpoint."""
        params = {"name": ARCHIVE.format(checkpoint)}
        for archive in json.loads(self.call("GET", "/v1/archives/", params=params)):
            self.call("DELETE", f"/v1/archives/{archive['id']}")
        for agent_id, block_ids in self._agents(AGENT.format(checkpoint)):
            for block_id in block_ids:
                self.call("DELETE", f"/v1/blocks/{block_id}")
            self.call("DELETE", f"/v1/agents/{agent_id}")

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, object] | None = None,
        body: Json = None,
    ) -> bytes:
        """Return the bytes of an answer; CallFailed where its status is another than 2xx."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            connection.request(
                method,
                f"{path}?{urlencode(params)}" if params else path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status // 100 != 2:  # noqa: PLR2004  (success)
            raise CallFailed(f"{method} {path}: {answer.status} {content[:500]!r}")
        return content

    def _agents(self, name: str) -> Sequence[tuple[str, Sequence[str]]]:
        """Return id and block ids of the agents of a name."""
        found: list[Any] = json.loads(self.call("GET", "/v1/agents/", params={"name": name}))
        return [
            (agent["id"], [block["id"] for block in agent["memory"]["blocks"]]) for agent in found
        ]
