"""Structured logs: one JSON object a line, on standard output."""

import logging
import sys

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
