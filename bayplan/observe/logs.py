"""Logs: levels by number as in Kubernetes components, records with keys, and the commands' set-up.

`--v=N` shows what is logged at the levels 0 to N. A record at level N has Python's level `v(N)`: INFO for 0, and lower
for more detail. `step` logs a message with keys and values, as kube-scheduler's structured log does:

    step(log, 4, "Picked a node for the pod", pod=pod.key, node=name)
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, TextIO

MAX_V = 19
"""The most detailed level that Python's level numbers leave room for."""
KEYS = "keys_and_values"


def v(number: int) -> int:
    """Python's level for the level `number` of Kubernetes."""
    return logging.INFO - min(max(number, 0), MAX_V)


def step(log: logging.Logger, number: int, message: str, **keys: Any) -> None:
    """Log `message` with keys and values, at the level `number`."""
    level = v(number)
    if log.isEnabledFor(level):
        log.log(level, message, extra={KEYS: keys}, stacklevel=2)  # the module is the caller's


class TextFormatter(logging.Formatter):
    """One readable line: time, level, logger, message, keys with values; a traceback below it."""

    def __init__(self) -> None:
        super().__init__("{asctime} {severity:<7} {name}: {message}{pairs}", style="{")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return _moment(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.severity = _severity(record)
        keys: dict[str, Any] = getattr(record, KEYS, {})
        record.pairs = "".join(f" {key}={_quoted(value)}" for key, value in keys.items())
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `ts`, `level`, `v` for the level by number, `logger`, `msg`, the keys of the record,
    and `err` with the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"ts": _moment(record), "level": _severity(record).lower()}
        if record.levelno <= logging.INFO:
            line["v"] = logging.INFO - record.levelno
        line |= {"logger": record.name, "msg": record.getMessage(), **getattr(record, KEYS, {})}
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up_logging(
    verbosity: int | None = None,
    *,
    as_json: bool = False,
    stream: TextIO | None = None,
    is_split: bool = False,
    modules: Mapping[str, int] | None = None,
) -> None:
    """Write log records to `stream` (standard error): warnings, and with `verbosity` the levels up to it.

    With `is_split`, records below errors go to standard output. `modules` has other levels for modules whose name
    matches a pattern. Replaces the previous set-up. It covers all packages, as plugins may come from any.
    """
    level = logging.WARNING if verbosity is None else v(verbosity)
    patterns = {name: v(number) for name, number in (modules or {}).items()}
    handlers: list[logging.Handler] = [logging.StreamHandler(stream or sys.stderr)]
    if is_split:
        handlers[0].setLevel(logging.ERROR)
        below = logging.StreamHandler(sys.stdout)
        below.addFilter(lambda record: record.levelno < logging.ERROR)
        handlers.append(below)
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
        if patterns:
            handler.addFilter(lambda record: record.levelno >= _level_of(record, level, patterns))
    logging.basicConfig(handlers=handlers, level=min([level, *patterns.values()]), force=True)


def _level_of(record: logging.LogRecord, level: int, patterns: Mapping[str, int]) -> int:
    found = [own for name, own in patterns.items() if fnmatchcase(record.module, name)]
    return found[0] if found else level


def set_verbosity(verbosity: int) -> None:
    """Show the levels up to `verbosity` from now on."""
    logging.getLogger().setLevel(v(verbosity))


def _severity(record: logging.LogRecord) -> str:
    return "INFO" if record.levelno < logging.INFO else record.levelname


def _quoted(value: Any) -> str:
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(value if isinstance(value, dict | list) else str(value), ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
