"""Whatever people wrote, a movement loses nothing, keeps core within its limit, and settles."""

import datetime as dt
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.layers.core import Section
from app.layers.daily import read_day
from app.layers.errors import UnknownItem, UnknownNote
from app.layers.markdown.facts import fact, facts
from app.layers.movements import (
    Action,
    Layers,
    consolidate,
    demote,
    heartbeat,
    merge,
    plan,
    promote,
    trim,
)
from app.layers.movements.state import referred
from app.layers.note import Note, Topic, free_name
from app.layers.words import count_words
from tests.layers.texts import texts

TODAY = dt.date(2026, 11, 30)
LIMIT = 40
OWN_OF_QUICK_REFERENCE = "reference/quick-reference"


def note_of(topic: Topic, name: str, details: str, *, title: str | None = None) -> Note:
    return Note.write(
        topic,
        name,
        title=title or name,
        date=TODAY,
        summary=f"About {name}",
        details=details,
        tags=["a", "b"],
    )


@st.composite
def some_layers(draw: st.DrawFn) -> Layers:
    notes: list[Note] = []
    for _ in range(draw(st.integers(0, 3))):
        topic = draw(st.sampled_from([Topic.PROJECTS, Topic.REFERENCE]))
        name = free_name(
            draw(st.sampled_from(["x", "y", "active-context"])), [note.name for note in notes]
        )
        text = draw(texts(max_lines=5))
        if draw(st.booleans()):
            notes.append(note_of(topic, name, text, title=draw(st.sampled_from(["Same", name]))))
        else:
            notes.append(Note.read(topic, name, text, otherwise=TODAY))
    days = [
        item
        for back in range(draw(st.integers(0, 3)))
        for item in read_day(draw(texts(max_lines=6)), TODAY - dt.timedelta(days=back))
    ]
    sections = {section: draw(texts(max_lines=8)) for section in Section}
    return Layers({**sections, Section.IDENTITY: "Mira's assistant"}, notes, days)


def kept(layers: Layers) -> set[str]:
    said = [statement for body in layers.core.values() for statement in facts(body)]
    said += [statement for note in layers.notes for statement in (*note.facts, note.summary_fact)]
    return own_words(said)


def of_days(layers: Layers) -> set[str]:
    return own_words(item.fact for item in layers.days)


def own_words(statements: Iterable[str]) -> set[str]:
    """Return what facts say beside where else to look, which a merge lets follow the note."""
    said = (referred(statement)[0] for statement in statements)
    return {re.sub(r"See archival: \S+", "See archival", statement) for statement in said} - {""}


def found(layers: Layers, counts: Iterable[int]) -> dict[str, int]:
    return {note.ref: count for note, count in zip(layers.notes, counts, strict=False)}


@given(some_layers())
def test_trim_loses_nothing_and_ends_within_the_limit(layers: Layers) -> None:
    after = trim(layers, today=TODAY, max_words=LIMIT).layers

    assert kept(layers) <= kept(after)
    headings = layers.words - sum(
        count_words(block) for body in layers.core.values() for block in facts(body)
    )
    if headings < LIMIT // 4:
        assert after.words <= LIMIT


@given(some_layers())
def test_trim_leaves_a_core_within_its_limit_alone(layers: Layers) -> None:
    assert not plan(layers, trim(layers, today=TODAY, max_words=layers.words).layers)


@given(some_layers())
def test_trim_never_touches_identity(layers: Layers) -> None:
    after = trim(layers, today=TODAY, max_words=1).layers

    assert after.core[Section.IDENTITY] == layers.core[Section.IDENTITY]


@given(some_layers())
def test_consolidate_archives_what_the_days_say_once(layers: Layers) -> None:
    moved = consolidate(layers, today=TODAY)

    assert of_days(layers) <= kept(moved.layers)
    assert kept(layers) <= kept(moved.layers)
    assert moved.layers.core == layers.core
    assert not plan(moved.layers, consolidate(moved.layers, today=TODAY).layers)


@given(some_layers())
def test_merge_loses_nothing_and_leaves_no_two_alike(layers: Layers) -> None:
    moved = merge(layers)

    assert kept(layers) <= kept(moved.layers)
    assert not plan(moved.layers, merge(moved.layers).layers)


@given(some_layers(), st.lists(st.integers(0, 4), max_size=4))
def test_a_second_heartbeat_changes_nothing(layers: Layers, counts: list[int]) -> None:
    often = found(layers, counts)
    first = heartbeat(layers, today=TODAY, max_words=LIMIT, found=often)
    again = heartbeat(first.layers, today=TODAY, max_words=LIMIT, found=often)

    assert not plan(first.layers, again.layers)


@given(some_layers(), st.data())
def test_any_item_can_be_demoted_and_is_found_in_the_archive(
    layers: Layers, data: st.DataObject
) -> None:
    section = data.draw(st.sampled_from(list(Section)))
    items = facts(layers.core[section])
    if not items:
        return
    item = data.draw(st.sampled_from(items))
    after = demote(layers, section, item, today=TODAY).layers

    assert kept(layers) <= kept(after)
    if referred(item)[0]:
        refs = [step for step in after.notes if step.says(referred(item)[0]) or step.says(item)]
        assert any(after.mentions(note.ref) for note in refs)


CORE = {
    Section.IDENTITY: "A careful experimenter.",
    Section.USER: "",
    Section.ACTIVE_CONTEXT: "- LocaTering: rate 3e-4 converges\n- Warm-up of 500 steps",
    Section.QUICK_REFERENCE: "",
}


def test_a_demoted_item_leaves_a_short_reference_in_its_place() -> None:
    moved = demote(
        Layers(CORE),
        Section.ACTIVE_CONTEXT,
        "LocaTering: rate 3e-4 converges",
        topic=Topic.PROJECTS,
        title="LocaTering",
        today=TODAY,
    )

    assert moved.layers.core[Section.ACTIVE_CONTEXT] == (
        "- See archival: projects/locatering\n- Warm-up of 500 steps"
    )
    assert moved.layers.note("projects/locatering").text == (
        "# LocaTering \N{EM DASH} 2026-11-30\n\n## Summary\n\nLocaTering: rate 3e-4 converges\n\n"
        "## Details\n\n- LocaTering: rate 3e-4 converges\n\n## Tags\n"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_item_below_its_marker_leaves_its_reference_in_the_list(end: str) -> None:
    core = CORE | {Section.QUICK_REFERENCE: f"The loss{end}-{end}the rate"}
    after = demote(Layers(core), Section.QUICK_REFERENCE, "the rate", today=TODAY).layers.core

    assert after[Section.QUICK_REFERENCE] == f"The loss{end}- See archival: reference/the-rate"


def test_an_item_that_a_note_says_already_is_not_written_twice() -> None:
    note = note_of(Topic.LEARNINGS, "warm-up", "- Warm-up of 500 steps")
    moved = demote(
        Layers(CORE, [note]), Section.ACTIVE_CONTEXT, "Warm-up of 500 steps", today=TODAY
    )

    assert moved.layers.notes == [note]
    assert moved.layers.mentions("learnings/warm-up")


def test_an_item_that_is_not_there_cannot_be_demoted() -> None:
    with pytest.raises(UnknownItem):
        demote(Layers(CORE), Section.USER, "nothing", today=TODAY)


def test_a_promoted_note_stays_and_tells_where_its_summary_went() -> None:
    note = note_of(Topic.PROJECTS, "x", "- all of it")
    layers = promote(Layers(CORE, [note]), "projects/x").layers

    assert layers.core[Section.QUICK_REFERENCE] == "- About x (See archival: projects/x)"
    assert "- all of it\n- Promoted to core: Quick Reference\n" in layers.note("projects/x").text
    assert not plan(layers, promote(layers, "projects/x").layers)


def test_only_what_is_there_can_be_promoted() -> None:
    with pytest.raises(UnknownNote):
        promote(Layers(CORE), "projects/x")


def test_a_heartbeat_promotes_what_was_found_three_times() -> None:
    layers = Layers(CORE, [note_of(Topic.PROJECTS, name, f"- {name}") for name in ("x", "y")])
    moved = heartbeat(layers, today=TODAY, found={"projects/x": 3, "projects/y": 2})

    assert [step.ref for step in moved.steps if step.action is Action.PROMOTED] == ["projects/x"]


def test_trim_begins_at_the_top_of_active_context_and_takes_no_more_than_it_must() -> None:
    items = [f"- item {number} of four words" for number in range(10)]
    layers = Layers({**CORE, Section.ACTIVE_CONTEXT: "\n".join(items)})
    after = trim(layers, today=TODAY, max_words=40).layers

    assert after.core[Section.ACTIVE_CONTEXT].split("\n") == [
        "- See archival: projects/active-context",
        *items[4:],
    ]
    assert after.words <= 40
    assert after.note("projects/active-context").facts == [fact(item) for item in items[:4]]


def test_consolidate_looks_back_as_many_days_as_asked_today_included() -> None:
    days = [
        item
        for back in range(4)
        for item in read_day(f"- day {back}\n", TODAY - dt.timedelta(days=back))
    ]
    moved = consolidate(Layers(CORE, (), days), today=TODAY, days=2)

    assert sorted(step.text for step in moved.steps) == ["day 0", "day 1"]


def test_duplicates_become_one_note_that_core_still_finds() -> None:
    first = note_of(Topic.PROJECTS, "x", "- one\n- two", title="Same")
    second = note_of(Topic.PROJECTS, "x-2", "- two\n- three", title="same")
    core = {**CORE, Section.USER: "- See archival: projects/x-2"}
    moved = merge(Layers(core, [first, second])).layers

    assert [note.ref for note in moved.notes] == ["projects/x"]
    assert moved.merged == {"projects/x-2": "projects/x"}
    assert {"one", "two", "three"} <= set(moved.notes[0].facts)
    assert moved.core[Section.USER] == "- See archival: projects/x"


def test_every_item_that_says_the_same_goes_at_once() -> None:
    core = {**CORE, Section.USER: "- twice\n- other\n* twice"}
    moved = demote(Layers(core), Section.USER, "twice", today=TODAY, title="Twice")

    assert moved.layers.core[Section.USER] == "- See archival: people/twice\n- other"


def test_what_a_note_says_is_promoted_once_whichever_note_says_it() -> None:
    notes = [note_of(topic, "x", "- all of it") for topic in (Topic.PROJECTS, Topic.LEARNINGS)]
    layers = promote(Layers(CORE, notes), "projects/x").layers

    again = promote(layers, "learnings/x")

    assert again.layers.core == layers.core
    assert [step.action for step in again.steps] == [Action.KEPT]


def test_notes_of_one_title_and_day_become_one_though_they_have_summaries_alone() -> None:
    notes = [
        Note.write(
            Topic.PROJECTS, name, title="Run", date=TODAY, summary=summary, details="", tags=[]
        )
        for name, summary in (("run", "one"), ("run-2", "two"))
    ]
    (merged,) = merge(Layers(CORE, notes)).layers.notes

    assert (merged.ref, merged.summary, merged.details) == ("projects/run", "one", "- two")


@pytest.mark.parametrize("item", ["# head in item", "\\# escaped", "a `code` span", "## User"])
def test_an_item_comes_to_its_note_as_it_stood_in_core(item: str) -> None:
    core = {**CORE, Section.USER: f"- {item}"}
    (note,) = demote(Layers(core), Section.USER, item, today=TODAY, title="x").layers.notes

    assert note.details == f"- {item}"
    assert f"\n- {item}\n" in note.text


def test_a_note_whose_name_has_parentheses_is_found_behind_what_it_said() -> None:
    note = note_of(Topic.PROJECTS, "notes (1)", "- Rate 0.1 diverges")
    layers = promote(Layers(dict.fromkeys(Section, ""), [note]), note.ref).layers

    trimmed = trim(layers, today=TODAY, max_words=1).layers

    assert [note.ref for note in trimmed.notes] == ["projects/notes (1)", OWN_OF_QUICK_REFERENCE]
    assert trimmed.note(OWN_OF_QUICK_REFERENCE).facts == ["See archival: projects/notes (1)"]


@pytest.mark.parametrize("items", ["", "- one of four words\n- two of four words\n"])
def test_a_sections_own_note_in_another_form_is_referred_to_by_the_one_that_grows(
    items: str,
) -> None:
    theirs = Note.read(Topic.REFERENCE, "quick-reference", "# Ours\n\nports", otherwise=TODAY)
    core = {**dict.fromkeys(Section, ""), Section.QUICK_REFERENCE: items}
    counts = {theirs.ref: 3}

    once = heartbeat(Layers(core, [theirs]), today=TODAY, max_words=5, found=counts).layers
    once = trim(once, today=TODAY, max_words=3).layers

    assert once.note(f"{theirs.ref}-2").facts[-1] == f"See archival: {theirs.ref}"
    assert once.words <= 5
    again = heartbeat(once, today=TODAY, max_words=5, found=counts).layers
    assert not plan(once, again)


def test_a_note_with_a_second_heading_of_its_own_is_not_merged_away() -> None:
    text = "# Run\n\n- one\n\n# What Mira saw\n\n- two\n"
    other = Note.read(Topic.PROJECTS, "run", text, otherwise=TODAY)
    layers = Layers(CORE, [note_of(Topic.PROJECTS, "run-2", "- one\n- two", title="Run"), other])

    assert "What Mira saw" in "".join(note.text for note in merge(layers).layers.notes)


@pytest.mark.parametrize("marker", ["-", "*", "1."])
def test_a_reference_in_a_note_follows_a_merge_whatever_its_list(marker: str) -> None:
    notes = [
        note_of(Topic.PROJECTS, "x", "- one\n- two", title="Same"),
        note_of(Topic.PROJECTS, "x-2", "- two", title="Same"),
        note_of(Topic.LEARNINGS, "y", f"{marker} See archival: projects/x-2"),
    ]

    merged = merge(Layers(CORE, notes)).layers

    assert f"{marker} See archival: projects/x\n" in merged.note("learnings/y").text


def test_a_merge_takes_a_fact_of_a_note_in_another_form_once() -> None:
    free = Note.read(
        Topic.PROJECTS, "b", f"# Loc — {TODAY}\n\nNoor owns the budget.\n", otherwise=TODAY
    )
    layers = Layers(CORE, [note_of(Topic.PROJECTS, "a", "- one\n- two", title="Loc"), free])

    (merged,) = merge(layers).layers.notes

    assert merged.text.count("Noor owns the budget.") == 1
