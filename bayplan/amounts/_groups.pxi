@cython.final
cdef class GroupTracker:
    """Groups of rows by their marks, and the highest value of each group, followed as rows change.

    `points` are what the groups get on top of their values for one pod, REFUSED where it cannot go. What it holds per
    row has 32 bits: a large cluster has hundreds of trackers.
    """

    cdef readonly object ids, points, values
    cdef public int64_t version
    cdef public bint are_own
    cdef object samples, sizes, marks
    cdef const int64_t[::1] value_at
    cdef int32_t[::1] numbers, value_of, known_of
    cdef int64_t[::1] sample_of, size_of, best_of, ties_of, points_of
    cdef const int64_t* columns[MOST_MARKS]
    cdef int64_t lowest[MOST_MARKS]
    cdef int64_t widths[MOST_MARKS]
    cdef int count
    cdef Py_ssize_t number

    def __init__(self, values, marks):
        """Raises OverflowError when the marks are too many or too far apart, or a value has more than 32 bits."""
        cdef Py_ssize_t size = len(values), slots = 1
        cdef int64_t span
        cdef int i
        self.count = <int>len(marks)
        if self.count > MOST_MARKS or size == 0:
            raise OverflowError
        for i in range(self.count):
            self.lowest[i] = marks[i].min()
            span = int(marks[i].max()) - self.lowest[i]
            if span >= MOST_SLOTS:
                raise OverflowError
            self.widths[i] = span + 3  # counts grow
            slots *= self.widths[i]
            if slots > MOST_SLOTS:
                raise OverflowError
        self.values = self.value_at = values
        self.ids = np.full(size, -1, dtype=np.int32)
        self.numbers = self.ids
        self.value_of = np.full(size, -1, dtype=np.int32)
        self.known_of = np.zeros(slots, dtype=np.int32)
        self.samples = np.full(slots, -1, dtype=np.int64)
        self.sample_of = self.samples
        self.sizes = np.zeros(slots, dtype=np.int64)
        self.size_of = self.sizes
        self.points = np.zeros(slots, dtype=np.int64)
        self.points_of = self.points
        self.best_of = np.full(slots, -1, dtype=np.int64)
        self.ties_of = np.zeros(slots, dtype=np.int64)
        self.update(np.arange(size, dtype=np.int64), marks)

    def update(self, const int64_t[::1] rows, marks=None):
        """Put `rows` in their groups, by the marks in other arrays if such are given.

        Raises OverflowError when a mark or a value is out of bounds: begin anew then.
        """
        cdef const int64_t* values = &self.value_at[0]
        cdef const int64_t[::1] held
        cdef Py_ssize_t i, row
        cdef int64_t slot, place, old, new
        cdef int k
        if marks is not None:
            self.marks = marks  # alive as long as the pointers
            for k in range(self.count):
                held = marks[k]
                self.columns[k] = &held[0]
        for i in range(rows.shape[0]):
            row = rows[i]
            old, new = self.numbers[row], -1
            if values[row] >= 0:
                if values[row] > INT32_MAX:
                    raise OverflowError
                slot = 0
                for k in range(self.count):
                    place = self.columns[k][row] - self.lowest[k]
                    if place < 0 or place >= self.widths[k]:
                        raise OverflowError
                    slot = slot * self.widths[k] + place
                if self.known_of[slot] == 0:
                    self.number += 1
                    self.known_of[slot] = <int32_t>self.number
                new = self.known_of[slot] - 1
            if new != old or values[row] != self.value_of[row]:
                self.move(row, old, new, values[row])

    cdef inline void move(self, Py_ssize_t row, int64_t old, int64_t new, int64_t value) noexcept:
        """A row of one group has another value, or is in another group from now on (-1: in none)."""
        if old >= 0 and self.value_of[row] == self.best_of[old]:
            self.ties_of[old] -= 1  # without ties, `best_of` is a bound that no row reaches
        self.value_of[row] = <int32_t>value
        self.numbers[row] = <int32_t>new
        if new >= 0 and value > self.best_of[new]:
            self.best_of[new] = value
            self.ties_of[new] = 1
        elif new >= 0 and value == self.best_of[new]:
            self.ties_of[new] += 1
        if new == old:
            return
        if new >= 0:
            self.size_of[new] += 1
            if self.sample_of[new] < 0 or row < self.sample_of[new]:
                self.sample_of[new] = row
        if old >= 0:
            self.size_of[old] -= 1
            if self.size_of[old] == 0:
                self.best_of[old] = self.sample_of[old] = -1
                self.ties_of[old] = 0
            elif self.sample_of[old] == row:
                while self.numbers[self.sample_of[old]] != old:
                    self.sample_of[old] += 1

    @property
    def cells(self):
        """How many numbers it holds, about."""
        return len(self.numbers) + 6 * len(self.sizes)

    def current(self):
        """`kernel.Groups.current`."""
        (groups,) = self.sizes[: self.number].nonzero()
        groups = groups[self.samples[groups].argsort()]
        return groups, self.samples[groups], self.sizes[groups]

    def give(self, groups, points):
        """`kernel.Groups.give`."""
        self.points[: self.number] = REFUSED
        self.points[groups] = points

    def add_points(self, const int64_t[::1] column, const int64_t[::1] more):
        """Add to the points of groups the entries of `more` at the number in the `column` of their rows."""
        cdef Py_ssize_t group
        for group in range(self.number):
            if self.size_of[group] and self.points_of[group] != REFUSED:
                self.points_of[group] += more[column[self.sample_of[group]]]

    def totals(self):
        """int64 per row: its total; negative where the pod cannot go."""
        totals = np.maximum(self.values + self.points[self.ids], -1)
        return np.where(self.ids >= 0, totals, -1)

    def best(self):
        """The fields of `Best`, of values and points."""
        cdef int64_t best = self.highest(), ties = 0, feasible = 0
        cdef Py_ssize_t group, row = self.numbers.shape[0]
        for group in range(self.number):
            if self.points_of[group] == REFUSED or self.size_of[group] == 0:
                continue
            feasible += self.size_of[group]
            if self.ties_of[group] and self.best_of[group] + self.points_of[group] == best:
                ties += self.ties_of[group]
                row = self.sample_of[group] if self.sample_of[group] < row else row
        if feasible == 0:
            return -1, 0, 0, -1
        while self.total_at(row) != best:
            row += 1
        return best, ties, feasible, row

    cdef int64_t highest(self) noexcept:
        """The highest total. Groups that lost their best rows are read again if they may have it."""
        cdef int64_t best = self.certain()
        cdef Py_ssize_t group, row
        cdef bint is_certain = True
        for group in range(self.number):
            if self.ties_of[group] == 0 and self.size_of[group]:
                if self.best_of[group] + self.points_of[group] >= best:
                    self.ties_of[group] = LOST
                    self.best_of[group] = -1
                    is_certain = False
        if is_certain:
            return best
        for row in range(self.numbers.shape[0]):
            group = self.numbers[row]
            if group >= 0 and self.ties_of[group] <= LOST:
                if self.value_of[row] > self.best_of[group]:
                    self.best_of[group] = self.value_of[row]
                    self.ties_of[group] = LOST
                if self.value_of[row] == self.best_of[group]:
                    self.ties_of[group] -= 1
        for group in range(self.number):
            if self.ties_of[group] < LOST:
                self.ties_of[group] = LOST - self.ties_of[group]
        return self.certain()

    cdef int64_t certain(self) noexcept:
        """The highest total of groups that have their best rows."""
        cdef int64_t best = -1
        cdef Py_ssize_t group
        for group in range(self.number):
            if self.ties_of[group] and self.best_of[group] + self.points_of[group] > best:
                best = self.best_of[group] + self.points_of[group]
        return best

    cpdef int64_t total_at(self, Py_ssize_t row) noexcept:
        """Value and points of a row; negative where the pod cannot go."""
        if self.numbers[row] < 0:
            return -1
        return self.value_of[row] + self.points_of[self.numbers[row]]

    def nth_best(self, Py_ssize_t n):
        """The n-th row, from 0, that has the highest total; there are more than n."""
        cdef int64_t best = self.highest()
        cdef Py_ssize_t group, row = -1
        while n >= 0:
            row += 1
            group = self.numbers[row]
            n -= group >= 0 and self.value_of[row] + self.points_of[group] == best
        return row
