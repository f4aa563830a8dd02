"""Between a folder and a checkpoint: what is new goes over, what clashes stays, nothing is lost."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.layers.core import Section
from app.layers.daily import DayItem, read_day
from app.layers.note import Topic
from app.workspace import init
from app.workspace.errors import BadConfiguration, ChangedMeanwhile
from app.workspace.folder import open_folder
from app.workspace.pulling import pull, read_local, remember
from app.workspace.sync_state import read_base
from app.workspace.syncing import Base, Comparison, Difference, Side, Way, agreed, compare
from tests.layers.texts import texts
from tests.support.examples import SAME_AND_LONG
from tests.workspace.tree import contents, everything

DAY = dt.date(2026, 6, 9)
HERE = "http://127.0.0.1:8000/checkpoints/exp1@2026-05-02"


def side(
    *, core: dict[Section, str] | None = None, notes: dict[str, str] | None = None, days: str = ""
) -> Side:
    """Return a side with these sections, notes and lines of a day."""
    return Side(core or {}, notes or {}, tuple(read_day(days, DAY)))


def ways(comparison: Comparison) -> dict[str, Way]:
    """Return what each difference asks for, a daily note by what it says."""
    named = {difference.key: difference.way for difference in (*comparison.core, *comparison.notes)}
    for difference in comparison.days:
        item = difference.local or difference.remote
        assert item is not None
        named[item.text] = difference.way
    return named


def base_of(both: Side) -> Base:
    return agreed(both, both, Base())


NOTE = "people/ada"


@pytest.mark.parametrize(
    ("before", "here", "there", "way"),
    [
        (None, "a", None, Way.PUSH),
        (None, None, "a", Way.PULL),
        (None, "a", "b", Way.CONFLICT),
        ("a", "b", "a", Way.PUSH),
        ("a", "a", "b", Way.PULL),
        ("a", "b", "c", Way.CONFLICT),
        ("a", None, "a", Way.GONE_HERE),
        ("a", "a", None, Way.GONE_THERE),
        ("a", None, "b", Way.PULL),
        ("a", "b", None, Way.PUSH),
    ],
)
def test_what_changed_on_one_side_goes_to_the_other(
    before: str | None, here: str | None, there: str | None, way: Way
) -> None:
    def holding(text: str | None) -> Side:
        return side(core={Section.USER: text or " \n"}, notes={} if text is None else {NOTE: text})

    comparison = compare(holding(here), holding(there), base_of(holding(before)))

    assert ways(comparison) == {"user": way, NOTE: way}


@pytest.mark.parametrize("before", [None, "a", "b"])
def test_what_is_alike_is_no_difference_whatever_it_was(before: str | None) -> None:
    both = side(core={Section.USER: "a"}, notes={NOTE: "a"}, days="- a")
    was = side() if before is None else side(core={Section.USER: before}, notes={NOTE: before})

    assert not compare(both, both, base_of(was))


def test_line_ends_and_blank_lines_around_a_text_are_no_difference() -> None:
    here = side(core={Section.USER: "\r\na\r\nb"}, notes={NOTE: "a\r\nb\r\n"})
    there = side(core={Section.USER: "a\nb\n"}, notes={NOTE: "a\nb"})

    assert not compare(here, there, Base())


def test_sections_are_compared_one_by_one() -> None:
    before = side(core={Section.USER: "a", Section.IDENTITY: "b"})
    here = side(core={Section.USER: "a2", Section.IDENTITY: "b"})
    there = side(core={Section.USER: "a", Section.IDENTITY: "b2"})

    assert ways(compare(here, there, base_of(before))) == {"user": Way.PUSH, "identity": Way.PULL}


def test_each_side_gets_the_facts_of_a_day_that_it_lacks() -> None:
    comparison = compare(side(days="- both\n- mine\n"), side(days="both\n\n* theirs"), Base())

    assert ways(comparison) == {"mine": Way.PUSH, "theirs": Way.PULL}


def test_a_fact_that_was_removed_from_a_day_is_neither_brought_back_nor_removed() -> None:
    both = side(days="- one\n- two\n- three\n")

    comparison = compare(side(days="- one\n- two"), side(days="- one\n- three"), base_of(both))

    assert ways(comparison) == {"three": Way.GONE_HERE, "two": Way.GONE_THERE}


def test_the_same_fact_of_two_days_is_two() -> None:
    here = Side({}, {}, tuple(read_day("- a", DAY)))
    there = Side({}, {}, tuple(read_day("- a", DAY + dt.timedelta(days=1))))

    assert [difference.way for difference in compare(here, there, Base()).days] == [
        Way.PUSH,
        Way.PULL,
    ]


def test_the_part_of_a_comparison_that_asks_for_one_thing() -> None:
    comparison = compare(side(notes={"people/a": "a"}), side(notes={"people/b": "b"}), Base())

    assert comparison.having(Way.PULL).notes == (Difference("people/b", Way.PULL, None, "b"),)
    assert not comparison.having(Way.CONFLICT)


def test_an_agreement_remembers_what_is_gone_on_one_side_and_forgets_what_is_gone_on_both() -> None:
    both = base_of(side(notes={"people/a": "a", "people/b": "b", "people/c": "c"}))

    after = agreed(side(notes={"people/a": "a"}), side(notes={"people/b": "b2"}), both)

    assert set(after.notes) == {"people/a", "people/b"}
    assert after.notes["people/b"] == both.notes["people/b"]


# On disk.


@pytest.fixture
def root(workspace: Path) -> Path:
    (workspace / "memory/core.md").write_bytes(
        b"# Core Memory\r\n\r\nmy own words\r\n\r\n"
        b"## Identity\r\n\r\nme\r\n\r\n## User\r\n\r\nold\r\n"
    )
    (workspace / "memory/archival/people/ada.md").write_bytes(b"# Ada\r\nold\r\n")
    (workspace / "memory/2026-06-09.md").write_bytes(b"- mine")
    return workspace


def pulled(root: Path, remote: Side, base: Base | None = None) -> None:
    local = read_local(root, remote=HERE)
    pull(root, local, compare(local.side, remote, local.base if base is None else base))


def agree(root: Path) -> Side:
    """Let the folder and a checkpoint that holds the same agree."""
    held = read_local(root, remote=HERE).side
    remember(root, HERE, held)
    return held


def test_a_pull_brings_sections_notes_and_days_in_the_manner_of_each_file(root: Path) -> None:
    held = agree(root)
    remote = Side(
        {**held.core, Section.USER: "new\nlines", Section.QUICK_REFERENCE: "- quick"},
        {NOTE: "# Ada\nnew\n", "projects/x": "# X\n"},
        (*held.days, DayItem("theirs", DAY, "09:30+09:00"), DayItem("b", DAY.replace(day=1))),
    )

    pulled(root, remote)

    assert contents(root) == {
        "memory/core.md": (
            b"# Core Memory\r\n\r\nmy own words\r\n\r\n## Identity\r\n\r\nme\r\n\r\n"
            b"## User\r\n\r\nnew\r\nlines\r\n\r\n## Quick Reference\r\n\r\n- quick\r\n"
        ),
        "memory/archival/people/ada.md": b"# Ada\r\nnew\r\n",
        "memory/archival/projects/x.md": b"# X\n",
        "memory/2026-06-09.md": b"- mine\n- 09:30+09:00 theirs\n",
        "memory/2026-06-01.md": b"# 2026-06-01\n\n- b\n",
    }


def test_a_conflict_leaves_the_folder_as_it_is(root: Path) -> None:
    before = contents(root)

    pulled(root, side(core={Section.USER: "other"}, notes={NOTE: "other"}))

    assert contents(root) == before


def test_a_dry_pull_shows_the_diff_and_touches_nothing(root: Path) -> None:
    held = agree(root)
    local = read_local(root, remote=HERE)
    remote = Side(held.core, {**held.notes, "projects/x": "# X\n"}, held.days)
    before = everything(root)

    pulled = pull(root, local, compare(local.side, remote, local.base), dry_run=True)

    assert everything(root) == before
    assert (
        pulled.outcome.diff
        == "--- /dev/null\n+++ b/memory/archival/projects/x.md\n@@ -0,0 +1 @@\n+# X\n"
    )
    assert pulled.outcome.report == ("Pulls memory/archival/projects/x.md.",)


@pytest.mark.parametrize("path", ["memory/core.md", "memory/archival/people/ada.md"])
def test_what_a_person_saved_since_the_comparison_is_kept(root: Path, path: str) -> None:
    held = agree(root)
    local = read_local(root, remote=HERE)
    remote = Side({**held.core, Section.USER: "new"}, {NOTE: "new"}, held.days)
    (root / path).write_bytes(b"saved meanwhile")

    with pytest.raises(ChangedMeanwhile, match=path):
        pull(root, local, compare(local.side, remote, local.base))

    assert (root / path).read_bytes() == b"saved meanwhile"


@pytest.mark.parametrize(
    "ref", ["people/../../../x", "../x", "mine/x", "people/", "people/a/b", "x"]
)
def test_a_note_of_a_name_that_leads_elsewhere_is_not_written(
    root: Path, outside: Path, ref: str
) -> None:
    before = everything(outside), contents(root)
    local = read_local(root, remote=HERE)

    pulled = pull(root, local, compare(local.side, side(notes={ref: "x"}), local.base))

    assert (pulled.outcome.changes, len(pulled.outcome.skipped)) == ((), 1)
    assert list(pulled.skipped) == [ref]
    assert (everything(outside), contents(root)) == before


def test_what_is_not_utf_8_here_stays_and_the_rest_is_pulled(root: Path) -> None:
    (root / "memory/2026-06-09.md").write_bytes(b"\xff")
    (root / "memory/archival/people/bob.md").write_bytes(b"\xff")
    local = read_local(root, remote=HERE)
    remote = side(notes={"people/bob": "Bob", "people/eve": "Eve"}, days="- theirs")

    outcome = pull(root, local, compare(local.side, remote, local.base))

    assert len(outcome.skipped) == 2
    assert (root / "memory/2026-06-09.md").read_bytes() == b"\xff"
    assert (root / "memory/archival/people/bob.md").read_bytes() == b"\xff"
    assert (root / "memory/archival/people/eve.md").read_bytes() == b"Eve"


def test_what_was_agreed_is_known_of_this_checkpoint_and_of_no_other(root: Path) -> None:
    agree(root)
    other = HERE.replace("2026-05-02", "2026-05-03")
    remember(root, other, side())

    with open_folder(root) as folder:
        assert read_base(folder, HERE).notes.keys() == {NOTE}
        assert read_base(folder, other) == read_base(folder, "elsewhere") == Base()


def test_a_note_that_a_person_removed_is_not_pulled_again(root: Path) -> None:
    held = agree(root)
    (root / "memory/archival/people/ada.md").unlink()

    pulled(root, held)
    remember(root, HERE, held)
    pulled(root, held)

    assert not (root / "memory/archival/people/ada.md").exists()


@pytest.mark.parametrize("state", ["", "[]", '{"remotes": []}', '{"remotes": {"a": 1}}'])
def test_a_state_that_is_not_ours_is_told(root: Path, state: str) -> None:
    (root / ".lineage/sync.json").write_text(state)

    with pytest.raises(BadConfiguration, match=r"\.lineage/sync\.json"):
        read_local(root, remote=HERE)


DATES = st.sampled_from([DAY, DAY.replace(day=1)])
ITEMS = st.builds(
    DayItem,
    text=texts(max_lines=4).filter(lambda text: bool(text.strip())),
    date=DATES,
    at=st.sampled_from([None, "09:30+09:00"]),
    heading=st.sampled_from([None, "Later", "午後"]),
)
SIDES = st.builds(
    Side,
    core=st.dictionaries(st.sampled_from(list(Section)), texts(max_lines=6)),
    notes=st.dictionaries(
        st.sampled_from([f"{topic.value}/a" for topic in Topic]),
        texts(max_lines=6).filter(lambda text: bool(text.strip())),
    ),
    days=st.lists(ITEMS, max_size=6).map(tuple),
)


@settings(SAME_AND_LONG, max_examples=100)
@given(SIDES, SIDES)
def test_after_a_pull_there_is_nothing_more_to_pull(
    tmp_path_factory: pytest.TempPathFactory, first: Side, second: Side
) -> None:
    root = tmp_path_factory.mktemp("pulled")
    init(root)
    for remote in (first, Side(second.core, {**first.notes, **second.notes}, second.days)):
        before = read_local(root, remote=HERE).side
        pulled(root, remote)
        local = read_local(root, remote=HERE)
        assert not compare(local.side, remote, local.base).having(Way.PULL)
        assert {item.fact for item in before.days} <= {item.fact for item in local.side.days}
        assert before.notes.keys() <= local.side.notes.keys()
        remember(root, HERE, remote)


def test_a_section_that_gave_its_words_to_a_note_waits_until_the_note_is_settled() -> None:
    started = side(core={Section.USER: "- tea\n- cats"}, notes={NOTE: "Ada"})
    here = side(core={Section.USER: f"- See archival: {NOTE}\n- cats"}, notes={NOTE: "Ada, tea"})
    there = side(core={Section.USER: "- tea\n- cats"}, notes={NOTE: "Ada, London"})

    for local, remote in ((here, there), (there, here)):
        found = ways(compare(local, remote, base_of(started)))
        assert found == {"user": Way.CONFLICT, NOTE: Way.CONFLICT}


def test_a_section_that_referred_to_a_note_before_does_not_wait_for_it() -> None:
    started = side(core={Section.USER: f"- See archival: {NOTE}"}, notes={NOTE: "Ada"})
    here = side(core={Section.USER: f"- See archival: {NOTE}\n- new"}, notes={NOTE: "Ada, tea"})
    there = side(core=dict(started.core), notes={NOTE: "Ada, London"})

    found = ways(compare(here, there, base_of(started)))
    assert found == {"user": Way.PUSH, NOTE: Way.CONFLICT}
