"""A purge beside everything else: no 5xx, no row without its parent."""

import threading
from collections.abc import Callable

import httpx

from tests.support.client import Api
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint

ROUNDS = 15


def test_reads_and_writes_beside_purges_find_the_old_the_new_or_nothing(
    service: InProcessService,
) -> None:
    checkpoint = unique_checkpoint()
    bad: list[str] = []
    done = threading.Event()

    def ask(call: Callable[[Api, Tree], httpx.Response]) -> None:
        with Api(service.base_url) as api:
            tree = Tree(api, checkpoint)
            tree.names = ["root"]
            while not done.is_set():
                response = call(api, tree)
                if response.status_code >= 500:
                    bad.append(f"{response.request.method} {response.request.url} {response.text}")

    calls: list[Callable[[Api, Tree], httpx.Response]] = [
        lambda api, tree: api.context(tree.checkpoint),
        lambda api, tree: api.core_memory(tree.checkpoint),
        lambda api, tree: api.working_context(tree["root"], "door"),
        lambda api, tree: api.search(tree["root"], "door", include_self=True),
        lambda api, tree: api.write(tree["root"], "a blue door"),
        lambda api, tree: api.trace_step(tree.checkpoint, "a thought"),
        lambda api, tree: api.access_log(tree.checkpoint),
    ]
    threads = [threading.Thread(target=ask, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    with Api(service.base_url) as api:
        for _ in range(ROUNDS):
            grow_tree(api, checkpoint, {"root": {}})
            api.write(f"{checkpoint}.root", "a blue door")
            # 202 where Letta is still being told of a write beside it.
            assert api.purge(checkpoint).is_success
    done.set()
    for thread in threads:
        thread.join()

    assert bad == []
