"""The rules on amounts, compiled: `kernel.RowJudge`.

Many rows are judged in chunks, by loops that the compiler turns into vectors, if the scores are over two resources at
most, as by default. Rows that lack something are marked in `apart` and judged one by one (`CompiledJudge.value`), as
all rows of a chunk are in which an amount is too large for floats, or no capacity.
"""

from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

MOST_PARTS = 28
cdef double ROUNDING = 1e-9
cdef enum:
    PARTS = 28
    FEW_ROWS = 20
    COLUMNS = 24
    LEAST = 1
    MOST = 2

cdef extern from *:
    int __builtin_ctzll(uint64_t bits) noexcept nogil

cdef extern from "_vectors.h":
    ctypedef struct Scores:
        double usage_amount[2]
        double requested_amount[2]
        double weight[2]
        double weight_sum
        double share_weight
        double balance_weight
        double counts_before
        double balance_scale
        double balance_offset
        double least_balance
        int is_least

    ctypedef struct Amounts:
        const int64_t* capacity
        const int64_t* usage
        const int64_t* requested

    enum:
        CHUNK
    const int64_t MAX_EXACT
    bint lacks_any(const int64_t* capacity, const int64_t* used, int64_t wanted) noexcept nogil
    void mark_short(int64_t* apart, const int64_t* capacity, const int64_t* used, int64_t wanted) noexcept nogil
    int EXACT, ALIKE
    int inspect(Amounts amounts) noexcept nogil
    void score_two(int64_t* points, Amounts a, Amounts b, Scores scores, bint is_alike) noexcept nogil


cdef struct Demand:
    int capacity
    int used
    int64_t wanted
    bint left_to_devices
    bint is_count


cdef struct Part:
    int capacity
    int used
    int64_t amount
    int64_t weight


cdef struct Scored:
    # The columns of a resource that is scored in vectors.
    int capacity
    int usage
    int requested


cdef inline double evenness(double* shares, int number) noexcept nogil:
    """How even `number` shares are: 100 when equal."""
    cdef double total = 0.0, squares = 0.0, mean, deviation = 0.0
    cdef int i
    if number == 2:
        deviation = fabs((shares[0] - shares[1]) / 2)
    elif number > 2:
        for i in range(number):
            total = total + shares[i]
        mean = total / number
        for i in range(number):
            squares = squares + (shares[i] - mean) * (shares[i] - mean)
        deviation = sqrt(squares / number)
    return (1 - deviation) * 100


cdef int64_t* ordered = NULL
cdef uint64_t* marked = NULL
cdef Py_ssize_t room = 0


cdef Py_ssize_t in_order(const int64_t* rows, Py_ssize_t count, Py_ssize_t size) except -1:
    """Write `rows`, all below `size`, to `ordered`, ascending and each once; returns how many there are."""
    global ordered, marked, room
    cdef Py_ssize_t i, word, found = 0
    cdef uint64_t bits
    if size > room:
        free(ordered)
        free(marked)
        room = 0
        ordered = <int64_t*>malloc(size * sizeof(int64_t))
        marked = <uint64_t*>calloc(size // 64 + 1, sizeof(uint64_t))
        if ordered == NULL or marked == NULL:
            raise MemoryError
        room = size
    for i in range(count):
        marked[rows[i] >> 6] |= (<uint64_t>1) << (rows[i] & 63)
    for word in range(size // 64 + 1):
        bits = marked[word]
        marked[word] = 0
        while bits:
            ordered[found] = 64 * word + __builtin_ctzll(bits)
            found += 1
            bits &= bits - 1
    return found


@cython.final
cdef class CompiledJudge:
    """The rules for one class of pods, with the columns they read."""

    cdef const int64_t* columns[8 * PARTS]
    cdef list arrays
    cdef Demand demands[PARTS]
    cdef Part shares[PARTS]
    cdef Part balances[PARTS]
    cdef Part alignments[PARTS]
    cdef Scored scored[2]
    cdef Scores scores
    cdef int column_count, demand_count, share_count, balance_count, alignment_count, kind
    cdef bint has_share, has_balance, is_in_vectors
    cdef int64_t place, share_weight, balance_weight, alignment_weight, weight_sum
    cdef int64_t counts_before, balance_offset, least_balance
    cdef int64_t heights[101]
    cdef const int64_t* groups
    cdef const int64_t* group_points
    cdef object extra

    def __init__(self, int64_t place, columns, fit, share, balance, alignment):
        """`columns` has `ResourceColumns` of what is offered, requested, and used for scoring, and the cells with the
        number of pods. `fit` is (amounts, resources that may be left to devices, the one that is the number of pods) or
        None, `share` (kind, weight, heights, parts of (resource, amount, weight)) or None, `balance` (weight, parts of
        (resource, amount), whether it scores the change) and `alignment` (weight, parts) or None.
        """
        self.place = place
        self.arrays = []
        self.groups = NULL
        offered, requested, usage, pod_count = columns
        capacities = offered.cells_by_name()
        uses = requested.cells_by_name()
        if fit is not None:
            amounts, left_to_devices, count = fit
            for name, wanted in amounts.items():
                self.demands[self.demand_count] = Demand(
                    self.column(capacities, offered, name),
                    self.number(pod_count) if name == count else self.column(uses, requested, name),
                    wanted,
                    name in left_to_devices,
                    name == count,
                )
                self.demand_count += 1
        if share is not None:
            self.kind, self.share_weight, heights, parts = share
            if heights is not None:
                self.heights = heights
            self.share_count = self.read_parts(self.shares, parts, offered, usage)
            self.weight_sum = sum([weight for _, _, weight in parts])
        if balance is not None:
            self.balance_weight, parts, scores_change = balance
            # points = least + (offset + after - before * counts) >> shift
            self.counts_before = 1 if scores_change else 0
            self.least_balance = self.balance_offset = 50 * self.counts_before
            self.balance_count = self.read_parts(self.balances, parts, offered, requested)
        if alignment is not None:
            self.alignment_weight, parts = alignment
            self.alignment_count = self.read_parts(self.alignments, parts, offered, requested)
        self.has_share, self.has_balance = share is not None, balance is not None
        self.is_in_vectors = self.prepare_vectors()

    cdef int read_parts(self, Part* found, parts, offered, used) except -1:
        """Fill in `found` from (resource, amount) or (resource, amount, weight); returns how many there are."""
        cdef int number = 0
        cdef tuple part
        capacities, uses = offered.cells_by_name(), used.cells_by_name()
        for part in parts:
            found[number] = Part(
                self.column(capacities, offered, part[0]),
                self.column(uses, used, part[0]),
                part[1],
                part[2] if len(part) > 2 else 0,
            )
            number += 1
        return number

    cdef int column(self, dict known, columns, name):
        """The number of the column of a resource, of which `known` has the cells."""
        cells = known.get(name)
        return self.number(columns.cells_of(name) if cells is None else cells)

    cdef int number(self, cells):
        """The number of a column; the cells are kept alive."""
        cdef int i
        for i in range(self.column_count):
            if self.arrays[i] is cells:
                return i
        self.columns[self.column_count] = <const int64_t*>PyMemoryView_GET_BUFFER(cells).buf
        self.arrays.append(cells)
        self.column_count += 1
        return self.column_count - 1

    cdef bint prepare_vectors(self):
        """Fill in `scored`; False: the rules are others than those of the loop, or amounts are too large for floats."""
        cdef int i, n, number = 0
        cdef Part part
        cdef Scored* one
        if self.column_count > COLUMNS or self.share_count > 2 or self.balance_count not in (0, 2):
            return False
        if self.alignment_count:
            return False
        if self.has_share and (self.kind > MOST or not 0 < self.weight_sum < MAX_EXACT / 100):
            return False
        if self.has_balance and not self.balance_count:
            return False
        for i in range(self.share_count + self.balance_count):
            part = self.shares[i] if i < self.share_count else self.balances[i - self.share_count]
            if not 0 <= part.amount < MAX_EXACT:
                return False
            n = 0
            while n < number and self.scored[n].capacity != part.capacity:
                n += 1
            if n == 2:
                return False
            one = &self.scored[n]
            if n == number:
                number += 1
                one.capacity, one.usage, one.requested = part.capacity, part.used, part.used
            if i < self.share_count:
                one.usage = part.used
                self.scores.usage_amount[n] = <double>part.amount
                self.scores.weight[n] = <double>part.weight
            else:
                one.requested = part.used
                self.scores.requested_amount[n] = <double>part.amount
        if number == 1:
            self.scored[1] = self.scored[0]
        self.scores.weight_sum = <double>max(self.weight_sum, 1)
        self.scores.share_weight = <double>self.share_weight
        self.scores.balance_weight = <double>self.balance_weight
        self.scores.counts_before = <double>self.counts_before
        self.scores.balance_scale = 0.5 if self.counts_before else 1.0
        self.scores.balance_offset = self.scores.balance_scale * <double>self.balance_offset
        self.scores.least_balance = <double>self.least_balance
        self.scores.is_least = self.kind == LEAST
        return number > 0 or not (self.has_share or self.has_balance)

    def set_group_points(self, groups, group_points):
        """`RowJudge.set_group_points`."""
        cdef const int64_t[::1] ids
        cdef const int64_t[::1] points
        self.groups = NULL
        if groups is not None:
            ids = groups
            points = group_points
            self.extra = (groups, group_points)
            self.groups = &ids[0]
            self.group_points = &points[0]

    def judge(self, int64_t[::1] values, const int64_t[::1] base, rows, Peaks peaks=None):
        cdef Py_ssize_t i, size = values.shape[0]
        cdef const int64_t[::1] chosen
        if rows is None:
            self.judge_all(values, base)
            if peaks is not None:
                peaks.update(None)
            return
        chosen = rows
        size = chosen.shape[0]
        if not self.is_in_vectors or size < FEW_ROWS:
            for i in range(size):
                self.put(&values[0], chosen[i], self.value(base[chosen[i]], chosen[i]), peaks)
        else:
            size = in_order(&chosen[0], size, values.shape[0])
            self.judge_chosen(&values[0], &base[0], ordered, size, peaks)
        if peaks is not None:
            peaks.settle()

    cdef inline void put(self, int64_t* out, Py_ssize_t row, int64_t value, Peaks peaks) noexcept:
        """Write the value of a row."""
        cdef int64_t before = out[row]
        if value != before:
            out[row] = value
            if peaks is not None:
                peaks.note(row, before, value)

    cdef void judge_all(self, int64_t[::1] values, const int64_t[::1] base) noexcept:
        cdef Py_ssize_t i, size = values.shape[0]
        if not self.is_in_vectors or size < CHUNK:
            for i in range(size):
                values[i] = self.value(base[i], i)
            return
        for i in range((size + CHUNK - 1) / CHUNK):  # the last chunk ends with the last row
            self.judge_chunk(&values[0], &base[0], min(i * CHUNK, size - CHUNK))

    cdef void judge_chunk(self, int64_t* out, const int64_t* base, Py_ssize_t start) noexcept nogil:
        """Judge CHUNK rows from `start` on in vectors."""
        cdef const int64_t* cells[COLUMNS]
        cdef int64_t apart[CHUNK]
        cdef int64_t points[CHUNK]
        cdef int r, i
        cdef bint has_apart
        for i in range(self.column_count):
            cells[i] = self.columns[i] + start
        has_apart = self.score_chunk(cells, apart, points)
        if self.groups == NULL:
            for r in range(CHUNK):
                out[start + r] = base[start + r] + (points[r] & ~(base[start + r] >> 63))
        else:
            for r in range(CHUNK):
                out[start + r] = self.total(base[start + r], points[r], start + r)
        if has_apart:
            for r in range(CHUNK):
                if apart[r]:
                    out[start + r] = self.value(base[start + r], start + r)

    cdef void judge_chosen(
        self, int64_t* out, const int64_t* base, const int64_t* rows, Py_ssize_t size, Peaks peaks
    ) noexcept:
        """Judge `rows` in vectors; where a chunk is not full, its last row fills it."""
        cdef const int64_t* cells[COLUMNS]
        cdef int64_t gathered[COLUMNS * CHUNK]
        cdef int64_t apart[CHUNK]
        cdef int64_t points[CHUNK]
        cdef int64_t chosen[CHUNK]
        cdef Py_ssize_t first, row
        cdef int r, i
        cdef bint has_apart
        for first in range(0, size, CHUNK):
            for r in range(CHUNK):
                chosen[r] = rows[min(first + r, size - 1)]
            for i in range(self.column_count):
                cells[i] = gathered + i * CHUNK
                for r in range(CHUNK):
                    gathered[i * CHUNK + r] = self.columns[i][chosen[r]]
            has_apart = self.score_chunk(cells, apart, points)
            for r in range(min(size - first, CHUNK)):
                row = chosen[r]
                if has_apart and apart[r]:
                    self.put(out, row, self.value(base[row], row), peaks)
                else:
                    self.put(out, row, self.total(base[row], points[r], row), peaks)

    cdef inline int64_t total(self, int64_t base, int64_t points, Py_ssize_t row) noexcept nogil:
        """What becomes of a base of a row that lacks nothing."""
        if base < 0:
            return base
        return base + points if self.groups == NULL else base + points + self.group_points[self.groups[row]]

    cdef bint score_chunk(self, const int64_t** cells, int64_t* apart, int64_t* points) noexcept nogil:
        """The points of CHUNK rows, given their cells; whether some are in `apart` and have to be judged one by one."""
        cdef int i, both
        cdef bint has_apart = False
        cdef Demand* demand
        cdef Amounts a, b
        for i in range(self.demand_count):
            demand = &self.demands[i]
            if lacks_any(cells[demand.capacity], cells[demand.used], demand.wanted):
                if not has_apart:
                    memset(apart, 0, CHUNK * sizeof(int64_t))
                has_apart = True
                mark_short(apart, cells[demand.capacity], cells[demand.used], demand.wanted)
        if not (self.has_share or self.has_balance):
            memset(points, 0, CHUNK * sizeof(int64_t))
            return has_apart
        a, b = self.amounts(cells, 0), self.amounts(cells, 1)
        both = inspect(a) & inspect(b)
        if both & EXACT:
            score_two(points, a, b, self.scores, both == EXACT | ALIKE)
            return has_apart
        memset(apart, -1, CHUNK * sizeof(int64_t))
        return True

    cdef inline Amounts amounts(self, const int64_t** cells, int i) noexcept nogil:
        return Amounts(
            cells[self.scored[i].capacity], cells[self.scored[i].usage], cells[self.scored[i].requested]
        )

    cdef inline int64_t value(self, int64_t base, Py_ssize_t row) noexcept nogil:
        cdef int64_t bits, code
        if base == DEAD:
            return DEAD
        if self.demand_count:
            bits = self.shortages(row)
            if bits:
                code = -1 - (self.place | bits)
                return code if base >= 0 or code > base else base
        if base < 0:
            return base
        if self.groups != NULL:
            base += self.group_points[self.groups[row]]
        if self.has_share:
            base += self.share_points(row) * self.share_weight
        if self.has_balance:
            base += self.balance_points(row) * self.balance_weight
        if self.alignment_count:
            base += self.alignment_points(row) * self.alignment_weight
        return base

    cdef inline int64_t shortages(self, Py_ssize_t row) noexcept nogil:
        cdef int64_t bits = 0, capacity
        cdef Demand* demand
        cdef int i
        for i in range(self.demand_count):
            demand = &self.demands[i]
            capacity = self.columns[demand.capacity][row]
            if capacity - self.columns[demand.used][row] >= demand.wanted:
                continue
            if demand.left_to_devices and capacity <= 0:
                continue
            bits |= (<int64_t>1) << (2 * i)
            if demand.wanted > capacity and not demand.is_count:
                bits |= (<int64_t>1) << (2 * i + 1)
        return bits

    cdef inline int64_t share_points(self, Py_ssize_t row) noexcept nogil:
        cdef int64_t total = 0, weights = 0, capacity, requested, points
        cdef Part* part
        cdef int i
        for i in range(self.share_count):
            part = &self.shares[i]
            capacity = self.columns[part.capacity][row]
            if capacity <= 0:
                continue
            requested = self.columns[part.used][row] + part.amount
            if self.kind == LEAST:
                points = capacity - requested
                points = hundredths(points if points > 0 else 0, capacity)
            elif self.kind == MOST:
                points = hundredths(requested if requested < capacity else capacity, capacity)
            else:
                points = 100 if requested > capacity else hundredths(requested, capacity)
                points = 0 if points < 0 else (100 if points > 100 else points)
                points = self.heights[points]
                if points <= 0:
                    continue
            total += points * part.weight
            weights += part.weight
        if weights < 1:
            weights = 1
        if self.kind == LEAST or self.kind == MOST:
            return whole_quotient(total, weights)
        return whole_quotient(2 * total + weights, 2 * weights)

    cdef inline int64_t balance_points(self, Py_ssize_t row) noexcept nogil:
        cdef double before[PARTS]
        cdef double after[PARTS]
        cdef int64_t capacity, used, gain
        cdef int i, number = 0
        cdef Part* part
        for i in range(self.balance_count):
            part = &self.balances[i]
            capacity = self.columns[part.capacity][row]
            if capacity <= 0:
                continue
            used = self.columns[part.used][row]
            before[number] = (<double>used) / (<double>capacity)
            after[number] = (<double>(used + part.amount)) / (<double>capacity)
            if before[number] > 1.0:
                before[number] = 1.0
            if after[number] > 1.0:
                after[number] = 1.0
            number += 1
        gain = <int64_t>evenness(after, number) - self.counts_before * <int64_t>evenness(before, number)
        return self.least_balance + ((self.balance_offset + gain) >> self.counts_before)

    cdef inline int64_t alignment_points(self, Py_ssize_t row) noexcept nogil:
        cdef double wanted[PARTS]
        cdef double free[PARTS]
        cdef double all_wanted = 0.0, all_free = 0.0, common = 0.0
        cdef int64_t capacity, left
        cdef Part* part
        cdef int i, number = 0
        for i in range(self.alignment_count):
            part = &self.alignments[i]
            capacity = self.columns[part.capacity][row]
            if capacity <= 0:
                continue
            left = capacity - self.columns[part.used][row]
            wanted[number] = (<double>part.amount) / (<double>capacity)
            free[number] = (<double>(left if left > 0 else 0)) / (<double>capacity)
            all_wanted += wanted[number]
            all_free += free[number]
            number += 1
        if not (all_wanted > 0 and all_free > 0):
            return 0
        for i in range(number):
            common += fmin(wanted[i] / all_wanted, free[i] / all_free)
        return <int64_t>(common * 100.0 + ROUNDING)


cdef inline int64_t whole_quotient(int64_t part, int64_t whole) noexcept nogil:
    """`part` by `whole`, cut."""
    if part >= 0 and part < MAX_EXACT and whole < MAX_EXACT:
        return <int64_t>((<double>part) / (<double>whole))
    return part / whole


cdef inline int64_t hundredths(int64_t part, int64_t whole) noexcept nogil:
    """`part` in hundredths of `whole`, cut; in floats where they are exact, which takes a third of the time."""
    if part >= 0 and part < MAX_EXACT and whole < MAX_EXACT:
        return <int64_t>((<double>part) * 100.0 / (<double>whole))
    return part * 100 / whole
