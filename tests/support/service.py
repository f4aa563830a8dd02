"""The whole service over real HTTP: in a thread of the test run, or as a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import uvicorn
from fastapi import FastAPI

from app.settings import Settings
from tests.support.ports import LOOPBACK, port_of, reserve_port
from tests.support.storage import Storage
from tests.support.wait import wait_until

REPOSITORY = Path(__file__).parents[2]
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class InProcessService:
    """The app on an ephemeral port, served by uvicorn in a thread with an event loop of its own.

    Quick to start, and `app` is at hand for a test that must plant a fault. `settings` are the
    fields of `Settings`; no `.env` file has a say.
    """

    def __init__(self, storage: Storage, **settings: object) -> None:
        # Not at the top: a run of the pure rules alone should not load the whole app.
        from app.main import create_app  # noqa: PLC0415

        self.storage = storage
        self._listener = socket.create_server((LOOPBACK, 0))
        self.base_url = f"http://{LOOPBACK}:{port_of(self._listener)}"
        chosen: dict[str, Any] = {
            "data_dir": storage.data_dir,
            "database_url": storage.database_url,
            "embeddings_url": f"{self.base_url}/v1",
            **settings,
        }
        self.settings = Settings(_env_file=None, **chosen)
        self.app: FastAPI = create_app(self.settings)
        self._server = uvicorn.Server(uvicorn.Config(self.app, log_config=None, lifespan="on"))
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="service", daemon=True)

    def start(self) -> None:
        """Return when the lifespan has begun; RuntimeError from its failure where it cannot."""
        self._thread.start()
        wait_until(self._started, describe="the service starts", timeout=START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop as on SIGTERM: requests under way are answered, then the lifespan ends."""
        self._server.should_exit = True
        self._thread.join(STOP_TIMEOUT_S)
        self._listener.close()
        if self._thread.is_alive():
            raise TimeoutError(f"the service did not stop within {STOP_TIMEOUT_S:g} s")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        except (Exception, SystemExit) as error:  # noqa: BLE001  (raised again by start)
            self._failure = error

    def _started(self) -> bool:
        if not self._thread.is_alive():
            self._listener.close()
            raise RuntimeError("the service ended at start") from self._failure
        return self._server.started


class LiveService:
    """`letta-lineage serve` as a process, on a port that stays its own over restarts.

    The environment is clean but for the storage and what is given as `environment`
    (`LINEAGE_API_KEYS="…"`). All its output goes to `log_path`.
    """

    def __init__(self, storage: Storage, *, scratch: Path, **environment: str) -> None:
        self.storage = storage
        self.log_path = scratch / "service.log"
        self._scratch = scratch  # the working directory: no `.env` is found there
        self._reservation = reserve_port()
        self.port = port_of(self._reservation)
        self.base_url = f"http://{LOOPBACK}:{self.port}"
        self.environment = self._base_environment() | environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the service has printed so far, over all its starts."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        """The process id of the running service."""
        return self._running().pid

    def start(self, *, until: str = "/readyz") -> None:
        """Start and return when `until` answers 200 (`/healthz` where it cannot become ready).

        RuntimeError with the log where the process ends first.
        """
        self.launch()
        wait_until(
            lambda: self._answers("/healthz") and self._answers(until),
            describe=lambda: f"{until} answers 200; the log:\n{self.log}",
            timeout=START_TIMEOUT_S,
        )

    def launch(self) -> None:
        """Start the process and return at once: for a start that is meant to fail."""
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app.cli", "serve"],
                cwd=self._scratch,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the test run, which then stops the service
            )

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        self._running().kill()
        self.wait()

    def terminate(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop and return its exit status once it has."""
        self._running().send_signal(how)
        return self.wait()

    def wait(self) -> int:
        """Return the exit status once the process has ended; TimeoutExpired if it does not."""
        status = self._running().wait(STOP_TIMEOUT_S)
        self._process = None
        return status

    def restart(self) -> None:
        """Stop it in good order if it runs, and start it on the same storage and port."""
        if self._process is not None:
            self.terminate()
        self.start()

    def close(self) -> None:
        """End it whatever its state is, and give its port back."""
        if self._process is not None:
            self.kill()
        self._reservation.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _base_environment(self) -> dict[str, str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._scratch),
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONUNBUFFERED": "1",
            "LINEAGE_HOST": LOOPBACK,
            "LINEAGE_PORT": str(self.port),
            "LINEAGE_DATA_DIR": str(self.storage.data_dir),
        }
        if self.storage.database_url is not None:
            environment["LINEAGE_DATABASE_URL"] = self.storage.database_url
        return environment

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the service is not running")
        return self._process

    def _answers(self, path: str) -> bool:
        if self._running().poll() is not None:
            raise RuntimeError(f"the service ended at start; its log:\n{self.log}")
        try:
            return httpx.get(f"{self.base_url}{path}", timeout=5).status_code == httpx.codes.OK
        except httpx.TransportError:  # not listening yet, or cut while it starts
            return False
