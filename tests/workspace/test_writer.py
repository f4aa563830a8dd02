"""Writing below one directory: whole files, one writer, nothing overwritten blindly."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from app.workspace.errors import ChangedMeanwhile, LinkRefused, NotPlain, SystemRefused
from app.workspace.folder import Seen, open_folder
from app.workspace.outcome import Change
from app.workspace.writer import open_writer
from tests.workspace.tree import bare, contents

CORE = "memory/core.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    (place / "memory").mkdir(parents=True)
    (place / CORE).write_bytes(b"old\n")
    return place


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.rglob("*.tmp")]


def test_a_file_gets_the_new_bytes_and_keeps_its_rights(root: Path) -> None:
    (root / CORE).chmod(0o640)

    with open_writer(root) as writer:
        writer.write(Change(writer.read(CORE), b"new\r\n"))

    assert (root / CORE).read_bytes() == b"new\r\n"
    assert (root / CORE).stat().st_mode & 0o777 == 0o640
    assert leftovers(root) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes files of others")
def test_a_file_stays_its_owners(root: Path) -> None:
    os.chown(root / CORE, 1234, 2345)

    with open_writer(root) as writer:
        writer.write(Change(writer.read(CORE), b"new"))

    assert ((root / CORE).stat().st_uid, (root / CORE).stat().st_gid) == (1234, 2345)


def test_a_new_file_comes_with_its_folders(root: Path) -> None:
    with open_writer(root) as writer:
        writer.write(Change(writer.read("memory/archival/people/ada.md"), b"x"))

    assert (root / "memory/archival/people/ada.md").read_bytes() == b"x"
    assert leftovers(root) == []


def test_what_a_person_wrote_meanwhile_is_kept(root: Path) -> None:
    with open_writer(root) as writer:
        seen = writer.read(CORE)
        (root / CORE).write_bytes(b"theirs")
        with pytest.raises(ChangedMeanwhile, match=CORE):
            writer.write(Change(seen, b"ours"))
        with pytest.raises(ChangedMeanwhile, match=CORE):
            writer.write(Change(seen, None))

    assert (root / CORE).read_bytes() == b"theirs"
    assert leftovers(root) == []


def test_a_file_that_a_person_made_meanwhile_is_kept(root: Path) -> None:
    with open_writer(root) as writer:
        seen = writer.read("memory/new.md")
        (root / "memory/new.md").write_bytes(b"theirs")
        with pytest.raises(ChangedMeanwhile):
            writer.write(Change(seen, b"ours"))

    assert (root / "memory/new.md").read_bytes() == b"theirs"
    assert leftovers(root) == []


def test_a_file_that_a_person_removed_meanwhile_stays_away(root: Path) -> None:
    with open_writer(root) as writer:
        seen = writer.read(CORE)
        (root / CORE).unlink()
        with pytest.raises(ChangedMeanwhile):
            writer.write(Change(seen, b"ours"))
        with pytest.raises(ChangedMeanwhile):
            writer.write(Change(seen, None))

    assert contents(root) == {}


def test_a_link_that_came_meanwhile_is_not_written_through(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(b"old\n")

    with open_writer(root) as writer:
        seen = writer.read(CORE)
        (root / CORE).unlink()
        (root / CORE).symlink_to(outside)
        with pytest.raises(LinkRefused):
            writer.write(Change(seen, b"ours"))
        with pytest.raises(LinkRefused):
            writer.write(Change(seen, None))
        with pytest.raises(ChangedMeanwhile):
            writer.write(Change(Seen(CORE, None), b"ours"))

    assert outside.read_bytes() == b"old\n"
    assert (root / CORE).is_symlink()


def test_a_hard_link_is_parted_and_the_other_name_keeps_the_old(root: Path, tmp_path: Path) -> None:
    os.link(root / CORE, tmp_path / "outside.md")

    with open_writer(root) as writer:
        writer.write(Change(writer.read(CORE), b"new"))

    assert (tmp_path / "outside.md").read_bytes() == b"old\n"


def test_a_new_file_is_made_where_the_disk_knows_no_hard_links(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)

    with open_writer(root) as writer:
        writer.write(Change(writer.read("memory/new.md"), b"ours"))
        with pytest.raises(ChangedMeanwhile):
            writer.write(Change(Seen(CORE, None), b"ours"))

    assert contents(root) == {CORE: b"old\n", "memory/new.md": b"ours"}
    assert leftovers(root) == []


def test_a_full_disk_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with open_writer(root) as writer:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SystemRefused, match=f"{CORE}: No space left on device"):
            writer.write(Change(writer.read(CORE), b"new"))
        monkeypatch.undo()

    assert (root / CORE).read_bytes() == b"old\n"
    assert leftovers(root) == []


def test_a_file_system_that_cannot_sync_a_folder_is_written_to(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)

    with open_writer(root) as writer:
        writer.write(Change(writer.read(CORE), b"new"))

    assert (root / CORE).read_bytes() == b"new"


def test_a_link_in_the_archive_stops_nobody_who_writes_elsewhere(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/.lineage-0123456789abcdef.tmp").touch()
    (root / "memory/archival").symlink_to(tmp_path / "outside")

    with open_writer(root) as writer:
        writer.write(Change(writer.read(CORE), b"new"))

    assert (root / CORE).read_bytes() == b"new"
    assert (tmp_path / "outside/.lineage-0123456789abcdef.tmp").exists()


def test_a_reader_never_sees_a_half_file(root: Path) -> None:
    whole = {b"old\n", *(bytes([65 + turn]) * 500_000 for turn in range(20))}
    seen: set[bytes | None] = set()
    done = threading.Event()

    def look() -> None:
        with open_folder(root) as folder:
            while not done.is_set():
                seen.add(folder.read(CORE).data)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        with open_writer(root) as writer:
            for turn in range(20):
                writer.write(Change(writer.read(CORE), bytes([65 + turn]) * 500_000))
    finally:
        done.set()
        reader.join()

    assert len(seen) > 1
    assert seen <= whole


# Counts what changes the folder and ends the process, as a kill would, before the n-th such call.
KILLED = """
import os, sys
left = int(sys.argv[2])
def hook(event, arguments):
    global left
    if event in {"os.rename", "os.link", "os.remove", "os.mkdir", "os.chmod", "os.chown"} or (
        event == "open" and arguments[2] & os.O_CREAT
    ):
        if not left:
            os._exit(9)
        left -= 1
from pathlib import Path
from app.workspace.outcome import Change
from app.workspace.writer import open_writer
sys.addaudithook(hook)
with open_writer(Path(sys.argv[1])) as writer:
    for path in ("memory/core.md", "memory/archival/people/ada.md"):
        writer.write(Change(writer.read(path), b"new" * 1000))
"""


def test_a_writer_may_be_killed_at_any_step(root: Path) -> None:
    for steps in range(40):
        (root / CORE).write_bytes(b"old\n")
        (root / "memory/archival/people/ada.md").unlink(missing_ok=True)
        killed = bare(KILLED, str(root), str(steps))
        found = contents(root)

        assert {found.get(CORE)} <= {b"old\n", b"new" * 1000}, steps
        assert {found.get("memory/archival/people/ada.md")} <= {None, b"new" * 1000}, steps
        with open_writer(root):
            assert leftovers(root) == [], steps
        if killed.returncode == 0:
            break
        assert killed.returncode == 9, killed.stderr
    else:
        pytest.fail("the writer never came to its end")

    assert steps > 8


def test_only_our_own_leftovers_are_swept(root: Path) -> None:
    theirs = ("memory/.notes.tmp", "memory/.lineage-1.tmp", "memory/draft.tmp")
    for path in (*theirs, "memory/.lineage-0123456789abcdef.tmp"):
        (root / path).touch()

    with open_writer(root):
        pass

    assert set(contents(root)) == {CORE, *theirs}


@pytest.mark.parametrize("place", [".lineage", ".lineage/lock"])
def test_a_link_in_the_place_of_the_lock_is_refused(root: Path, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / ".lineage").mkdir()
    if place == ".lineage":
        (root / ".lineage").rmdir()
    (root / place).symlink_to(outside / "lock" if place != ".lineage" else outside)

    with pytest.raises(LinkRefused, match=place), open_writer(root):
        pass

    assert list(outside.iterdir()) == []


def test_a_folder_in_the_place_of_the_lock_is_told(root: Path) -> None:
    (root / ".lineage" / "lock").mkdir(parents=True)

    with pytest.raises(NotPlain, match=r"\.lineage/lock"), open_writer(root):
        pass


def test_writers_wait_for_each_other(root: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with open_writer(root):
            order.append("second in")

    with open_writer(root):
        other = threading.Thread(target=second)
        other.start()
        other.join(0.2)
        order.append("first out")
    other.join(10)

    assert order == ["first out", "second in"]


# Tells every way in which the operating system was asked to open something.
OPENED = """
import json, os, sys
opened = []
def hook(event, arguments):
    if event == "open" and not isinstance(arguments[0], int):
        opened.append([str(arguments[0]), arguments[2]])
from pathlib import Path
from app.workspace.outcome import Change
from app.workspace.writer import open_writer
sys.addaudithook(hook)
with open_writer(Path(sys.argv[1])) as writer:
    writer.list("memory")
    writer.write(Change(writer.read("memory/core.md"), b"new"))
    writer.write(Change(writer.read("memory/archival/people/ada.md"), b"new"))
    writer.write(Change(writer.read("memory/core.md"), None))
print(json.dumps(opened))
"""


def test_every_open_below_the_root_refuses_links(root: Path) -> None:
    opened = json.loads(bare(OPENED, str(root)).stdout)

    assert [path for path, flags in opened if not flags & os.O_NOFOLLOW] == [str(root)]
    assert all("/" not in path for path, flags in opened if flags & os.O_NOFOLLOW)
