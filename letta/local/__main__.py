"""`python -m local up|down|remove|lend`, as the Makefile calls it."""
# ruff: noqa: T201  # what it prints is for whoever called make

import argparse
import os
import shutil
import sys
from pathlib import Path

from .folder import LOOPBACK, Folder, GiveUp
from .installation import install
from .postgres import database_uri, remove_postgres, start_postgres, stop_postgres
from .processes import Process, run_to_its_end
from .server import LOG, answers, check_port, running_letta, start_letta, stop_letta


def main() -> None:
    """Do one thing to the folder $LETTA_DIR; what goes wrong is one sentence and exit status 1."""
    parser = argparse.ArgumentParser(prog="local", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "remove", "lend"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for lend: what to run")
    asked = parser.parse_args()
    folder = Folder(Path(os.environ.get("LETTA_DIR") or ".letta").absolute())
    try:
        if asked.command == "lend":
            sys.exit(lend(folder, asked.arguments))
        if asked.command != "up" and not folder.path.is_dir():
            return  # nothing was ever started here
        with folder.locked():
            {"up": up, "down": down, "remove": remove}[asked.command](folder)
    except GiveUp as reason:
        sys.exit(str(reason))
    except PermissionError as error:
        sys.exit(f"LETTA_DIR has to be a folder that you may write to: {error}")


def up(folder: Folder) -> tuple[str, bool]:
    """Return Letta's address, printed as the last line, and whether it had to be started."""
    running = running_letta(folder)
    had_to = running is None or not answers(running.port)
    if running is None or had_to:
        running = _start(folder)
    print(f"Letta {'runs' if had_to else 'ran already'}: pid {running.pid}, log {folder.file(LOG)}")
    address = f"http://{LOOPBACK}:{running.port}"
    print(f"LETTA_BASE_URL={address}", flush=True)
    return address, had_to


def _start(folder: Folder) -> Process:
    port = wanted_port()
    down(folder)  # half of it may run
    check_port(port)
    install(folder)
    print("Starting PostgreSQL and Letta (about half a minute)", flush=True)
    try:
        database = start_postgres(folder)
        return start_letta(folder, port=port, database_uri=database_uri(folder, database))
    except (GiveUp, KeyboardInterrupt):
        down(folder)
        raise


def wanted_port() -> int:
    """Return $LETTA_PORT."""
    text = os.environ.get("LETTA_PORT") or "8283"
    if not text.isdecimal() or not 0 < int(text) < 2**16:
        raise GiveUp(f"LETTA_PORT is not the number of a port: {text}")
    return int(text)


def down(folder: Folder) -> None:
    """End the server, then its database, if they run."""
    for name, stop in {"Letta": stop_letta, "PostgreSQL": stop_postgres}.items():
        if stop(folder):
            print(f"{name} is stopped")


def remove(folder: Folder) -> None:
    """Stop and remove everything."""
    down(folder)
    remove_postgres(folder)
    shutil.rmtree(folder.path)


def lend(folder: Folder, command: list[str]) -> int:
    """Run a program with a LETTA_BASE_URL, ours unless it is set; return its exit status."""
    if os.environ.get("LETTA_BASE_URL"):
        return run_to_its_end(command)
    with folder.locked():
        address, started = up(folder)
    try:
        return run_to_its_end(command, LETTA_BASE_URL=address)
    finally:
        if started:
            with folder.locked():
                down(folder)


if __name__ == "__main__":
    main()
