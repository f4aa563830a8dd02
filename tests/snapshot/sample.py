"""A checkpoint that has some of everything, and all that the service tells of one."""

from pathlib import Path
from typing import Any

from app.client.run_file import read_run
from tests.support.client import Api, Json, answer, walk
from tests.support.wait import wait_until

RUN = Path(__file__).parents[2] / "examples" / "run.jsonl"
ODD_TEXTS = (
    "🦊 fox",
    "損失が下がらない",
    "!!! ??? …",
    "\u200b",
    "two\nlines\r\nand a tab\t",
    "\u2028 separates lines in JavaScript",
    "a" * 30_000,
    '{"kind": "end"}',
    "ﬁ é e\u0301 ß ẞ",
)
ODD_METADATA: Json = {
    "z": 1,
    "a": 1.0,
    "big": 2**63 - 1,
    "small": -1e-300,
    "キー": [None, True, {"deep": {"deeper": ["\u2028"]}}],
    "": "",
}
CONTEXT: Json = {"goal": "lowest RMSLE", "gpus": 0, "notes": ["日本", "🦊"]}
QUERIES = ("which change helped most", "learning rate", "損失が下がらない", "fox", "???")


def fill(api: Api, checkpoint: str) -> None:
    """Store the example run, and what it has none of: seals, odd texts, a trace, core memory."""
    run = read_run(RUN)
    answer(api.checkpoint(checkpoint, name="Bike rentals 🚲", metadata={"team": "b", "a": 1}))
    for place in run.nodes:
        made = api.node(checkpoint, place.name, place.parent, eval_summary=place.eval_summary)
        answer(made)
        if drafts := run.entries.get(place.name):
            answer(api.write_batch(f"{checkpoint}.{place.name}", drafts))
    answer(api.node(checkpoint, "odd", run.nodes[0].name, metadata=ODD_METADATA))
    odd = f"{checkpoint}.odd"
    for text in ODD_TEXTS:
        answer(api.write(odd, text, metadata=ODD_METADATA))
    answer(api.trace_step(checkpoint, "think: begin", metadata={"step": 1}))
    answer(api.trace_step(checkpoint, "act: look around", claim=odd))
    answer(api.seal(odd))
    answer(api.put_core_memory(checkpoint, persona="Careful.", human="", context=CONTEXT))


def portrait(api: Api, checkpoint: str) -> Json:
    """Return all that can be read of a checkpoint, but for when it was made, with its id cut off.

    What it holds is waited for until it is searchable.
    """
    await_index(api, checkpoint)
    about = answer(api.get_checkpoint(checkpoint))
    nodes = [
        answer(api.get_node(place["id"]))
        for place in walk(lambda cursor: api.nodes(checkpoint, cursor=cursor))
    ]
    shown = {
        "checkpoint": {key: about[key] for key in ("name", "metadata", "entries", "pending")},
        "tree": answer(api.tree(checkpoint)),
        "nodes": nodes,
        "entries": {place["id"]: own(api, place["id"]) for place in nodes},
        "trace": list(walk(lambda cursor: api.trace(checkpoint, cursor=cursor))),
        "core_memory": answer(api.core_memory(checkpoint)),
        "context": answer(api.context(checkpoint)),
        "searches": [
            answer(api.search(place["id"], query, limit=20, include_self=True))
            for place in nodes
            for query in QUERIES
        ],
        "trace_searches": [answer(api.search_trace(checkpoint, query)) for query in QUERIES],
    }
    local: Json = _without_checkpoint(shown, checkpoint)
    return local


def own(api: Api, node: str) -> list[Json]:
    """Return all of a node's own entries, oldest first."""
    return list(walk(lambda cursor: api.entries(node, cursor=cursor, limit=1000)))


def texts(api: Api, node: str) -> list[str]:
    """Return the texts of a node's own entries, oldest first."""
    return [found["text"] for found in own(api, node)]


def await_index(api: Api, checkpoint: str, *, timeout: float = 60) -> None:
    """Return when nothing of the checkpoint is pending."""
    wait_until(
        lambda: answer(api.get_checkpoint(checkpoint))["pending"] == 0,
        describe="everything restored is searchable",
        timeout=timeout,
    )


def _without_checkpoint(value: Any, checkpoint: str) -> Any:
    if isinstance(value, dict):
        return {
            _without_checkpoint(key, checkpoint): _without_checkpoint(inner, checkpoint)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_checkpoint(inner, checkpoint) for inner in value]
    if isinstance(value, str):
        return "<checkpoint>" if value == checkpoint else value.removeprefix(f"{checkpoint}.")
    return value
