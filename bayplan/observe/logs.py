"""Logs: the commands' set-up for log records of the package and its plugins."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""Level by number of `-v`; more than that gives the last."""


class TextFormatter(logging.Formatter):
    """One readable line: time, level, logger, message; a traceback below it."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname:<7} {name}: {message}", style="{")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return _moment(record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `ts`, `level`, `logger`, `msg`, and `err` with the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(
    verbosity: int = 0, *, as_json: bool = False, stream: TextIO | None = None
) -> None:
    """Write log records to `stream` (standard error): warnings, with `verbosity` 1 more, with 2 everything.

    Replaces the previous set-up. It covers all packages, as plugins may come from any.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    level = LEVELS[min(max(verbosity, 0), len(LEVELS) - 1)]
    logging.basicConfig(handlers=[handler], level=level, force=True)


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
