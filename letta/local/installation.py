"""Letta and its PostgreSQL, installed by pip from the lock file."""
# ruff: noqa: T201  # what it prints is for whoever called make

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .folder import Folder, GiveUp
from .processes import outer_environment

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
PIN = re.compile(r"^(?P<name>[\w.-]+)==\S+(?: \\\n +--hash=\S+)+", re.MULTILINE)


def install(folder: Folder) -> None:
    """Install what is missing."""
    for part, install_part in PARTS.items():
        if not _is_whole(folder, part):
            _stamp(folder, part).unlink(missing_ok=True)
            install_part(folder)
            _stamp(folder, part).write_text(_wanted())


def is_installed(folder: Folder) -> bool:
    """Tell whether nothing is missing."""
    return all(_is_whole(folder, part) for part in PARTS)


def _is_whole(folder: Folder, part: str) -> bool:
    """Tell whether the stamp, written last, is there and of our lock file."""
    stamp = _stamp(folder, part)
    return stamp.exists() and stamp.read_text() == _wanted()


def _stamp(folder: Folder, part: str) -> Path:
    return folder.file(f"{part}.installed")


def _wanted() -> str:
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


def _install_packages(folder: Folder) -> None:
    print(f"Installing Letta into {folder.path} (once, about two minutes)", flush=True)
    _run([sys.executable, "-m", "venv", "--clear", folder.path / "venv"])
    # One package has no wheel: it is built here, by the build tool of the lock file, not by the
    # newest one that pip would fetch for it. The file names every package: nothing to resolve.
    _pip(folder, "install", "-r", _pin_file(folder, "setuptools"))
    _pip(folder, "install", "--no-build-isolation", "--use-pep517", "-r", LOCK)


def _fetch_migrations(folder: Folder) -> None:
    """Unpack the migrations from Letta's source archive: the wheel does not have them."""
    download, unpacked = folder.file("source"), folder.migrations
    for place in (download, unpacked):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    pin = _pin_file(folder, "letta")
    # pip asks the archive for its metadata, by its build tool, which is installed by now.
    options = ["--no-binary", "letta", "--no-build-isolation"]
    _pip(folder, "download", *options, "--dest", download, "-r", pin)
    [archive] = download.glob("letta-*.tar.gz")
    root = archive.name.removesuffix(".tar.gz")
    unpack: list[str | Path] = ["tar", "-xzf", archive, "-C", unpacked, "--strip-components=1"]
    _run([*unpack, f"{root}/alembic", f"{root}/alembic.ini"])
    shutil.rmtree(download)


def _pin_file(folder: Folder, name: str) -> Path:
    """Return a file with the lines of one package of the lock file."""
    [pin] = [pin[0] for pin in PIN.finditer(LOCK.read_text()) if pin["name"] == name]
    file = folder.file(f"{name}.lock")
    file.write_text(pin + "\n")
    return file


PARTS = {"venv": _install_packages, "migrations": _fetch_migrations}


def _pip(folder: Folder, command: str, *arguments: str | Path) -> None:
    pip: list[str | Path] = [folder.python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _run([*pip, command, "--require-hashes", "--no-deps", *arguments])


def _run(command: list[str | Path]) -> None:
    run = subprocess.run(command, env=outer_environment(), check=False)  # noqa: S603  # of our own making
    if run.returncode:
        raise GiveUp(f"The installation failed (exit status {run.returncode}): see above.")
