"""FollowedColumn: a column that is worked out from the rows and follows them as they change.

What a plugin makes of every row whatever the pod is need not be made again for every pod.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .changes import ChangeLog
from .columns import Ints, Rows, Size

FEW_ROWS = 8
"""Up to here working out one row after the other is quicker than all of them at once."""


class FollowedColumn:
    """One int64 per row; `of_rows` and `of_row` work it out, for many rows and for one."""

    __slots__ = ("_log", "_of_row", "_of_rows", "_size", "_values", "_version")

    def __init__(
        self,
        size: Size,
        log: ChangeLog,
        of_rows: Callable[[Rows], Ints],
        of_row: Callable[[int], int],
    ) -> None:
        self._size = size
        self._log = log
        self._of_rows = of_rows
        self._of_row = of_row
        self._version = -1
        self._values: Ints = np.zeros(0, dtype=np.int64)

    @property
    def view(self) -> Ints:
        """The values of the table's rows, up to date; not to be written to."""
        log = self._log
        if self._version != log.version:
            self._follow(log.since(self._version) if self._version >= 0 else None)
            self._version = log.version
        return self._values

    def _follow(self, changed: list[int] | None) -> None:
        size = self._size.rows
        if changed is None or len(self._values) != size or 4 * len(changed) > size:
            self._values = self._of_rows(slice(None))
        elif len(changed) <= FEW_ROWS:
            for row in changed:
                self._values[row] = self._of_row(row)
        else:
            rows = np.array(changed, dtype=np.int64)
            self._values[rows] = self._of_rows(rows)
