"""The real Letta that `make letta` brings up, and what a test may look at in it."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

from tests.support.client import Json

EMBEDDINGS_KEY = "local-letta"
"""What `make letta` gives Letta as the key of our `/v1/embeddings`."""


class RealLetta:
    """Letta seen past the service, to find out what the service left there."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.http = httpx.Client(base_url=base_url, timeout=60, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def settings(self, instance: str) -> dict[str, object]:
        """Return the settings of a service in this process that has this Letta behind it."""
        return {
            "archive": "letta",
            "letta_base_url": self.base_url,
            "letta_instance": instance,
            "embeddings_key": EMBEDDINGS_KEY,
        }

    def environment(self, instance: str) -> dict[str, str]:
        """Return the environment of a service as a process that has this Letta behind it."""
        return {
            "LINEAGE_ARCHIVE": "letta",
            "LETTA_BASE_URL": self.base_url,
            "LINEAGE_LETTA_INSTANCE": instance,
            "LINEAGE_EMBEDDINGS_KEY": EMBEDDINGS_KEY,
        }

    def agents(self, checkpoint: str, prefix: str = "ari_agent") -> list[Json]:
        """Return the agents of a checkpoint, oldest first."""
        params = {"name": f"{prefix}_{checkpoint}"}
        found: list[Json] = self._get("/v1/agents/", params)
        return found[::-1]

    def archives(self, checkpoint: str, prefix: str = "ari_node") -> list[Json]:
        """Return the archives of a checkpoint, oldest first."""
        params = {"name": f"{prefix}_{checkpoint}"}
        found: list[Json] = self._get("/v1/archives/", params)
        return found[::-1]

    def passages(self, checkpoint: str, prefix: str = "ari_agent") -> list[Json]:
        """Return the passages of a checkpoint's archive, oldest first, without their vectors."""
        found: list[Json] = []
        for agent in self.agents(checkpoint, prefix):
            for passage in self._get(f"/v1/agents/{agent['id']}/archival-memory", {"limit": 0}):
                del passage["embedding"], passage["embedding_config"]
                found.append(passage)
        return found

    def blocks(self, checkpoint: str) -> dict[str, str]:
        """Return the values of the agent's blocks, by label."""
        (agent,) = self.agents(checkpoint)
        return {block["label"]: block["value"] for block in agent["memory"]["blocks"]}

    def insert(self, checkpoint: str, passages: list[Json]) -> list[Json]:
        """Put passages of our own making into a checkpoint's archive."""
        (archive,) = self.archives(checkpoint)
        answer = self.http.post(
            f"/v1/archives/{archive['id']}/passages/batch", json={"passages": passages}
        )
        answer.raise_for_status()
        stored: list[Json] = answer.json()
        return stored

    def delete_passage(self, checkpoint: str, passage_id: str) -> None:
        """Delete a passage behind the service's back."""
        (archive,) = self.archives(checkpoint)
        self.http.delete(f"/v1/archives/{archive['id']}/passages/{passage_id}").raise_for_status()

    def wipe(self, instance: str) -> None:
        """Remove all that an instance left."""
        # All of a list before any of it goes: the next page begins behind the last one seen.
        for archive in list(self._all("/v1/archives/")):
            if _instance(archive["description"]) == instance:
                self.http.delete(f"/v1/archives/{archive['id']}")
        for agent in list(self._all("/v1/agents/")):
            if (agent["metadata"] or {}).get("instance") != instance:
                continue
            # One that a purge removes meanwhile lists no blocks: its answer is no list.
            blocks = self.http.get(f"/v1/agents/{agent['id']}/core-memory/blocks").json()
            for block in blocks if isinstance(blocks, list) else []:
                self.http.delete(f"/v1/blocks/{block['id']}")
            self.http.delete(f"/v1/agents/{agent['id']}")

    def _all(self, path: str) -> Iterator[Json]:
        after: str | None = None
        while page := self._get(path, {"limit": 100} | ({"after": after} if after else {})):
            yield from page
            after = page[-1]["id"]

    def _get(self, path: str, params: Json) -> Any:
        answer = self.http.get(path, params=params)
        answer.raise_for_status()
        return answer.json()


def _instance(description: str | None) -> str | None:
    try:
        mark = json.loads(description or "")
    except ValueError:
        return None
    return mark.get("instance") if isinstance(mark, dict) else None
