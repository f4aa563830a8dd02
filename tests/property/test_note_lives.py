"""Random lives of an archive of notes, on every replica and through an archive that leaks.

The model knows what was acknowledged: which notes count, under which names, and which note took
whose place. Lists and searches of every replica show exactly those that count; all are readable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.conftest import DatabaseKind, StartService
from tests.property.leaky_archive import make_leaky
from tests.support.client import Api, Json, answer
from tests.support.examples import NEW, SAME_AND_LONG
from tests.support.tree import unique_checkpoint
from tests.support.wait import wait_until

TOPICS = ("learnings", "projects")
NAMES = ("rate", "door", "日本")
SUMMARIES = ("Loss fell.", "The door is blue.", "学習率を下げた。")
DAY = "2026-06-08"


@dataclass
class Known:
    """What the model knows of a note."""

    topic: str
    name: str
    text: str
    superseded_by: str | None = None


@dataclass
class World:
    """The replicas of one service, whose archives leak every id that there ever was."""

    replicas: list[Api]
    leaked: list[str] = field(default_factory=list)


class NoteLives(RuleBasedStateMachine):
    """A machine over one world; see `lives_in`."""

    world: World
    notes: Bundle[str] = Bundle("notes")

    @initialize()
    def begin(self) -> None:
        self.checkpoint = unique_checkpoint()
        self.known: dict[str, Known] = {}
        self.turns = 0
        answer(self.api.checkpoint(self.checkpoint))

    @property
    def api(self) -> Api:
        """Each request goes to the next replica."""
        self.turns += 1
        return self.world.replicas[self.turns % len(self.world.replicas)]

    def counting(self, topic: str | None = None) -> dict[str, Known]:
        return {
            note_id: note
            for note_id, note in self.known.items()
            if note.superseded_by is None and topic in (None, note.topic)
        }

    def free(self, topic: str, name: str, *, but: str | None = None) -> str:
        taken = {note.name for key, note in self.counting(topic).items() if key != but}
        numbered = [name, *(f"{name}-{number}" for number in range(2, 99))]
        return next(each for each in numbered if each not in taken)

    def learn(self, note: Json) -> str:
        note_id: str = note["id"]
        self.known[note_id] = Known(note["topic"], note["name"], note["text"])
        self.world.leaked.append(note_id)
        return note_id

    @rule(
        target=notes,
        topic=st.sampled_from(TOPICS),
        name=st.sampled_from(NAMES),
        summary=st.sampled_from(SUMMARIES),
    )
    def write(self, topic: str, name: str, summary: str) -> str:
        expected = self.free(topic, name)
        response = self.api.write_note(
            self.checkpoint, topic, name=name, title="T", summary=summary, date=DAY
        )
        note = answer(response)
        if response.status_code == 200:
            stored = self.counting()[note["id"]]
            assert (stored.topic, stored.text) == (topic, note["text"])
            assert stored.name.partition("-")[0] == name
            return str(note["id"])
        same = [
            key
            for key, each in self.counting(topic).items()
            if each.text == note["text"] and each.name.partition("-")[0] == name
        ]
        assert same == []
        assert note["name"] == expected
        return self.learn(note)

    @rule(
        target=notes,
        note=notes,
        name=st.sampled_from((None, *NAMES)),
        summary=st.sampled_from(SUMMARIES),
    )
    def correct(self, note: str, name: str | None, summary: str) -> str:
        last = note
        while (above := self.known[last].superseded_by) is not None:
            last = above
        former = self.known[last]
        sent = {"title": "T", "summary": summary, **({"name": name} if name else {})}
        etag = self.api.get_note(self.checkpoint, note).headers["ETag"]
        assert etag == f'"{note}"'
        if last != note:
            refused = self.api.correct_note(self.checkpoint, note, if_match=etag, **sent)
            assert (refused.status_code, refused.headers["ETag"]) == (412, f'"{last}"')
            etag = refused.headers["ETag"]

        new = answer(self.api.correct_note(self.checkpoint, note, if_match=etag, **sent))

        expected = self.free(former.topic, name or former.name, but=last)
        assert (new["topic"], new["name"]) == (former.topic, expected)
        if new["id"] == last:
            assert (former.text, former.name) == (new["text"], expected)
            return last
        assert new["supersedes"] == [last]
        former.superseded_by = new["id"]
        return self.learn(new)

    @rule(mode=st.sampled_from(("skip", "merge", "overwrite")))
    def restore(self, mode: str) -> None:
        snapshot = self.api.backup(self.checkpoint).content

        answer(self.api.restore(self.checkpoint, snapshot, on_conflict=mode))

        wait_until(
            lambda: answer(self.api.get_checkpoint(self.checkpoint))["pending"] == 0,
            describe="what was restored is searchable",
        )
        assert self.api.backup(self.checkpoint).content == snapshot

    @invariant()
    def every_replica_shows_what_counts_and_nothing_else(self) -> None:
        if not hasattr(self, "known"):
            return
        expected = list(self.counting())
        for api in self.world.replicas:
            listed = answer(api.notes(self.checkpoint, limit=1000))["items"]
            assert [note["id"] for note in listed] == expected
            found = answer(api.search_notes(self.checkpoint, "loss of a door", limit=100))
            assert sorted(hit["id"] for hit in found["results"]) == sorted(expected[:100])
            assert found["pending"] == 0
        refs = [(note.topic, note.name) for note in self.counting().values()]
        assert len(set(refs)) == len(refs)

    def teardown(self) -> None:
        for note_id, note in getattr(self, "known", {}).items():
            shown = answer(self.api.get_note(self.checkpoint, note_id))
            assert (shown["text"], shown["superseded_by"]) == (note.text, note.superseded_by)
        self.world.leaked.clear()


def lives_in(world: World) -> type[NoteLives]:
    """Return the machine over a world."""
    return type("Lives", (NoteLives,), {"world": world})


@pytest.fixture
def world(start_service: StartService, database: DatabaseKind) -> Iterator[World]:
    first = start_service()
    services = [first]
    if database == "postgresql":
        services.append(start_service(storage=first.storage))
    world = World([Api(service.base_url) for service in services])
    for seed, service in enumerate(services):
        make_leaky(service, world.leaked, seed=seed)
    yield world
    for api in world.replicas:
        api.close()


def test_lists_and_searches_show_what_counts_whatever_was_done(world: World) -> None:
    some = settings(SAME_AND_LONG, max_examples=8, stateful_step_count=30)
    run_state_machine_as_test(lives_in(world), settings=some)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_and_so_in_many_lives(world: World) -> None:
    many = settings(NEW, max_examples=60, stateful_step_count=40)
    run_state_machine_as_test(lives_in(world), settings=many)
