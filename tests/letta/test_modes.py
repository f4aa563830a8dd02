"""The three ways to search agree on one database and one Letta, however short a window falls."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from tests.letta.seen import settled
from tests.support.client import Api, Json, answer
from tests.support.letta import RealLetta
from tests.support.postgres import Postgres
from tests.support.service import InProcessService
from tests.support.storage import Storage, fresh_storage
from tests.support.tree import Tree, grow_tree, unique_checkpoint

pytestmark = pytest.mark.letta

MODES = ("auto", "archive", "scoped")
QUERY = "the learning rate diverges"
SAID, NEARER = "the very same words", "the very same words again"
CROWD = 110
"""Entries of a sibling, nearer to the query than most of the lineage: a window of 40 is theirs."""

LINEAGE: Mapping[str, list[tuple[str, str]]] = {
    "root": [
        ("the learning rate diverges", "log"),
        ("a batch of images", "rare"),
        ("the optimizer is Adam with a learning rate of 1e-3", "decision"),
        ("said twice", "log"),
        ("tokens are cut at 512", "log"),
    ],
    "a": [
        ("said twice", "decision"),
        ("the loss diverges after an hour", "log"),
        ("tokens are cut at 512", "decision"),
        ("we keep the rate", "log"),
        ("???", "log"),
    ],
    "a1": [
        ("said twice", "log"),
        ("the learning rate diverges", "decision"),
        ("a table of results", "rare"),
    ],
}


@dataclass(frozen=True)
class Question:
    """A search that every mode has to answer alike."""

    query: str = QUERY
    limit: int = 5
    include_self: bool = True
    ancestors: tuple[str, ...] | None = None
    matching: Json = field(default_factory=dict)


QUESTIONS = {
    "as it comes": Question(),
    "one": Question(limit=1),
    "two": Question(limit=2),
    "all": Question(limit=13),
    "more than there are": Question(limit=100),
    "without its own": Question(include_self=False, limit=100),
    "one ancestor": Question(ancestors=("root",), include_self=False, limit=100),
    "decisions": Question(matching={"type": "decision"}, limit=3),
    "all decisions": Question(matching={"type": "decision"}, limit=100),
    "rare ones": Question(matching={"type": "rare"}, limit=2),
    "one rare one": Question(matching={"type": "rare"}, limit=1),
    "nothing": Question(matching={"type": "picture"}),
    "what was said twice": Question("said twice", limit=3),
    "two of what was said three times": Question("said twice", limit=2),
    "a query without direction": Question("???", limit=4),
    "of something else": Question("photographs of cats", limit=7),
    "characters of a url": Question("&tags=x#%/?", limit=4),
}


class Modes:
    """One service for each mode, all on one database."""

    def __init__(self, storage: Storage, stack: ExitStack, settings: Json) -> None:
        self._storage, self._stack, self._settings = storage, stack, settings
        self.apis = {mode: self.start(search=mode) for mode in MODES}
        self.tree = grow_tree(self.apis["auto"], unique_checkpoint())
        self._write()
        self.equals = grow_tree(self.apis["auto"], unique_checkpoint())
        self._write_equals()

    def start(self, **settings: object) -> Api:
        """Start one more service on the same database."""
        service = InProcessService(self._storage, **self._settings | settings)
        self._stack.enter_context(service)
        return self._stack.enter_context(Api(service.base_url))

    def _write(self) -> None:
        crowd = [f"{QUERY} {number}" for number in range(CROWD)]
        for name, texts in LINEAGE.items():
            entries = [{"text": text, "metadata": {"type": kind}} for text, kind in texts]
            answer(self.tree.api.write_batch(self.tree[name], entries))
            if name == "root":
                answer(self.tree.api.write_batch(self.tree["b"], crowd))
        settled(self.tree.api, self.tree.checkpoint)

    def _write_equals(self) -> None:
        """Say the same more often than a window holds, in the lineage and beside it."""
        tree = self.equals
        for _ in range(12):
            answer(tree.api.write_batch(tree["root"], [SAID] * 10))
            answer(tree.api.write_batch(tree["b"], [SAID] * 20))
        # They push some of the equal ones out of the window, at Letta's choice.
        answer(tree.api.write_batch(tree["b"], [NEARER] * 25))
        answer(tree.api.write(tree["root"], "so that Letta looks among those as well"))
        settled(tree.api, tree.checkpoint)


@pytest.fixture(scope="module")
def modes(
    postgres: Postgres,
    letta: RealLetta,
    letta_instance: str,
    letta_embeddings: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Modes]:
    settings = letta.settings(letta_instance) | {
        "embeddings_url": letta_embeddings,
        "letta_overfetch": 1,
    }
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("modes") / "data"
        storage = stack.enter_context(fresh_storage(folder, server=postgres))
        yield Modes(storage, stack, settings)


def found(api: Api, tree: Tree, question: Question, *, node: str = "a1") -> list[str]:
    """Return the ids found, best first."""
    ancestors = None if question.ancestors is None else [tree[name] for name in question.ancestors]
    response = api.search(
        tree[node],
        question.query,
        limit=question.limit,
        include_self=question.include_self,
        ancestor_ids=ancestors,
        metadata=question.matching or None,
        claim=tree[node],
    )
    return [hit["entry_id"] for hit in answer(response)["results"]]


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_the_modes_agree_on_what_is_found_and_in_which_order(
    modes: Modes, question: Question
) -> None:
    answers = {mode: found(api, modes.tree, question) for mode, api in modes.apis.items()}

    assert answers["archive"] == answers["scoped"]
    assert answers["auto"] == answers["scoped"]


@pytest.mark.parametrize("mode", MODES)
def test_a_shorter_answer_begins_a_longer_one(modes: Modes, mode: str) -> None:
    answers = [
        found(modes.apis[mode], modes.tree, Question("said twice", limit=limit))
        for limit in (1, 2, 3, 8, 13, 100)
    ]

    assert all(len(answers[-1]) >= len(shorter) for shorter in answers)
    assert [answers[-1][: len(shorter)] for shorter in answers] == answers


@pytest.mark.parametrize("mode", MODES)
def test_all_of_the_scope_is_found_however_much_else_is_nearer(modes: Modes, mode: str) -> None:
    ids = found(modes.apis[mode], modes.tree, Question(limit=100))

    assert len(ids) == sum(len(texts) for texts in LINEAGE.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_of_what_was_said_more_often_than_a_window_holds_the_oldest_is_found(
    modes: Modes, mode: str, limit: int
) -> None:
    api, tree = modes.apis[mode], modes.equals
    oldest = [entry["id"] for entry in answer(api.entries(tree["root"]))["items"]][:limit]

    assert found(api, tree, Question(NEARER, limit=limit), node="a") == oldest


@pytest.mark.parametrize("overfetch", [2, 3, 5, 200, 1000])
def test_the_width_of_the_window_does_not_show_in_the_answer(modes: Modes, overfetch: int) -> None:
    api = modes.start(search="archive", letta_overfetch=overfetch)

    for question in (Question(), Question(limit=1), Question("said twice", limit=2)):
        assert found(api, modes.tree, question) == found(modes.apis["scoped"], modes.tree, question)


# What a search cost


def metrics(api: Api) -> dict[str, float]:
    """Return the metrics of searches, by name with labels."""
    lines = re.findall(r"^(lineage_search_\S+) (\S+)$", api.metrics().text, re.MULTILINE)
    return {name: float(value) for name, value in lines}


def growth(api: Api, before: Mapping[str, float], name: str, mode: str, by: str) -> float:
    series = f'lineage_search_{name}{{mode="{mode}",ranked_by="{by}"}}'
    return metrics(api).get(series, 0.0) - before.get(series, 0.0)


def test_a_search_that_is_ranked_here_counts_no_window(modes: Modes) -> None:
    api = modes.apis["scoped"]
    before = metrics(api)

    found(api, modes.tree, Question())

    assert growth(api, before, "rounds_count", "scoped", "ledger") == 1
    assert growth(api, before, "rounds_sum", "scoped", "ledger") == 0
    assert growth(api, before, "window_sum", "scoped", "ledger") == 0
    assert growth(api, before, "letta_seconds_sum", "scoped", "ledger") == 0


def test_a_search_that_letta_ranks_counts_its_windows_and_the_time_they_took(
    modes: Modes,
) -> None:
    api = modes.start(search="archive", letta_overfetch=1)

    found(api, modes.tree, Question("a table of results", limit=1))

    assert growth(api, {}, "rounds_sum", "archive", "letta") == 1
    assert growth(api, {}, "window_sum", "archive", "letta") == 40
    assert growth(api, {}, "letta_seconds_sum", "archive", "letta") > 0


def test_a_window_that_misses_the_scope_is_widened_and_counted(modes: Modes) -> None:
    api = modes.start(search="archive", letta_overfetch=1)

    found(api, modes.tree, Question(matching={"type": "decision"}, limit=2))

    assert growth(api, {}, "rounds_sum", "archive", "letta") > 1
    # Everything counts as infinity.
    assert growth(api, {}, "window_sum", "archive", "letta") == float("inf")


def test_a_window_that_would_miss_the_scope_is_not_asked_for_where_we_may_rank(
    modes: Modes,
) -> None:
    api = modes.start(search="auto", letta_overfetch=1)

    found(api, modes.tree, QUESTIONS["one rare one"])

    assert growth(api, {}, "rounds_count", "auto", "ledger") == 1
    assert growth(api, {}, "rounds_sum", "auto", "ledger") == 0
