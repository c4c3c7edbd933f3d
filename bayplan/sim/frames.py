"""Frames: rows of plain values as a pandas DataFrame, where pandas is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InputError


def make_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A DataFrame with one line per row; raises InputError when pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise InputError(
            "frames: expected pandas to be installed (pip install 'bayplan[notebook]'); got none"
        ) from None
    return pandas.DataFrame(list(rows))
