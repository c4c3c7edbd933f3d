"""Frames: rows of plain values as a pandas DataFrame, where pandas is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..errors import InputError

T = TypeVar("T")


def chosen(what: str, rows: Mapping[str, Callable[[], T]]) -> T:
    """The rows called `what`; raises InputError for another name."""
    if what not in rows:
        raise InputError(f'to_frame: expected {" or ".join(rows)}; got "{what}"')
    return rows[what]()


def make_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A DataFrame with one line per row; raises InputError when pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise InputError(
            "frames: expected pandas to be installed (pip install 'bayplan[notebook]'); got none"
        ) from None
    return pandas.DataFrame(list(rows))
