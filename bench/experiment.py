"""The experiment tree that the service is filled with, and the requests that workers send to it."""

from collections.abc import Iterator
from itertools import islice

from bench import corpus
from bench.calls import Api, get_request, post_request
from bench.load import Group

CHECKPOINT = "bench"
SEED = 1
# Five ancestors of forty entries: 200 in the scope of every reader and writer.
LINEAGE = [f"step{depth}" for depth in range(5)]
ENTRIES_A_NODE = 40
SCOPE_ENTRIES = len(LINEAGE) * ENTRIES_A_NODE
# Whatever else the checkpoint holds sits in siblings of this size, outside that scope.
SIBLING_ENTRIES = 1_000
MOST_CLIENTS = 32
RESULTS = 5
# Texts that a writer sends in rotation.
TEXTS_A_WRITER = 256


def plant(port: int, *, entries: int) -> None:
    """Build the tree through the service's own calls, with this many entries in the checkpoint."""
    api = Api(port)
    written = corpus.texts(seed=SEED)
    api.post("/checkpoints", {"id": CHECKPOINT})
    parent = None
    for name in LINEAGE:
        _grow(api, name, parent=parent)
        _fill(api, name, list(islice(written, ENTRIES_A_NODE)))
        parent = name
    for client in range(MOST_CLIENTS):
        _grow(api, f"reader{client}", parent=parent)
        _grow(api, f"writer{client}", parent=parent)
    for sibling, size in enumerate(_sibling_sizes(entries)):
        _grow(api, f"sibling{sibling}", parent=LINEAGE[0])
        _fill(api, f"sibling{sibling}", list(islice(written, size)))
    api.close()


def node_of_each_entry(entries: int) -> Iterator[str]:
    """Yield the node of each entry, in the order in which `plant` writes them."""
    for name in LINEAGE:
        yield from [name] * ENTRIES_A_NODE
    for sibling, size in enumerate(_sibling_sizes(entries)):
        yield from [f"sibling{sibling}"] * size


def sibling_count(entries: int) -> int:
    """Return how many siblings a checkpoint of this many entries has."""
    return len(_sibling_sizes(entries))


def searches(port: int, *, clients: int) -> Group:
    """Return clients that each search from a leaf of their own, with 200 entries in scope."""
    questions = corpus.queries()
    return Group(
        port,
        [
            [
                _search(f"reader{client}", question, include_self=False)
                for question in questions[client:] + questions[:client]
            ]
            for client in range(clients)
        ],
    )


def wide_searches(port: int, *, clients: int, entries: int) -> Group:
    """Return clients that search from every sibling in turn, its own thousand entries included."""
    questions = corpus.queries()
    siblings = sibling_count(entries)
    return Group(
        port,
        [
            [
                _search(f"sibling{sibling}", questions[sibling % len(questions)], include_self=True)
                for sibling in range(client, siblings, clients)
            ]
            for client in range(clients)
        ],
    )


def writes(port: int, *, clients: int) -> Group:
    """Return clients that each write to a node of their own, one entry a request."""
    return Group(
        port,
        [
            [
                post_request(
                    f"/nodes/{_id(f'writer{client}')}/memory",
                    {"text": text, "metadata": {"type": "observation"}},
                    headers={"X-Current-Node": _id(f"writer{client}")},
                )
                for text in islice(corpus.texts(seed=100 + client), TEXTS_A_WRITER)
            ]
            for client in range(clients)
        ],
        status=201,
    )


def plain(port: int, *, clients: int) -> Group:
    """Return clients that ask the plain endpoint."""
    return Group(port, [[get_request("/plain")]] * clients)


def _search(node: str, question: str, *, include_self: bool) -> bytes:
    body = {"query": question, "limit": RESULTS, "include_self": include_self}
    return post_request(f"/nodes/{_id(node)}/memory/search", body)


def _sibling_sizes(entries: int) -> list[int]:
    full, rest = divmod(entries - SCOPE_ENTRIES, SIBLING_ENTRIES)
    return [SIBLING_ENTRIES] * full + [rest] * bool(rest)


def _grow(api: Api, name: str, *, parent: str | None) -> None:
    api.post(f"/checkpoints/{CHECKPOINT}/nodes", {"name": name, "parent": parent})


def _fill(api: Api, name: str, texts: list[str]) -> None:
    api.post(
        f"/nodes/{_id(name)}/memory/batch",
        {"entries": [{"text": text, "metadata": {"type": "observation"}} for text in texts]},
        headers={"X-Current-Node": _id(name)},
    )


def _id(name: str) -> str:
    return f"{CHECKPOINT}.{name}"
