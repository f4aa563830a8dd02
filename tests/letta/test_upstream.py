"""Answers that no real Letta gives: none is believed, none hangs, and none costs an entry.

What is scripted is one answer; all the rest goes to the real Letta and back.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.conftest import StartService
from tests.letta import scripted
from tests.letta.scripted import Asked, Reply, ScriptedLetta, answers_with, says
from tests.letta.seen import everything, settled, texts
from tests.support.client import Api, Json, answer
from tests.support.letta import RealLetta
from tests.support.service import InProcessService
from tests.support.storage import Storage
from tests.support.tree import Tree, grow_tree, unique_checkpoint
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.letta,
    pytest.mark.parametrize("archive", ["letta"], indirect=True),
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
]

KEY = "hunter2-the-key-of-letta"
TIMEOUT_S = 2.0
INDEX_WAIT_S = 0.5
# For everything that is not Letta, on a busy machine.
MARGIN_S = 30.0

HALF_ANSWERS = {
    "HTML": says("<html>we are moving</html>", kind="text/html"),
    "HTML that claims to be JSON": says("<html>we are moving</html>"),
    "null": says("null"),
    "an empty object": says("{}"),
    "an empty body": says(""),
    "an error": says('{"detail":"An unknown error occurred"}', status=500),
    "too busy": says('{"detail":"slow down"}', status=429),
    "cut": scripted.is_carried_out_and_cut,
    "silence": scripted.says_nothing,
    "a head and silence": scripted.says_nothing_after_the_head,
    "a byte at a time": scripted.drips,
}


@pytest.fixture
def upstream(letta: RealLetta) -> Iterator[ScriptedLetta]:
    with ScriptedLetta(letta.base_url) as upstream:
        yield upstream


@pytest.fixture
def scripted_service(
    upstream: ScriptedLetta, start_service: StartService, archive_settings: dict[str, object]
) -> InProcessService:
    """A service with the scripted Letta behind it, impatient, and with a key."""
    settings = archive_settings | {
        "letta_base_url": upstream.base_url,
        "letta_api_key": KEY,
        "letta_timeout_s": TIMEOUT_S,
        "index_wait_s": INDEX_WAIT_S,
    }
    return start_service(storage=None, **settings)


@pytest.fixture
def storage(scripted_service: InProcessService) -> Storage:
    return scripted_service.storage


@pytest.fixture
def grown(scripted_service: InProcessService) -> Iterator[Tree]:
    """The example tree behind the scripted Letta."""
    with Api(scripted_service.base_url) as api:
        yield grow_tree(api, unique_checkpoint())


@pytest.fixture
def planted(grown: Tree) -> Tree:
    """The example tree with entries that the archive has."""
    answer(grown.api.write_batch(grown["root"], ["about cats", "about dogs", "about boats"]))
    settled(grown.api, grown.checkpoint)
    return grown


def problem(response: httpx.Response) -> Json:
    """Return the problem document of a search that could not be answered."""
    assert response.status_code == httpx.codes.SERVICE_UNAVAILABLE, response.text
    assert int(response.headers["Retry-After"]) >= 1
    found: Json = response.json()
    return found


# Searches


@pytest.mark.parametrize("reply", HALF_ANSWERS.values(), ids=HALF_ANSWERS.keys())
def test_a_search_with_half_an_answer_is_a_503_in_time_that_says_why(
    planted: Tree, upstream: ScriptedLetta, reply: Reply
) -> None:
    upstream.script(scripted.SEARCH, reply)
    started = time.monotonic()

    found = problem(planted.api.search(planted["a"], "cats", claim=planted["a"]))

    assert time.monotonic() - started < TIMEOUT_S + MARGIN_S
    assert "Letta" in found["detail"]
    assert "we are moving" not in found["detail"]


@pytest.mark.parametrize(
    "result",
    [
        {"id": "passage-1"},
        {"id": "passage-1", "content": None},
        {"content": "a foreign text"},
        "a foreign text",
    ],
    ids=["no content", "null content", "no id", "a bare text"],
)
def test_a_result_that_lacks_a_part_makes_no_answer(
    planted: Tree, upstream: ScriptedLetta, result: object
) -> None:
    upstream.script(scripted.SEARCH, answers_with(lambda found: {**found, "results": [result]}))

    response = planted.api.search(planted["a"], "cats", claim=planted["a"])

    problem(response)
    assert "a foreign text" not in response.text


def test_the_words_of_a_result_are_the_ledgers_and_not_lettas(
    planted: Tree, upstream: ScriptedLetta
) -> None:
    def foreign(found: Any) -> Any:
        for result in found["results"]:
            result["content"] = "a foreign text"
        return found

    upstream.script(scripted.SEARCH, answers_with(foreign))

    assert planted.search("a", "cats", limit=1) == ["about cats"]


def test_a_search_works_again_as_soon_as_letta_does(planted: Tree, upstream: ScriptedLetta) -> None:
    upstream.script(scripted.SEARCH, says("null"), times=1)
    problem(planted.api.search(planted["a"], "cats", claim=planted["a"]))

    assert planted.search("a", "cats", limit=1) == ["about cats"]


# Redirects and the key


def test_a_redirect_to_another_host_is_not_followed_with_the_key(
    planted: Tree, upstream: ScriptedLetta, letta: RealLetta
) -> None:
    with ScriptedLetta(letta.base_url) as elsewhere:
        for status in (301, 302, 307, 308):
            upstream.restore()
            upstream.script(
                scripted.ANYTHING,
                says("", status=status, location=f"{elsewhere.base_url}/v1/somewhere"),
            )
            found = problem(planted.api.search(planted["a"], "cats", claim=planted["a"]))
            assert "redirects" in found["detail"]
        [late] = planted.write("a", "written while it redirects")

        assert not late["indexed"]
        assert elsewhere.asked == []


def test_letta_gets_its_key_with_every_call(planted: Tree, upstream: ScriptedLetta) -> None:
    planted.search("a", "cats")

    assert {asked.headers["authorization"] for asked in upstream.asked} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("status", [400, 401, 403, 422, 500])
def test_a_key_that_letta_echoes_is_shown_nowhere(
    planted: Tree, upstream: ScriptedLetta, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    echo = f'{{"detail": "what a bad key: Bearer {KEY}"}}'
    upstream.script(scripted.ANYTHING, says(echo, status=status))

    shown = [planted.api.search(planted["a"], "cats", claim=planted["a"]).text]
    shown.append(planted.api.write(planted["a"], "written meanwhile").text)
    answer(planted.api.put_core_memory(planted.checkpoint, persona="set meanwhile"))
    wait_until(
        lambda: answer(planted.api.readyz())["archive"], describe="readiness tells of the trouble"
    )
    shown += [
        planted.api.readyz().text,
        planted.api.metrics().text,
        planted.api.get_checkpoint(planted.checkpoint).text,
        planted.api.request("POST", f"/checkpoints/{planted.checkpoint}/reconcile").text,
        *capfd.readouterr(),
    ]

    assert [text for text in shown if KEY in text] == []


# Writes


@pytest.mark.parametrize("reply", HALF_ANSWERS.values(), ids=HALF_ANSWERS.keys())
def test_a_write_with_half_an_answer_is_answered_in_time_and_indexed_later(
    planted: Tree, upstream: ScriptedLetta, letta: RealLetta, reply: Reply
) -> None:
    upstream.script(scripted.INSERT, reply)
    started = time.monotonic()

    [entry] = planted.write("a", "written meanwhile")

    assert time.monotonic() - started < INDEX_WAIT_S + MARGIN_S
    assert not entry["indexed"]
    upstream.restore()
    settled(planted.api, planted.checkpoint)
    assert texts(letta, planted.checkpoint).count("written meanwhile") == 1
    assert planted.search("a1", "written meanwhile", limit=1) == ["written meanwhile"]


FIVE = [f"the {word} of five" for word in ("first", "second", "third", "fourth", "fifth")]
HALF_BATCHES: dict[str, Callable[[Any], Any]] = {
    "three of five": lambda stored: stored[:3],
    "another order": lambda stored: stored[::-1],
    "an empty list": lambda _: [],
    "an empty body": lambda _: None,
    "one of them twice": lambda stored: [*stored, stored[0]],
    "another's texts": lambda stored: [
        {**item, "text": other["text"]}
        for item, other in zip(stored, stored[1:] + stored[:1], strict=True)
    ],
    "a stranger's": lambda stored: [
        {**item, "metadata": {"entry": "of-nobody"}} for item in stored
    ],
    "nobody's": lambda stored: [{**item, "metadata": None} for item in stored],
}


@pytest.mark.parametrize("change", HALF_BATCHES.values(), ids=HALF_BATCHES.keys())
def test_each_entry_of_a_batch_gets_its_own_passage_whatever_letta_answers(
    grown: Tree, upstream: ScriptedLetta, letta: RealLetta, change: Callable[[Any], Any]
) -> None:
    grown.write("b", "so that the agent is there")
    settled(grown.api, grown.checkpoint)
    upstream.script(scripted.INSERT, answers_with(change), times=1)

    answer(grown.api.write_batch(grown["root"], FIVE))
    settled(grown.api, grown.checkpoint)

    written = {
        item["text"]: item["id"] for item in answer(grown.api.entries(grown["root"]))["items"]
    }
    there = [item for item in letta.passages(grown.checkpoint) if item["text"] in FIVE]
    assert sorted(item["text"] for item in there) == sorted(FIVE)
    for passage in there:
        assert passage["metadata"]["entry"] == written[passage["text"]]
    for text in FIVE:
        assert grown.search("a", text, limit=1) == [text]
    found = answer(grown.api.request("POST", f"/checkpoints/{grown.checkpoint}/reconcile"))
    wrong = ("missing", "differing", "orphans", "doubles")
    assert {name: found[name] for name in wrong} == {name: [] for name in wrong}


def test_a_batch_that_is_too_large_for_letta_comes_in_parts(
    planted: Tree, upstream: ScriptedLetta, letta: RealLetta
) -> None:
    upstream.script(
        scripted.INSERT,
        says('{"detail":"too large"}', status=413),
        when=lambda asked: len(asked.texts) > 1,
    )

    answer(planted.api.write_batch(planted["a"], [f"number {number}" for number in range(20)]))

    assert settled(planted.api, planted.checkpoint)["refused"] == 0
    assert len(texts(letta, planted.checkpoint)) == 3 + 20


# One that Letta will not have


REFUSED_WORD = "REFUSE-ME"


def refused_word(asked: Asked) -> bool:
    return REFUSED_WORD.encode() in asked.body


@pytest.fixture
def refusing(planted: Tree, upstream: ScriptedLetta) -> Tree:
    """A tree of which twenty entries were written at once, one of them not to Letta's liking."""
    upstream.script(
        scripted.INSERT, says('{"detail":"not to my liking"}', status=400), when=refused_word
    )
    words = [f"number {number}" for number in range(19)]
    words.insert(9, f"please {REFUSED_WORD} at once")
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda text: planted.write("a", text), words))
    settled(planted.api, planted.checkpoint)
    return planted


def refused_row(storage: Storage) -> tuple[int, int]:
    """Return how often the refused entry was tried, and when it is tried again."""
    with closing(sqlite3.connect(storage.data_dir / "lineage.db")) as database:
        query = "SELECT tries, retry_us FROM entries WHERE text LIKE ?"
        [row] = database.execute(query, [f"%{REFUSED_WORD}%"]).fetchall()
    return row[0], row[1]


def let_it_be_due(storage: Storage) -> None:
    """Let the refused entry be tried now."""
    with closing(sqlite3.connect(storage.data_dir / "lineage.db")) as database, database:
        database.execute("UPDATE entries SET retry_us = 1 WHERE refused IS NOT NULL")


def test_an_entry_that_letta_refuses_holds_back_no_other(refusing: Tree, letta: RealLetta) -> None:
    with ThreadPoolExecutor(20) as pool:
        later = list(pool.map(lambda n: refusing.write("b", f"later {n}")[0], range(20)))

    settled(refusing.api, refusing.checkpoint)
    there = texts(letta, refusing.checkpoint)
    assert len(there) == len(set(there)) == 3 + 19 + len(later)


def test_an_entry_that_letta_refuses_is_shown_with_the_reason(refusing: Tree) -> None:
    shown = answer(refusing.api.get_checkpoint(refusing.checkpoint))

    assert (shown["entries"], shown["pending"], shown["refused"]) == (23, 0, 1)
    [refusal] = shown["refusals"]
    assert "not to my liking" in refusal["reason"]
    [entry] = [
        item
        for item in answer(refusing.api.entries(refusing["a"]))["items"]
        if item["id"] == refusal["entry_id"]
    ]
    assert REFUSED_WORD in entry["text"]
    assert not entry["indexed"]


@pytest.mark.usefixtures("refusing")
def test_an_entry_that_letta_refuses_is_tried_ever_more_rarely(storage: Storage) -> None:
    pauses = []
    for tries in range(1, 5):
        wait_until(
            lambda tries=tries: refused_row(storage)[0] == tries,  # type: ignore[misc]
            describe=f"it was tried {tries} times",
        )
        pauses.append(refused_row(storage)[1] / 1e6 - time.time())
        let_it_be_due(storage)

    # Each within half of twice the former one, less the seconds until we looked.
    assert [pause > 15 * 2**place - MARGIN_S for place, pause in enumerate(pauses)] == [True] * 4
    assert [pause <= 30 * 2**place for place, pause in enumerate(pauses)] == [True] * 4


def test_an_entry_that_letta_takes_at_last_is_indexed(
    refusing: Tree, upstream: ScriptedLetta, storage: Storage
) -> None:
    upstream.restore()
    let_it_be_due(storage)

    def taken() -> bool:
        return bool(answer(refusing.api.get_checkpoint(refusing.checkpoint))["refused"] == 0)

    wait_until(taken, describe="it is taken")
    assert answer(refusing.api.get_checkpoint(refusing.checkpoint))["refusals"] == []
    assert REFUSED_WORD in refusing.search("a1", f"please {REFUSED_WORD} at once", limit=1)[0]


# Vectors that are none


def with_embedding(change: Callable[[list[float]], list[float] | None]) -> Reply:
    """Change the vectors in the answer to an insert."""
    return answers_with(
        lambda stored: [{**item, "embedding": change(item["embedding"])} for item in stored]
    )


BAD_VECTORS: dict[str, Callable[[list[float]], list[float] | None]] = {
    "none": lambda _: None,
    "zeros": lambda vector: [0.0] * len(vector),
    "a shorter model's": lambda vector: [*vector[:128], *[0.0] * (len(vector) - 128)],
    "a longer model's": lambda vector: [*vector[:256], *vector[:256], *vector[512:]],
    "no numbers": lambda _: [],
}


@pytest.mark.parametrize("change", BAD_VECTORS.values(), ids=BAD_VECTORS.keys())
def test_a_passage_without_a_sound_vector_is_removed_and_sent_again(
    planted: Tree,
    upstream: ScriptedLetta,
    letta: RealLetta,
    capfd: pytest.CaptureFixture[str],
    change: Callable[[list[float]], list[float] | None],
) -> None:
    upstream.script(scripted.INSERT, with_embedding(change), times=1)

    [entry] = planted.write("a", "embedded badly at first")

    assert not entry["indexed"]
    settled(planted.api, planted.checkpoint)
    there = [item for item in letta.passages(planted.checkpoint) if item["text"] == entry["text"]]
    assert len(there) == 1
    assert upstream.count(r"DELETE /v1/archives/[^/]+/passages/[^/]+") == 1
    assert planted.search("a1", "embedded badly at first", limit=1) == ["embedded badly at first"]
    assert "passage_unsound" in capfd.readouterr().out


# What was made, and nobody knew


@pytest.mark.parametrize(
    "what",
    [scripted.MAKE_AGENT, scripted.MAKE_ARCHIVE, scripted.ATTACH, scripted.INSERT],
    ids=["agent", "archive", "attachment", "entries"],
)
def test_what_was_made_while_the_answer_was_lost_is_not_made_twice(
    grown: Tree, upstream: ScriptedLetta, letta: RealLetta, what: str
) -> None:
    upstream.script(what, scripted.is_carried_out_and_cut, times=2)

    answer(grown.api.write_batch(grown["root"], FIVE))
    settled(grown.api, grown.checkpoint)

    assert len(everything(letta, grown.checkpoint)) == 2
    assert texts(letta, grown.checkpoint) == FIVE


@pytest.mark.parametrize(
    "what", [scripted.MAKE_AGENT, scripted.MAKE_ARCHIVE], ids=["agent", "archive"]
)
def test_a_purge_finds_what_was_made_while_the_answer_was_lost(
    grown: Tree, upstream: ScriptedLetta, letta: RealLetta, what: str
) -> None:
    upstream.script(what, scripted.is_carried_out_and_cut)
    grown.write("root", "never taken")
    wait_until(lambda: everything(letta, grown.checkpoint), describe="something was made")

    grown.api.purge(grown.checkpoint)

    wait_until(lambda: not everything(letta, grown.checkpoint), describe="nothing is left")


# Reconciling


@pytest.mark.parametrize("reply", HALF_ANSWERS.values(), ids=HALF_ANSWERS.keys())
def test_a_reconcile_with_half_an_answer_changes_nothing(
    planted: Tree, upstream: ScriptedLetta, letta: RealLetta, reply: Reply
) -> None:
    upstream.script(scripted.LIST, reply)

    problem(planted.api.request("POST", f"/checkpoints/{planted.checkpoint}/reconcile"))

    assert answer(planted.api.get_checkpoint(planted.checkpoint))["pending"] == 0
    assert texts(letta, planted.checkpoint) == ["about cats", "about dogs", "about boats"]


def test_a_listing_that_is_empty_by_mistake_doubles_nothing(
    planted: Tree, upstream: ScriptedLetta, letta: RealLetta
) -> None:
    upstream.script(scripted.LIST, says("[]"))

    found = answer(planted.api.request("POST", f"/checkpoints/{planted.checkpoint}/reconcile"))

    assert len(found["missing"]) == 3
    settled(planted.api, planted.checkpoint)
    assert texts(letta, planted.checkpoint) == ["about cats", "about dogs", "about boats"]


# Core memory


def mirrored(tree: Tree, letta: RealLetta, persona: str) -> None:
    wait_until(
        lambda: letta.blocks(tree.checkpoint)["persona"] == persona,
        describe=f"{persona!r} is mirrored",
    )


@pytest.mark.parametrize("status", [404, 409, 500])
def test_a_block_update_that_fails_once_is_made_up_for(
    planted: Tree, upstream: ScriptedLetta, letta: RealLetta, status: int
) -> None:
    upstream.script(scripted.SET_BLOCK, says('{"detail":"no"}', status=status), times=1)

    set_now = answer(planted.api.put_core_memory(planted.checkpoint, persona="careful"))

    assert set_now["persona"] == "careful"
    mirrored(planted, letta, "careful")


@pytest.mark.parametrize("status", [404, 409, 500])
def test_a_mirror_that_fails_for_good_shows_and_catches_up_with_the_latest_value(
    planted: Tree, upstream: ScriptedLetta, letta: RealLetta, status: int
) -> None:
    upstream.script(scripted.SET_BLOCK, says('{"detail":"no"}', status=status))
    for persona in ("first", "second"):
        answer(planted.api.put_core_memory(planted.checkpoint, persona=persona))

    def trouble() -> bool:
        ready = answer(planted.api.readyz())
        return bool(ready["archive"]) and ready["lag"]["core_memories"] == 1

    wait_until(trouble, describe="readiness shows that the mirror lags")
    assert answer(planted.api.readyz())["status"] == "degraded"
    wait_until(
        lambda: 'lineage_archive_lag{kind="core_memories"} 1.0' in planted.api.metrics().text,
        describe="the metric shows that the mirror lags",
    )
    assert answer(planted.api.core_memory(planted.checkpoint))["persona"] == "second"
    assert letta.blocks(planted.checkpoint)["persona"] == ""

    upstream.restore()

    mirrored(planted, letta, "second")
    wait_until(
        lambda: answer(planted.api.readyz())["status"] == "ok", describe="readiness is well again"
    )
