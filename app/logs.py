"""Structured logs: one JSON object a line, on standard output."""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import Processor

SHARED: list[Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def configure_logs(level: str) -> None:
    """Log from this level on; the libraries' own logging takes the same form."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*SHARED, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            foreign_pre_chain=SHARED,
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.INFO), force=True)
    # It would log the URL of each call, and a search of Letta's has its query there.
    logging.getLogger("httpx").setLevel(max(number, logging.WARNING))


class RequestLog:
    """Logs requests in batches: a line by itself would cost a search a tenth of its time.

    A crash may lose the last moment's lines; what goes wrong is logged at once, elsewhere.
    """

    EVERY_S = 0.2

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._waiting: list[tuple[float, Mapping[str, Any]]] = []

    def tell(self, fields: Mapping[str, Any]) -> None:
        """Take a request's line; it is written within EVERY_S seconds."""
        if not self._enabled:
            return
        if not self._waiting:
            asyncio.get_running_loop().call_later(self.EVERY_S, self.flush)
        self._waiting.append((time.time(), fields))

    def flush(self) -> None:
        """Write what is waiting."""
        waiting, self._waiting = self._waiting, []
        sys.stdout.write("".join(_line(at, fields) for at, fields in waiting))
        sys.stdout.flush()


def _line(at: float, fields: Mapping[str, Any]) -> str:
    timestamp = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    event = {"event": "request", "level": "info", "timestamp": timestamp, **fields}
    return f"{json.dumps(event)}\n"
