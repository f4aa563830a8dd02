"""The Letta server of a folder."""

import http.client
import os
import signal
import socket
from pathlib import Path

from .folder import LOOPBACK, Folder, GiveUp, tail
from .processes import Process, launch, wait_until

START = Path(__file__).resolve().parents[1] / "start.py"
NOTE = "letta.json"
LOG = "letta.log"
START_DEADLINE_S = 300.0
ANSWER_DEADLINE_S = 10.0
# What Letta sends to the service's /v1/embeddings unless LINEAGE_EMBEDDINGS_KEY names another.
LOCAL_KEY = "local-letta"
# Whose models Letta lists when it starts; left to itself it would ask its makers' provider.
LOCAL_EMBEDDINGS = f"http://{LOOPBACK}:8000/v1"


def running_letta(folder: Folder) -> Process | None:
    """Return the server that was started here and runs."""
    return Process.remembered(folder.file(NOTE))


def check_port(port: int) -> None:
    """Refuse a port that Letta could not listen on."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        raise GiveUp(
            f"Letta cannot listen on port {port}: {os.strerror(error.errno or 0)}. "
            f"Name another one: make letta LETTA_PORT={port + 1}"
        ) from error


def start_letta(folder: Folder, *, port: int, database_uri: str) -> Process:
    """Start the server and return when it answers from its database."""
    log = folder.file(LOG)
    folder.home.mkdir(exist_ok=True)
    command: list[str | Path] = [folder.python, START, "--host", LOOPBACK, "--port", str(port)]
    command += ["--migrations", folder.migrations]
    # At its start Letta leaves files of its own in the folder it is started in.
    environment = _environment(folder, database_uri)
    child = launch(command, log=log, environment=environment, folder=folder.home)
    process = Process.of(child, port=port)
    process.remember(folder.file(NOTE))
    wait_until(
        lambda: answers(port) or child.poll() is not None,
        deadline_s=START_DEADLINE_S,
    )
    if not process.is_alive() or not answers(port):
        stop_letta(folder)
        raise GiveUp(f"Letta did not start. The end of {log}:\n{tail(log)}")
    return process


def stop_letta(folder: Folder) -> bool:
    """End the server if it runs; tell whether it ran."""
    running = running_letta(folder)
    if running:
        running.stop(signal.SIGTERM)
    folder.file(NOTE).unlink(missing_ok=True)
    return running is not None


def answers(port: int) -> bool:
    """Tell whether Letta reads from its database: its own health route says yes without one."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=ANSWER_DEADLINE_S)
    try:
        connection.request("GET", "/v1/agents/count")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _environment(folder: Folder, database_uri: str) -> dict[str, str]:
    """Return all that Letta is told: a LETTA_DIR from outside would mean another thing to it."""
    return {
        "PATH": os.defpath,
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder.home),
        "PYTHONUNBUFFERED": "1",
        "LETTA_PG_URI": database_uri,
        "OPENAI_API_KEY": os.environ.get("LINEAGE_EMBEDDINGS_KEY") or LOCAL_KEY,
        "OPENAI_BASE_URL": os.environ.get("LINEAGE_EMBEDDINGS_URL") or LOCAL_EMBEDDINGS,
    }
