"""Pods put on rows one after another, compiled: `filling.fill`."""

MOST_KINDS, MOST_USES = 256, 32
cdef enum:
    KINDS = 256
    USES = 32


cdef struct Use:
    int64_t* cells
    int64_t amount


@cython.final
cdef class Filler:
    """The classes of the pods of one group: how they are judged, and what they use."""

    cdef Use uses[KINDS][USES]
    cdef int use_counts[KINDS]
    cdef int kinds
    cdef list judges
    cdef void* judge_of[KINDS]
    cdef const int64_t[:, ::1] first
    cdef const int64_t[:, ::1] bases
    cdef int64_t[:, ::1] totals
    cdef int64_t[::1] judged
    cdef int64_t[::1] marks
    cdef int64_t mark
    cdef object columns

    def __init__(self, judges, values, bases, uses):
        """Of each class: its judge, its values and their base, and (`Column.cells`, amount) for what a pod uses."""
        cdef int kind, number
        self.kinds = len(judges)
        self.judges = list(judges)
        self.first = np.stack(values)
        self.bases = np.stack(bases)
        self.totals = np.stack(values)
        self.judged = np.zeros(self.kinds, dtype=np.int64)
        self.marks = np.zeros(self.totals.shape[1], dtype=np.int64)
        self.columns = uses  # keeps the cells alive
        for kind in range(self.kinds):
            self.judge_of[kind] = <void*>self.judges[kind]
            number = 0
            for cells, amount in uses[kind]:
                self.uses[kind][number] = Use(<int64_t*>PyMemoryView_GET_BUFFER(cells).buf, amount)
                number += 1
            self.use_counts[kind] = number

    def fill(self, const int64_t[::1] classes, const int64_t[::1] rows, const int64_t[::1] ends,
             const int64_t[:, :, :] ranks):
        cdef Py_ssize_t place, pod, start = 0
        cdef int64_t[:, ::1] hosts = np.full((ends.shape[0], classes.shape[0]), -1, dtype=np.int64)
        cdef int64_t[:, ::1] values = np.full((ends.shape[0], classes.shape[0]), -1, dtype=np.int64)
        for place in range(ends.shape[0]):
            self.judged[:] = 0
            for pod in range(classes.shape[0]):
                self.judge_again(classes[pod], &hosts[place, 0], pod)
                hosts[place, pod] = self.best(
                    classes[pod], rows, start, ends[place], &ranks[place % ranks.shape[0], pod, 0]
                )
                if hosts[place, pod] >= 0:
                    values[place, pod] = self.totals[classes[pod], hosts[place, pod]]
                    self.use(classes[pod], hosts[place, pod], 1)
            for pod in range(classes.shape[0]):
                if hosts[place, pod] >= 0:
                    self.use(classes[pod], hosts[place, pod], -1)
            self.reset(&hosts[place, 0], classes.shape[0])
            start = ends[place]
        return np.asarray(hosts), np.asarray(values)

    cdef int64_t best(self, Py_ssize_t kind, const int64_t[::1] rows, Py_ssize_t start, Py_ssize_t end,
                      const int64_t* ranks) noexcept:
        """The row with the highest value, of equal ones the one of the lowest rank; -1: none is feasible."""
        cdef int64_t best = -1, found = -1, value
        cdef Py_ssize_t i
        for i in range(start, end):
            value = self.totals[kind, rows[i]]
            if value > best or (value == best and value >= 0 and ranks[rows[i]] < ranks[found]):
                best, found = value, rows[i]
        return found

    cdef void use(self, Py_ssize_t kind, int64_t row, int64_t sign) noexcept:
        """Add to each column, or take from it, what one pod uses."""
        cdef int i
        for i in range(self.use_counts[kind]):
            self.uses[kind][i].cells[row] += sign * self.uses[kind][i].amount

    cdef void judge_again(self, Py_ssize_t kind, const int64_t* hosts, Py_ssize_t end) noexcept:
        """Judge the rows that got one of the first `end` pods after this class was judged last, each once."""
        cdef Py_ssize_t pod
        self.mark += 1
        for pod in range(self.judged[kind], end):
            if self.is_first(hosts[pod]):
                self.totals[kind, hosts[pod]] = (<CompiledJudge>self.judge_of[kind]).value(
                    self.bases[kind, hosts[pod]], hosts[pod]
                )
        self.judged[kind] = end

    cdef void reset(self, const int64_t* hosts, Py_ssize_t end) noexcept:
        cdef Py_ssize_t pod
        cdef int kind
        self.mark += 1
        for pod in range(end):
            if self.is_first(hosts[pod]):
                for kind in range(self.kinds):
                    self.totals[kind, hosts[pod]] = self.first[kind, hosts[pod]]

    cdef inline bint is_first(self, int64_t row) noexcept:
        """Whether a row, if it is one, was not met since the mark was set."""
        if row < 0 or self.marks[row] == self.mark:
            return False
        self.marks[row] = self.mark
        return True
