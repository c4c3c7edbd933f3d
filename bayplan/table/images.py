"""ImageStates: the images of each node, and the number of nodes of each image when a row was last read.

Mirrors the image states of pkg/scheduler/backend/cache/cache.go. kube-scheduler copies an image's node count into its
snapshot only for nodes that changed, so a row has the count of the time of its last change. `seen` records that time
per row, `ImageState.history` the counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import numpy as np

from ..api.node import ContainerImage
from .columns import Column, Ints, Size

HISTORY_LIMIT = 256
FEW_ROWS = 16
"""Number of rows up to which a loop is quicker than NumPy."""


class ImageState:
    """One image name: size in bytes (of the node that reported it first) and the rows that have it."""

    __slots__ = ("_array", "_limit", "counts", "moments", "rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        self.moments: list[int] = []  # ascending; counts[i] held from moments[i] on
        self.counts: list[int] = []
        self._array: Ints | None = None
        self._limit = HISTORY_LIMIT

    def row_array(self) -> Ints:
        """The rows that have the image, ascending."""
        if self._array is None:
            self._array = np.array(sorted(self.rows), dtype=np.int64)
        return self._array

    def change(self, moment: int) -> None:
        """Note that `rows` changed at `moment`."""
        self._array = None
        self.moments.append(moment)
        self.counts.append(len(self.rows))

    @property
    def is_long(self) -> bool:
        """Whether the history is twice as long as after the last `forget_before`."""
        return len(self.moments) > self._limit

    def forget_before(self, moment: int) -> None:
        """Drop history that no row refers to any more."""
        keep = max(bisect_right(self.moments, moment) - 1, 0)
        self._limit = max(HISTORY_LIMIT, 2 * (len(self.moments) - keep))
        del self.moments[:keep]
        del self.counts[:keep]

    def nodes_seen(self, seen: Ints) -> Ints:
        """int64 per entry of `seen`: the number of nodes with the image at that moment."""
        position = np.searchsorted(np.array(self.moments, dtype=np.int64), seen, side="right") - 1
        counted: Ints = np.array(self.counts, dtype=np.int64)[np.maximum(position, 0)]
        return counted


class ImageStates:
    """Every image on some node, by normalised or plain name as the node reports it."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._states: dict[str, ImageState] = {}
        self._seen = Column(size)
        self._moment = 0
        self._touched: list[int] = []
        self.touch = self._touched.append
        """Note that a row changed: the next snapshot shows it the current counts (writer only)."""
        self.version = 0
        """Changes whenever some row may see other images or counts."""

    def __bool__(self) -> bool:
        """Whether some node has an image."""
        return bool(self._states)

    def __contains__(self, name: str) -> bool:
        """Whether some node has the image."""
        return name in self._states

    def set(self, row: int, old: Iterable[ContainerImage], new: Iterable[ContainerImage]) -> None:
        """Replace the images of `row` (writer only)."""
        before = {name for image in old for name in image.names or ()}
        after: dict[str, int] = {}
        for image in new:
            for name in image.names or ():
                after.setdefault(name, image.size_bytes)
        # The only node with an image reports it again on every change, and may report another size.
        resized = {
            name: after[name]
            for name in before & after.keys()
            if self._states[name].size_bytes != after[name] and self._states[name].rows == {row}
        }
        if before == after.keys() and not resized:
            return
        self._moment += 1
        self.version += 1
        for name, size_bytes in resized.items():
            self._states[name].size_bytes = size_bytes
        for name in before - after.keys():
            self._drop(row, name)
        for name in after.keys() - before:
            state = self._states.get(name)
            if state is None:
                state = self._states[name] = ImageState(after[name])
            state.rows.add(row)
            state.change(self._moment)
            if state.is_long:
                state.forget_before(int(self._seen.view.min()))

    def _drop(self, row: int, name: str) -> None:
        state = self._states[name]
        state.rows.discard(row)
        if state.rows:
            state.change(self._moment)
        else:
            del self._states[name]

    def refresh(self) -> None:
        """Give the rows that changed since the last snapshot the current counts."""
        touched, moment = self._touched, self._moment
        if not touched:
            return
        # At moment 0 no node has ever had an image.
        if moment and self._is_behind(touched, moment):
            self._seen.data[touched] = moment
            self.version += 1
        touched.clear()

    def _is_behind(self, rows: list[int], moment: int) -> bool:
        """Whether some of these rows have counts from before `moment`."""
        if len(rows) > FEW_ROWS:
            return bool((self._seen.data[rows] != moment).any())
        seen = self._seen.cells
        return any(seen[row] != moment for row in rows)

    def total(self, names: Iterable[str], node_count: int) -> Ints:
        """int64 per row: the sizes of the images `names` on the row, each scaled by its share of nodes."""
        sums = np.zeros(self._size.rows, dtype=np.int64)
        for name in names:
            state = self._states.get(name)
            if state is None:
                continue
            rows = state.row_array()
            # A row is spread wide when many nodes have its image: size times that share, truncated.
            share = state.nodes_seen(self._seen.view[rows]) / node_count
            sums[rows] += (state.size_bytes * share).astype(np.int64)
        return sums

    def fork(self, size: Size, row: int) -> ImageStates:
        """The images of one row; they do not change in a what-if."""
        return _ForkedImages(self, size, row)


class _ForkedImages(ImageStates):
    """Images of one row of another table."""

    def __init__(self, base: ImageStates, size: Size, row: int) -> None:
        super().__init__(size)
        self._base = base
        self._row = row

    def __bool__(self) -> bool:
        return bool(self._base)

    def __contains__(self, name: str) -> bool:
        return name in self._base

    def total(self, names: Iterable[str], node_count: int) -> Ints:
        return self._base.total(names, node_count)[self._row : self._row + 1]
