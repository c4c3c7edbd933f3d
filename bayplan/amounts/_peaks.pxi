"""The highest total of a view: `kernel.Peaks`."""

@cython.final
cdef class Peaks:
    """The highest of some totals, kept by blocks: after a change only the changed blocks are looked at.

    With `groups`, numbers below 63 per row, also which groups have a row that is not refused.
    """

    cdef Py_ssize_t size, blocks
    cdef object array, cells
    cdef const int64_t[::1] values
    cdef int64_t* best_of
    cdef int64_t* ties_of
    cdef int64_t* feasible_of
    cdef int64_t* groups_of
    cdef const int64_t[::1] groups

    def __init__(self, totals, groups=None):
        self.array = self.values = totals
        self.size = len(totals)
        self.blocks = (self.size + BLOCK - 1) // BLOCK
        self.cells = np.zeros(4 * self.blocks + 1, dtype=np.int64)
        cdef int64_t[::1] cells = self.cells
        self.best_of = &cells[0]
        self.ties_of = self.best_of + self.blocks
        self.feasible_of = self.ties_of + self.blocks
        self.groups_of = self.feasible_of + self.blocks
        self.groups = groups

    def update(self, rows):
        """Take over the totals that changed at `rows`, or everywhere."""
        cdef Py_ssize_t i, block
        cdef const int64_t[::1] chosen
        if rows is None:
            for block in range(self.blocks):
                self.scan(block)
            return
        chosen = rows
        for i in range(chosen.shape[0]):
            self.ties_of[chosen[i] // BLOCK] = STALE
        self.settle()

    cdef inline void note(self, Py_ssize_t row, int64_t old, int64_t new) noexcept:
        """The value of a row changed; `settle` has to follow. A block is read again only if its best row is lost."""
        cdef Py_ssize_t block = row // BLOCK
        if self.ties_of[block] == STALE:
            return
        if (old ^ new) < 0:
            self.ties_of[block] = STALE  # one of both is a refusal
        elif new > self.best_of[block]:
            self.best_of[block] = new
            self.ties_of[block] = 1
        elif new == self.best_of[block]:
            self.ties_of[block] += 1
        elif old == self.best_of[block]:
            self.ties_of[block] -= 1
            if self.ties_of[block] == 0:
                self.ties_of[block] = STALE

    cdef void settle(self) noexcept:
        """Read the blocks again whose best value is unknown."""
        cdef Py_ssize_t block
        for block in range(self.blocks):
            if self.ties_of[block] == STALE:
                self.scan(block)

    cdef inline void scan(self, Py_ssize_t block) noexcept:
        cdef const int64_t* values = &self.values[0]
        cdef Py_ssize_t row, start = block * BLOCK, end = start + BLOCK
        cdef int64_t best = -1, value, ties = 0, feasible = 0, groups = 0
        if end > self.size:
            end = self.size
        for row in range(start, end):
            value = values[row]
            feasible += value >= 0
            best = value if value > best else best
        if best >= 0:
            for row in range(start, end):
                ties += values[row] == best
            if self.groups is not None:
                for row in range(start, end):
                    if values[row] >= 0:
                        groups |= (<int64_t>1) << self.groups[row]
        self.best_of[block] = best
        self.ties_of[block] = ties
        self.feasible_of[block] = feasible
        self.groups_of[block] = groups

    def present(self):
        """The groups that have a row which is not refused, as bits."""
        cdef int64_t groups = 0
        cdef Py_ssize_t block
        for block in range(self.blocks):
            groups |= self.groups_of[block]
        return groups

    def totals(self):
        """int64 per row: its total; negative where it is refused."""
        return self.array

    def total_at(self, Py_ssize_t row):
        """The total of one row."""
        return self.values[row]

    def best(self):
        """The fields of `Best`."""
        cdef Py_ssize_t block, row, first = -1
        cdef int64_t best = -1, ties = 0, feasible = 0
        for block in range(self.blocks):
            feasible += self.feasible_of[block]
            if self.best_of[block] > best:
                best = self.best_of[block]
                ties = self.ties_of[block]
                first = block
            elif self.best_of[block] == best:
                ties += self.ties_of[block]
        if best < 0:
            return -1, 0, 0, -1
        row = first * BLOCK
        while self.values[row] != best:
            row += 1
        return best, ties, feasible, row

    def nth_best(self, Py_ssize_t n):
        """The n-th row, from 0, that has the highest total; there are more than n."""
        cdef int64_t best = self.best()[0]
        cdef Py_ssize_t block = 0, row
        while self.best_of[block] != best or n >= self.ties_of[block]:
            n -= self.ties_of[block] if self.best_of[block] == best else 0
            block += 1
        row = block * BLOCK
        while self.values[row] != best or n > 0:
            n -= self.values[row] == best
            row += 1
        return row
