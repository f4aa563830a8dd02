"""The random numbers of the process are not ours: a training script may seed them, a test too."""

import random
import subprocess
import sys

import pytest

from tests.support.tree import Tree

EMBEDDED = pytest.mark.parametrize("archive", ["embedded"], indirect=True)


@EMBEDDED
def test_a_service_draws_nothing_from_the_generator_of_its_process(tree: Tree) -> None:
    before = random.getstate()

    tree.write("root", "the blue door")
    tree.api.search(tree["a"], "door", claim=tree["a"])
    tree.api.access_log(tree.checkpoint)

    assert random.getstate() == before


@EMBEDDED
def test_a_generator_seeded_anew_repeats_no_id(tree: Tree) -> None:
    ids = set()
    for _ in range(50):
        random.seed(0)
        [entry] = tree.write("root", "the blue door")
        ids.add(entry["id"])

    assert len(ids) == 50


def test_forked_processes_draw_different_ids() -> None:
    script = """
import os, sys
from app.randomness import random_id
for _ in range(4):
    if not os.fork():
        break
sys.stdout.write(random_id() + "\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, text=True
    )

    assert len(set(done.stdout.split())) == 5
