"""A backup is all of a checkpoint at one instant, however much is written meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.snapshot.files import records
from tests.support.client import Json, answer
from tests.support.tree import Tree
from tests.support.wait import wait_until

WRITERS = ("root", "a", "a1", "a2", "b")


@contextmanager
def writing(tree: Tree, acknowledged: dict[str, list[str]]) -> Iterator[None]:
    """Let every node be written to until the block is left; `acknowledged` grows meanwhile."""
    done = threading.Event()

    def write(name: str) -> None:
        while not done.is_set():
            acknowledged[name] += [item["id"] for item in tree.write(name, f"step of {name}")]

    threads = [threading.Thread(target=write, args=(name,)) for name in WRITERS]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def entry_ids(lines: list[Json], name: str) -> list[str]:
    return [line["id"] for line in lines if line.get("node_id") == name]


def test_a_backup_amid_writes_is_whole_up_to_its_moment(tree: Tree) -> None:
    acknowledged: dict[str, list[str]] = {name: [] for name in WRITERS}
    taken: list[tuple[dict[str, int], list[Json]]] = []
    with writing(tree, acknowledged):
        wait_until(lambda: all(acknowledged.values()), describe="everyone has written")
        for _ in range(5):
            before = {name: len(ids) for name, ids in acknowledged.items()}
            taken.append((before, records(tree.api.backup(tree.checkpoint).content)))

    for before, lines in taken:
        for name, ids in acknowledged.items():
            found = entry_ids(lines, name)
            assert len(found) >= before[name]
            assert found == ids[: len(found)]


def test_530_entries_are_all_in_it_each_once_oldest_first(tree: Tree) -> None:
    sent = [f"entry {number}" for number in range(530)]
    answer(tree.api.write_batch(tree["root"], sent))

    lines = records(tree.api.backup(tree.checkpoint).content)

    assert [line["text"] for line in lines if line["kind"] == "node_scope"] == sent
    assert lines[-1]["counts"] == {"node": 5, "node_scope": 530}
