"""A checkpoint from both sides: as the service shows it, and what Letta has of it."""

import httpx

from tests.support.client import Api, Json, answer
from tests.support.letta import RealLetta
from tests.support.tree import Tree
from tests.support.wait import wait_until

NODE_SIDE, TRACE_SIDE = "ari_agent", "ari_react"


def settled(api: Api, checkpoint: str) -> Json:
    """Return the checkpoint once the archive has taken all that it will take."""

    def done() -> Json:
        shown = answer(api.get_checkpoint(checkpoint))
        return {} if shown["pending"] else shown

    return wait_until(done, describe=f"{checkpoint} is indexed", timeout=60)


def everything(letta: RealLetta, checkpoint: str) -> list[str]:
    """Return the names of all agents and archives that Letta has of a checkpoint."""
    agents = letta.agents(checkpoint, NODE_SIDE) + letta.agents(checkpoint, TRACE_SIDE)
    archives = letta.archives(checkpoint, "ari_node") + letta.archives(checkpoint, TRACE_SIDE)
    return [thing["name"] for thing in agents + archives]


def texts(letta: RealLetta, checkpoint: str, side: str = NODE_SIDE) -> list[str]:
    """Return the texts of a checkpoint's passages, oldest first."""
    return [passage["text"] for passage in letta.passages(checkpoint, side)]


def lose(letta: RealLetta, checkpoint: str) -> None:
    """Remove all that Letta has of a checkpoint, behind the service's back."""
    for prefix in ("ari_node", TRACE_SIDE):
        for archive in letta.archives(checkpoint, prefix):
            letta.http.delete(f"/v1/archives/{archive['id']}").raise_for_status()
    for prefix in (NODE_SIDE, TRACE_SIDE):
        for agent in letta.agents(checkpoint, prefix):
            letta.http.delete(f"/v1/agents/{agent['id']}").raise_for_status()


def purge(tree: Tree) -> None:
    """Purge a checkpoint; Letta's part may go on behind."""
    response = tree.api.purge(tree.checkpoint)
    assert response.status_code in {httpx.codes.NO_CONTENT, httpx.codes.ACCEPTED}, response.text
