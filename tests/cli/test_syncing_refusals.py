"""What push and pull cannot bring is told by its name, and the rest is brought."""

import json

import pytest
import sqlalchemy as sa

from app.cli import push_and_pull, syncing
from app.cli.remote import Remote, read_remote
from app.client import Service
from tests.cli.both import NOTE, Both, filled
from tests.cli.test_workspace import CORE, SECRET, files
from tests.snapshot.files import entry, header, sealed
from tests.support.client import Json, answer
from tests.support.service import InProcessService

pytestmark = pytest.mark.parametrize(
    ("database", "archive"), [("sqlite", "embedded")], indirect=True
)


def test_a_credential_in_core_stops_a_push_before_anything_is_sent(both: Both) -> None:
    filled(both)
    both.write("core.md", CORE.replace("Ada", f"Ada, {SECRET}"))

    for more in ((), ("--dry-run",)):
        done = both.do("push", *more, code=2)
        assert "user holds what looks like a credential" in done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert (both.layers.core().human, both.layers.notes()) == ("", [])


def test_what_the_service_will_not_have_is_told_and_the_rest_is_sent(both: Both) -> None:
    filled(both)
    both.write("archival/people/long.md", "x" * 40_000)

    done = both.do("push", code=1)

    assert "Refused people/long: " in done.stderr
    assert "Sent the note learnings/rates." in done.stdout
    assert "people/long" not in done.stdout
    assert both.differ() == {"people/long": "push"}


def test_each_note_that_is_refused_is_named_and_sent_alone_once_it_is_mended(both: Both) -> None:
    filled(both)
    for name in ("ada", "noor"):
        both.write(f"archival/people/{name}.md", "x" * 40_000)
    before = files(both.folder)

    refused = both.do("push", code=1)
    told = json.loads(both.do("push", "--json", code=1).stdout)["refused"]

    said = [line.partition(": ")[0] for line in refused.stderr.splitlines()]
    assert said == ["Refused people/ada", "Refused people/noor"]
    assert list(told) == ["people/ada", "people/noor"]
    assert all("32768" in reason or "32,768" in reason for reason in told.values())
    assert [note.ref for note in both.layers.notes()] == ["learnings/rates"]
    assert both.layers.core_markdown() == CORE
    assert len(both.layers.daily_notes()) == 2
    changed = {name for name, file in files(both.folder).items() if before.get(name) != file}
    assert all(name.startswith(".lineage/") for name in changed)

    for name in ("ada", "noor"):
        both.write(f"archival/people/{name}.md", NOTE.replace("Rates", name))
    mended = both.do("push")

    assert mended.stdout.splitlines() == ["Sent the note people/ada.", "Sent the note people/noor."]
    assert mended.stderr == ""
    assert both.differ() == {}
    assert len(both.layers.daily_notes()) == 2


def test_words_outside_the_sections_of_core_are_told_and_stay(both: Both) -> None:
    own = f"{CORE}\n## Scratch\n\n- my own words\n\n## User\n\ntwice\n"
    both.write("core.md", f"Mine.\n\n{own}")
    told = "memory/core.md: 7 words stand in no section of core, and stay in the folder alone."

    for command, more in (("diff", ()), ("push", ("--dry-run",)), ("pull", ()), ("push", ())):
        assert f"Skipped {told}" in both.do(command, *more).stderr
        assert json.loads(both.do(command, *more, "--json").stdout)["skipped"] == [told]
    assert both.read("core.md").startswith("Mine.\n")
    assert both.read("core.md").endswith("twice\n")


def test_a_core_of_sections_alone_leaves_nothing_to_tell(both: Both) -> None:
    assert filled(both).do("push").stderr == ""


def reference(text: str, *, at: float = 10.0) -> Json:
    """The snapshot's line of a note that is people/ada."""
    metadata = {"topic": "people", "name": "ada"}
    return entry(text, None, kind="reference", ts=at, metadata=metadata)


def restored(both: Both, *notes: Json) -> None:
    lines = [header(both.tree.checkpoint), *notes]
    answer(both.tree.api.restore(both.tree.checkpoint, sealed(lines), on_conflict="merge"))


def test_of_two_notes_with_one_ref_the_older_is_told_by_every_command(both: Both) -> None:
    older, newer = reference("# Ada\n"), reference("# Ada L.\n", at=11.0)
    restored(both, older, newer)
    told = f"note {older['id']} of the checkpoint, 'Ada': a newer note is people/ada too."

    assert both.do("pull").stdout == "Pulled the note people/ada.\n"

    assert both.read("archival/people/ada.md") == newer["text"]
    for command in ("pull", "push", "diff"):
        assert f"Skipped {told}" in both.do(command).stderr
        [skipped] = json.loads(both.do(command, "--json").stdout)["skipped"]
        assert skipped.startswith(told)
    assert both.do("diff").stdout == "Nothing else differs.\n"


def test_a_push_leaves_the_older_of_two_notes_with_one_ref_as_it_is(both: Both) -> None:
    older, newer = reference("# Ada\n"), reference("# Ada L.\n", at=11.0)
    restored(both, older, newer)
    both.write("archival/people/ada.md", "# Ada of mine\n")

    assert "Both sides changed the note people/ada." in both.do("push", code=1).stderr
    assert [note.text for note in both.layers.notes()] == [older["text"], newer["text"]]

    both.push(overwrite=True)
    assert [note.text for note in both.layers.notes()] == [older["text"], "# Ada of mine\n"]


def call_as_older_versions_could(service: InProcessService, note: str, name: str) -> None:
    ledger = sa.create_engine(service.app.state.services.ledger.url)
    metadata = json.dumps({"topic": "people", "name": name})
    with ledger.begin() as connection:
        connection.execute(
            sa.text("UPDATE entries SET metadata = :metadata WHERE id = :note"),
            {"metadata": metadata, "note": note},
        )
    ledger.dispose()


@pytest.mark.parametrize("name", ["../x", "two\nlines", "x" * 500], ids=["path", "lines", "long"])
def test_a_note_that_no_file_can_hold_is_told_and_not_said_to_be_pulled(
    both: Both, service: InProcessService, name: str
) -> None:
    note = both.layers.write_note_text("people", "ada", "# Ada\n")
    call_as_older_versions_could(service, note.id, name)
    before = files(both.folder)
    told = f"Skipped note {f'people/{name}'!r} of the checkpoint, which cannot be pulled: "

    for command, said in (("diff", "Nothing else differs."), ("pull", "Nothing to pull.")):
        done = both.do(command)
        assert done.stderr.startswith(told)
        assert done.stdout == f"{said}\n"
    after = files(both.folder)
    assert {path for path in after if path not in before} <= {".lineage/sync.json", ".lineage/lock"}


def test_a_day_that_cannot_be_read_is_not_said_to_be_pulled(both: Both) -> None:
    both.layers.write_daily_note("theirs", date="2026-03-14")
    (both.folder / "memory" / "2026-03-14.md").write_bytes(b"\xff mine\n")

    done = both.do("pull")

    assert done.stdout == "Nothing to pull.\n"
    assert "Skipped memory/2026-03-14.md: " in done.stderr


def test_a_note_whose_ref_another_takes_during_a_push_is_told_by_its_new_one(
    both: Both, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_and_be_late(service: Service, checkpoint: str) -> Remote:
        monkeypatch.undo()
        seen = read_remote(service, checkpoint)
        both.layers.write_note_text("people", "ada", "# Ada of theirs\n")
        return seen

    both.write("archival/people/ada.md", "# Ada of mine\n")
    monkeypatch.setattr(syncing, "read_remote", read_and_be_late)
    url = str(both.tree.api.http.base_url)
    push_and_pull.push(both.folder, both.tree.checkpoint, url=url)

    told = capsys.readouterr()
    assert told.out == "Sent the note people/ada as people/ada-2.\n"
    assert "Call yours people/ada-2 in the folder too, then pull." in told.err

    people = both.folder / "memory" / "archival" / "people"
    (people / "ada.md").rename(people / "ada-2.md")
    both.pull()
    assert both.read("archival/people/ada.md") == "# Ada of theirs\n"
    assert both.differ() == {}


def test_a_daily_note_that_is_refused_is_named_by_its_day_and_first_words(both: Both) -> None:
    both.write("2026-03-14.md", f"# 2026-03-14\n\n- the loss fell {'again ' * 8_000}\n")

    done = both.do("push", code=1)

    assert done.stderr.startswith("Refused 2026-03-14, 'the loss fell again again again again…': ")


def test_a_section_waits_with_the_refused_note_that_took_its_words(both: Both) -> None:
    filled(both).push()
    gone = "- Locatering: survey of sites"
    both.write("core.md", CORE.replace(gone, "- See archival: projects/locatering"))
    both.write("archival/projects/locatering.md", f"{gone}\n\n{'x' * 40_000}")

    refused = both.do("push", code=1)

    said = [line.partition(": ")[0] for line in refused.stderr.splitlines()]
    assert said == ["Refused projects/locatering", "Refused active-context"]
    assert gone in both.layers.core_markdown()
