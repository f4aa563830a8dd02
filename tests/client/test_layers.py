"""The layers of memory as an operator's program sees them."""

from collections.abc import Iterator

import pytest

from app.client import Layers, Refused, Service, Unreachable
from tests.support.http_proxy import Answers, HttpFaultProxy, Lost, Request
from tests.support.tree import Tree


@pytest.fixture
def layers(tree: Tree) -> Iterator[Layers]:
    with Service(str(tree.api.http.base_url)) as service:
        yield service.layers(tree.checkpoint)


def test_a_section_is_edited_where_its_version_is_the_one_seen(layers: Layers) -> None:
    seen = layers.section("active-context")
    written = layers.set_section("active-context", "- one", if_match=seen.etag)
    appended = layers.append_line("active-context", "- two", if_match=written.etag)
    replaced = layers.replace_line("active-context", "- one", "- 1", if_match=appended.etag)

    with pytest.raises(Refused) as refused:
        layers.append_line("active-context", "- stale", if_match=written.etag)

    assert (seen.text, seen.version, seen.title) == ("", 0, "Active Context")
    assert layers.section("active-context") == replaced
    assert (replaced.text, replaced.words) == ("- 1\n- two", 2)
    assert (refused.value.status, refused.value.document["etag"]) == (412, replaced.etag)


def test_core_memory_is_read_in_both_forms(layers: Layers) -> None:
    layers.set_section("user", "Ada, 東京", if_match="*")

    assert (layers.core().human, layers.core().words) == ("Ada, 東京", 3)
    assert "\n## User\n\nAda, 東京\n" in layers.core_markdown()


def test_a_note_is_written_once_found_and_corrected(layers: Layers) -> None:
    made = layers.write_note("learnings", "Rates", "Rate 0.1 diverges", tags=["training"])
    same = layers.write_note("learnings", "Rates", "Rate 0.1 diverges", tags=["training"])
    assert same == made
    assert (made.ref, made.tags) == ("learnings/rates", ("training",))

    text = made.text.replace("0.1", "0.2")
    corrected = layers.correct_note(made.id, text, if_match=made.etag)
    with pytest.raises(Refused) as refused:
        layers.correct_note(made.id, "stale", if_match=made.etag)

    assert refused.value.status == 412
    assert layers.notes() == layers.notes(topic="learnings", name="rates") == [corrected]
    assert layers.note(made.id).text == made.text
    assert [hit.note for hit in layers.search_notes("rate").results] == [corrected]
    assert layers.write_note_text("people", "ada", "Ada likes 東京.\n").text == "Ada likes 東京.\n"


def test_daily_notes_are_written_and_listed_by_their_day(layers: Layers) -> None:
    today = layers.write_daily_note("The sweep began", heading="Morning")
    past = layers.write_daily_note("The sweep was planned", date="2026-03-14")
    timed = layers.write_daily_note("Early bird", at="2026-03-15T03:04:00+09:00")

    assert layers.daily_notes() == [today, past, timed]
    assert layers.daily_notes(date="2026-03-14") == [past]
    assert (today.at is None, past.at, timed.at and timed.at.isoformat()) == (
        False,
        None,
        "2026-03-15T03:04:00+09:00",
    )
    assert timed.date.isoformat() == "2026-03-15"
    assert layers.session().notes == (today,)
    assert [hit.text for hit in layers.search_recall("planned", limit=1).results] == [past.text]


def test_what_moves_between_the_layers_is_told_step_by_step(layers: Layers, tree: Tree) -> None:
    layers.set_section("active-context", "- sweep runs\n- sites", if_match="*")
    layers.write_daily_note("Decision: train in bf16.")
    with Service(str(tree.api.http.base_url)) as service:
        moving = service.movements(tree.checkpoint)

        dry, demoted = (
            moving.demote(
                *("active-context", "sites"),
                topic="projects",
                title="Sites",
                tags=["x"],
                dry_run=dry_run,
            )
            for dry_run in (True, False)
        )
        promoted = moving.promote(demoted.steps[0].ref, section="user")
        taken = moving.consolidate(days=7)
        trimmed = moving.trim(max_words=1)
        beaten = moving.heartbeat(days=7, max_words=1_000)

    assert (dry.diff, dry.dry_run, dry.changed) == (demoted.diff, True, True)
    [step] = demoted.steps
    assert (step.action, step.section, step.text) == ("demoted", "active-context", "sites")
    assert step.ref == "projects/sites"
    assert [item.action for item in promoted.steps] in (["promoted"], ["kept"])
    assert [item.action for item in taken.steps] == ["extracted"]
    assert (trimmed.max_words, trimmed.words <= demoted.words) == (1, True)
    assert (beaten.changed, beaten.diff, beaten.over_budget) == (False, "", False)


def test_every_page_of_a_list_is_read(layers: Layers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.client.layers.PAGE", "2")
    for number in range(5):
        layers.write_daily_note(f"note {number}")

    assert [note.text for note in layers.daily_notes()] == [f"note {n}" for n in range(5)]


@pytest.fixture
def behind(proxy: HttpFaultProxy, tree: Tree) -> Iterator[Layers]:
    """The layers behind a gateway that fails on demand."""
    with Service(f"http://127.0.0.1:{proxy.port}") as service:
        yield service.layers(tree.checkpoint)


def test_what_is_stored_is_sent_again_and_stored_once(
    behind: Layers, layers: Layers, proxy: HttpFaultProxy
) -> None:
    fates = [Lost.CUT, None]
    proxy.meddle(lambda _: fates.pop(0))

    note = behind.write_daily_note("once")

    assert layers.daily_notes() == [note]


def test_an_edit_whose_answer_was_lost_is_told_and_not_sent_again(
    behind: Layers, layers: Layers, proxy: HttpFaultProxy
) -> None:
    sent: list[Request] = []

    def lose(request: Request) -> Lost:
        sent.append(request)
        return Lost.CUT

    proxy.meddle(lose)

    with pytest.raises(Unreachable):
        behind.append_line("user", "- Ada", if_match='"0"')

    assert len(sent) == 1
    assert layers.section("user").text == "- Ada"


def test_what_is_not_the_service_is_said_to_be_something_else(
    behind: Layers, proxy: HttpFaultProxy
) -> None:
    proxy.meddle(lambda _: Answers(200))

    with Service(f"http://127.0.0.1:{proxy.port}") as service:
        moving = service.movements("exp1")
        with pytest.raises(Unreachable, match="is not letta-lineage"):
            moving.trim()
    for call in (behind.core, behind.core_markdown, behind.notes, behind.session):
        with pytest.raises(Unreachable, match="is not letta-lineage"):
            call()
