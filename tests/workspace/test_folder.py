"""Reading below one directory, and nowhere else."""

import os
from pathlib import Path

import pytest

from app.workspace.errors import (
    BadName,
    LinkRefused,
    NotPlain,
    NoWorkspace,
    SystemRefused,
    WorkspaceError,
)
from app.workspace.folder import Listing, Seen, open_folder
from app.workspace.outcome import Change
from app.workspace.writer import open_writer

ESCAPES = [
    "../outside.md",
    "../../outside",
    "/etc/hosts",
    "a/../../b",
    "memory/../../outside.md",
    "..%2f..%2fx",
    "..%2F..%2Fx",
    "%2e%2e/x",
    "..\\..\\x",
    "two\nlines",
    "two\u2028lines",
    "nul\0byte",
    "half \ud83e",
    ".",
    "..",
    "",
    "a//b",
    "a/",
    "x" * 256,
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the workspace with a file that nobody may read."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.md").write_text("the outside secret")
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    (place / "memory" / "archival" / "projects").mkdir(parents=True)
    (place / "memory" / "core.md").write_text("# Core Memory\n")
    return place


def test_a_file_is_read_as_it_is(root: Path) -> None:
    (root / "memory" / "core.md").write_bytes(b"a\r\n\xff no end")

    with open_folder(root) as folder:
        assert folder.read("memory/core.md") == Seen("memory/core.md", b"a\r\n\xff no end")


@pytest.mark.parametrize("path", ["memory/none.md", "none/at/all.md"])
def test_what_is_not_there_is_absent_and_no_error(root: Path, path: str) -> None:
    with open_folder(root) as folder:
        assert folder.read(path) == Seen(path, None)
        assert not folder.has(path)
        assert folder.list(path) == Listing()


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_could_lead_out_is_refused_and_not_repeated(
    root: Path, outside: Path, path: str
) -> None:
    before = sorted(root.parent.rglob("*"))
    with open_writer(root) as writer:
        for attempt in (
            lambda: writer.read(path),
            lambda: writer.has(path),
            lambda: writer.list(path) if path else writer.read(path),
            lambda: writer.write(Change(Seen(path, None), b"x")),
            lambda: writer.write(Change(Seen(path, b"x"), None)),
            lambda: writer.make_folder(path),
        ):
            with pytest.raises(BadName) as refused:
                attempt()
            assert "outside" not in str(refused.value)
            assert "etc" not in str(refused.value)

    assert [
        path for path in sorted(root.parent.rglob("*")) if ".lineage" not in str(path)
    ] == before
    assert (outside / "secret.md").read_text() == "the outside secret"


def test_a_link_to_a_file_is_refused_without_naming_its_target(root: Path, outside: Path) -> None:
    link = root / "memory" / "2026-03-14.md"
    link.symlink_to(outside / "secret.md")

    with (
        open_folder(root) as folder,
        pytest.raises(LinkRefused, match=r"memory/2026-03-14\.md") as e,
    ):
        folder.read("memory/2026-03-14.md")

    assert "outside" not in str(e.value)


def test_nothing_is_read_listed_or_written_behind_a_link_to_a_directory(
    root: Path, outside: Path
) -> None:
    (root / "memory" / "archival" / "people").symlink_to(outside)
    path = "memory/archival/people/secret.md"

    with open_writer(root) as writer:
        for attempt in (
            lambda: writer.read(path),
            lambda: writer.has(path),
            lambda: writer.list("memory/archival/people"),
            lambda: writer.write(Change(Seen(path, b"the outside secret"), b"x")),
            lambda: writer.write(Change(Seen("memory/archival/people/new.md", None), b"x")),
            lambda: writer.write(Change(Seen(path, b"the outside secret"), None)),
            lambda: writer.make_folder("memory/archival/people"),
            lambda: writer.make_folder("memory/archival/people/deep"),
        ):
            with pytest.raises(LinkRefused, match="memory/archival/people is a link"):
                attempt()

    assert [path.name for path in outside.iterdir()] == ["secret.md"]
    assert (outside / "secret.md").read_text() == "the outside secret"


@pytest.mark.parametrize("target", ["secret.md", ".", "none-such"])
def test_a_listing_skips_links_to_files_to_directories_and_to_nothing(
    root: Path, outside: Path, target: str
) -> None:
    (root / "memory" / "archival" / "link.md").symlink_to(outside / target)
    (root / "memory" / "archival" / "b.md").touch()
    (root / "memory" / "archival" / "a.md").touch()

    with open_folder(root) as folder:
        assert folder.list("memory/archival") == Listing(
            files=("a.md", "b.md"), folders=("projects",), skipped=("link.md",)
        )


def test_a_memory_that_is_a_link_itself_is_refused(root: Path, outside: Path) -> None:
    (root / "memory").rename(root / "elsewhere")
    (root / "memory").symlink_to(outside)

    with open_folder(root) as folder:
        with pytest.raises(LinkRefused, match="memory is a link"):
            folder.list("memory")
        with pytest.raises(LinkRefused, match="memory is a link"):
            folder.read("memory/secret.md")


def test_a_link_within_the_workspace_is_a_link_too(root: Path) -> None:
    (root / "memory" / "archival" / "core.md").symlink_to("../core.md")

    with open_folder(root) as folder, pytest.raises(LinkRefused):
        folder.read("memory/archival/core.md")


def test_the_directory_that_a_person_names_may_be_a_link(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)

    with open_folder(link) as folder:
        assert folder.read("memory/core.md").data == b"# Core Memory\n"


def test_a_pipe_is_refused_and_holds_nobody_up(root: Path) -> None:
    os.mkfifo(root / "memory" / "2026-03-14.md")

    with open_folder(root) as folder:
        assert folder.list("memory").skipped == ("2026-03-14.md",)
        with pytest.raises(NotPlain, match=r"memory/2026-03-14\.md"):
            folder.read("memory/2026-03-14.md")


def test_a_folder_is_no_file_and_a_file_is_no_folder(root: Path) -> None:
    with open_folder(root) as folder:
        with pytest.raises(NotPlain, match="memory/archival is no plain file"):
            folder.read("memory/archival")
        with pytest.raises(NotPlain, match=r"memory/core\.md is no plain folder"):
            folder.list("memory/core.md")
        with pytest.raises(NotPlain, match=r"memory/core\.md is no plain folder"):
            folder.read("memory/core.md/below.md")


def test_names_that_no_path_can_hold_are_skipped(root: Path) -> None:
    archive = os.fsencode(root / "memory" / "archival" / "projects")
    for name in (b"two\nlines.md", b"not utf-8 \xff.md", b"..%2fx.md", b"fine.md"):
        (root / os.fsdecode(archive + b"/" + name)).touch()

    with open_folder(root) as folder:
        listing = folder.list("memory/archival/projects")

    assert listing.files == ("fine.md",)
    assert len(listing.skipped) == 3
    assert all(name.isascii() and name.isprintable() for name in listing.skipped)


@pytest.mark.parametrize("place", ["none", "file", "nul\0"])
def test_a_workspace_that_is_no_directory_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NoWorkspace), open_folder(tmp_path / place):
        pass


def test_what_the_system_refuses_names_the_path_and_why(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def denied(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "core.md":
            raise PermissionError(13, "Permission denied", "/secret/place/core.md")
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", denied)

    with open_folder(root) as folder, pytest.raises(SystemRefused) as refused:
        folder.read("memory/core.md")

    assert str(refused.value) == "memory/core.md: Permission denied."
    assert isinstance(refused.value, WorkspaceError)
