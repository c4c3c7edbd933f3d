"""RowStatuses: a status for every row, each distinct one stored once and counted.

Thousands of nodes refuse a pod for a handful of reasons. The message
about all of them is a sum over the distinct statuses, not over the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..table import Bools, Ints
from .status import SUCCESS, Code, Status
from .verdict import Verdict


class RowStatuses:
    """`indices` has, per row, a position in `statuses`; `counts` has the number of rows of each status.

    The first status is SUCCESS, which is not counted.
    """

    __slots__ = (
        "_codes",
        "_codes_given",
        "_fit_error",
        "_given",
        "_numbers",
        "_rejectors",
        "_rows_with",
        "counts",
        "indices",
        "refused",
        "statuses",
    )

    def __init__(self) -> None:
        self.indices: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.statuses: list[Status] = [SUCCESS]
        self.counts: list[int] = [0]
        self.refused = 0
        """Rows with another status than SUCCESS."""
        self._numbers: dict[Status, int] = {SUCCESS: 0}
        self._codes: NDArray[np.int8] = np.zeros(1, dtype=np.int8)
        self._given: list[Status] | None = None
        self._codes_given: frozenset[Code] | None = None
        self._rejectors: tuple[frozenset[str], frozenset[str]] | None = None
        self._rows_with: dict[Code, Ints] = {}
        self._fit_error = (-1, "")

    @classmethod
    def of(
        cls, statuses: list[Status], indices: NDArray[np.int32], counts: list[int]
    ) -> RowStatuses:
        """Made of `statuses`, of which the first is SUCCESS; int32 per row, a position among them; and their counts."""
        made = cls()
        made.statuses, made.indices, made.counts = statuses, indices, counts
        made._numbers = {status: number for number, status in enumerate(statuses)}
        made.refused = sum(counts)
        return made

    def clear(self, size: int) -> None:
        """Set the status of each of `size` rows to SUCCESS."""
        self.indices = np.zeros(size, dtype=np.int32)
        self.statuses, self._numbers = [SUCCESS], {SUCCESS: 0}
        self._codes = np.zeros(1, dtype=np.int8)
        self._recount()

    def at(self, row: int) -> Status:
        """The status of one row."""
        return self.statuses[self.indices.item(row)]

    def put(self, row: int, status: Status) -> None:
        """Give one row another status."""
        number, known = self._number(status), self.indices.item(row)
        if number == known:
            return
        self._forget()
        self.indices[row] = number
        if known:
            self.counts[known] -= 1
            self.refused -= 1
        if number:
            self.counts[number] += 1
            self.refused += 1

    def put_rows(self, rows: Ints, refusals: Sequence[tuple[Ints, Verdict, str]]) -> None:
        """Set the status of `rows` from `refusals` (rows, verdict, plugin); the first refusal of a row counts. Rows
        without one get SUCCESS.
        """
        self.indices[rows] = 0
        for judged, verdict, plugin in refusals:
            positions = np.flatnonzero((verdict.codes != 0) & (self.indices[judged] == 0))
            if len(positions):
                samples, inverse = verdict.distinct(positions)
                numbers = [self._number(verdict.status(sample).by(plugin)) for sample in samples]
                self.indices[judged[positions]] = np.array(numbers, dtype=np.int32)[inverse]
        self._recount()

    def codes(self) -> NDArray[np.int8]:
        """int8 per row: the code of its status."""
        if len(self._codes) != len(self.statuses):
            self._codes = np.array([status.code for status in self.statuses], dtype=np.int8)
        return self._codes[self.indices]

    def rows_with(self, code: Code) -> Ints:
        """The rows whose status has this code, ascending; not to be changed."""
        rows = self._rows_with.get(code)
        if rows is None:
            wanted = [status.code is code for status in self.statuses]
            is_every = all(wanted[1:]) and not wanted[0]
            found = self.is_refused if is_every else np.array(wanted).take(self.indices)
            rows = self._rows_with[code] = found.nonzero()[0]
        return rows

    def has(self, code: Code) -> bool:
        """Whether a row has a refusal with this code."""
        if self._codes_given is None:
            self._codes_given = frozenset(status.code for status in self.given())
        return code in self._codes_given

    def given(self) -> list[Status]:
        """The refusals of at least one row; not to be changed."""
        if self._given is None:
            counted = zip(self.statuses, self.counts, strict=True)
            self._given = [status for status, count in counted if count]
        return self._given

    @property
    def rejectors(self) -> tuple[frozenset[str], frozenset[str]]:
        """The plugins that refuse some row, and those of them that do so with Pending."""
        if self._rejectors is None:
            given = [status for status in self.given() if status.plugin]
            pending = (status.plugin for status in given if status.code is Code.Pending)
            self._rejectors = (frozenset(status.plugin for status in given), frozenset(pending))
        return self._rejectors

    def histogram(self, counted: Sequence[int] | None = None) -> Counter[str]:
        """Number of rows for each reason; `counted` has the number of rows of each status, all rows if None."""
        counts: Counter[str] = Counter()
        for status, count in zip(self.statuses, counted or self.counts, strict=True):
            for reason in status.reasons if count else ():
                counts[reason] += count
        return counts

    def fit_error(self, node_count: int) -> str:
        """The message about all rows, in a cluster of `node_count` nodes."""
        if self._fit_error[0] != node_count:
            self._fit_error = (node_count, no_node_available(node_count, self.histogram()))
        return self._fit_error[1]

    @property
    def is_refused(self) -> Bools:
        """bool per row: its status is not SUCCESS."""
        refused: Bools = self.indices != 0
        return refused

    def _number(self, status: Status) -> int:
        number = self._numbers.get(status)
        if number is None:
            number = self._numbers[status] = len(self.statuses)
            self.statuses.append(status)
            self.counts.append(0)
        return number

    def _recount(self) -> None:
        self.counts = np.bincount(self.indices, minlength=len(self.statuses)).tolist()
        self.counts[0] = 0
        self.refused = sum(self.counts)
        self._forget()

    def _forget(self) -> None:
        """Drop the results derived from the counts, which change."""
        self._given = self._codes_given = self._rejectors = None
        self._rows_with.clear()
        self._fit_error = (-1, "")


def no_node_available(node_count: int, reasons: Mapping[str, int]) -> str:
    """kube-scheduler's message for a pod that fits nowhere; `reasons` has the number of nodes for each."""
    text = f"0/{node_count} nodes are available:"
    # The parts are sorted as text: "10 Too many pods" comes before "2 Insufficient cpu".
    parts = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return f"{text} {', '.join(parts)}." if parts else text
