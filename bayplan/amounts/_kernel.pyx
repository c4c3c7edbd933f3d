# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops of `kernel.py`, compiled. int64 wraps around (-fwrapv); floats are not contracted (-ffp-contract=off)."""

cimport cython
from libc.math cimport fabs, fmax, fmin, log, sqrt
from libc.stdint cimport int32_t, int64_t

import numpy as np

MOST_PARTS = 28
cdef enum:
    PARTS = 28
    MOST_SLOTS = 16384
    BLOCK = 64
    STALE = -1
    LOST = -1
    CHUNK = 64
    MOST_MARKS = 8
    LEAST = 1
    MOST = 2
cdef int64_t MAX_EXACT = (<int64_t>1) << 46
cdef int64_t DEAD = -((<int64_t>1) << 62) * 2
cdef int64_t REFUSED = -((<int64_t>1) << 48)


cdef struct Demand:
    const int64_t* capacity
    const int64_t* used
    int64_t wanted
    bint left_to_devices
    bint is_count


cdef struct Part:
    const int64_t* capacity
    const int64_t* used
    int64_t amount
    int64_t weight


cdef inline const int64_t* window(
    const int64_t* column, const int64_t* rows, Py_ssize_t start, int n, int64_t* buffer
) noexcept nogil:
    """The cells of a column at `rows`, gathered in `buffer`, or from `start` on as they are."""
    cdef int r
    if rows == NULL:
        return column + start
    for r in range(n):
        buffer[r] = column[rows[r]]
    return buffer


cdef inline bint any_short(
    const int64_t* capacity, const int64_t* used, int64_t wanted, int n
) noexcept nogil:
    cdef int64_t short = 0
    cdef int r
    for r in range(n):
        short |= capacity[r] - used[r] < wanted
    return short != 0


cdef inline bint are_exact(
    const int64_t* capacity, const int64_t* used, int64_t amount, int n
) noexcept nogil:
    """Whether all amounts are positive, or not negative, and exact as floats, a hundred times as much, too."""
    cdef int64_t wrong = 0
    cdef int r
    if amount < 0 or amount >= MAX_EXACT:
        return False
    for r in range(n):
        wrong |= (capacity[r] - 1) | (MAX_EXACT - 1 - capacity[r])
        wrong |= used[r] | (MAX_EXACT - 1 - used[r])
    return wrong >= 0


cdef inline void add_free_shares(
    double* sums, const int64_t* capacity, const int64_t* used, int64_t amount, int64_t weight, int n
) noexcept nogil:
    """Add the weighted hundredths of each capacity that would be free."""
    cdef double free, added = <double>amount, times = <double>weight
    cdef int r
    for r in range(n):
        free = fmax(<double>capacity[r] - <double>used[r] - added, 0.0)
        sums[r] += <double>(<int64_t>(free * 100.0 / <double>capacity[r])) * times


cdef inline void add_cut(
    double* total, const double* sums, double weights, double weight, int n
) noexcept nogil:
    """Add the weighted quotients of `sums` by `weights`, cut."""
    cdef int r
    for r in range(n):
        total[r] += <double>(<int64_t>(sums[r] / weights)) * weight


cdef inline void add_used_shares(
    double* sums, const int64_t* capacity, const int64_t* used, int64_t amount, double sign, int n
) noexcept nogil:
    """Add (or take away, by `sign`) the share of each capacity that is used with `amount` more."""
    cdef double added = <double>amount
    cdef int r
    for r in range(n):
        sums[r] += fmin((<double>used[r] + added) / <double>capacity[r], 1.0) * sign


cdef inline void add_evenness(
    double* total, const double* before, const double* after, double weight, int n
) noexcept nogil:
    """Add the weighted points for two shares, given their differences before and after."""
    cdef int64_t gain
    cdef int r
    for r in range(n):
        gain = <int64_t>((1.0 - fabs(after[r] / 2.0)) * 100.0)
        gain -= <int64_t>((1.0 - fabs(before[r] / 2.0)) * 100.0)
        total[r] += <double>(50 + ((50 + gain) >> 1)) * weight


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


@cython.final
cdef class CompiledJudge:
    """The rules for one class of pods, with the columns they read."""

    cdef Demand demands[PARTS]
    cdef Part shares[PARTS]
    cdef Part balances[PARTS]
    cdef int demand_count, share_count, balance_count, kind
    cdef bint has_share, has_balance
    cdef int64_t place, share_weight, balance_weight
    cdef int64_t heights[101]
    cdef const int64_t* groups
    cdef const int64_t* included
    cdef list arrays
    cdef object extra

    def __init__(self, int64_t place):
        self.place = place
        self.arrays = []
        self.groups = NULL

    cdef const int64_t* hold(self, array):
        """The cells of a column, which is kept alive."""
        cdef const int64_t[::1] cells = array
        self.arrays.append(array)
        return &cells[0]

    def add_demand(self, capacity, used, int64_t wanted, bint left_to_devices, bint is_count):
        cdef Demand* demand = &self.demands[self.demand_count]
        demand.capacity = self.hold(capacity)
        demand.used = self.hold(used)
        demand.wanted = wanted
        demand.left_to_devices = left_to_devices
        demand.is_count = is_count
        self.demand_count += 1

    def set_share(self, int kind, int64_t weight, heights):
        cdef int i
        self.has_share = True
        self.kind = kind
        self.share_weight = weight
        if heights is not None:
            for i in range(101):
                self.heights[i] = heights[i]

    def add_share(self, capacity, used, int64_t amount, int64_t weight):
        cdef Part* part = &self.shares[self.share_count]
        part.capacity = self.hold(capacity)
        part.used = self.hold(used)
        part.amount = amount
        part.weight = weight
        self.share_count += 1

    def set_balance(self, int64_t weight):
        self.has_balance = True
        self.balance_weight = weight

    def add_balance(self, capacity, used, int64_t amount):
        cdef Part* part = &self.balances[self.balance_count]
        part.capacity = self.hold(capacity)
        part.used = self.hold(used)
        part.amount = amount
        self.balance_count += 1

    def add_group_points(self, groups, included):
        """Add the points in `included` of the group of a row, where `groups` has the groups; None: nothing."""
        cdef const int64_t[::1] ids
        cdef const int64_t[::1] points
        self.groups = NULL
        if groups is not None:
            ids = groups
            points = included
            self.extra = (groups, included)
            self.groups = &ids[0]
            self.included = &points[0]

    def judge(self, int64_t[::1] values, const int64_t[::1] base, rows):
        cdef Py_ssize_t start, size = values.shape[0]
        cdef const int64_t[::1] chosen
        cdef int64_t* out = &values[0]
        cdef int n
        if rows is None:
            for start in range(0, size, CHUNK):
                n = <int>(CHUNK if start + CHUNK <= size else size - start)
                self.judge_chunk(out, &base[0], NULL, start, n)
            return
        chosen = rows
        size = chosen.shape[0]
        if size <= 2:
            for start in range(size):
                out[chosen[start]] = self.value(base[chosen[start]], chosen[start])
            return
        for start in range(0, size, CHUNK):
            n = <int>(CHUNK if start + CHUNK <= size else size - start)
            self.judge_chunk(out, &base[0], &chosen[start], 0, n)

    cdef void judge_chunk(
        self, int64_t* out, const int64_t* base, const int64_t* rows, Py_ssize_t start, int n
    ) noexcept nogil:
        """Judge up to CHUNK rows: those in `rows`, or from `start` on. One column after the other, in vectors."""
        cdef double total[CHUNK]
        cdef double points[CHUNK]
        cdef double before[CHUNK]
        cdef int64_t buffers[2 * CHUNK]
        cdef int r, i
        cdef Py_ssize_t row
        cdef bint is_short = False, is_exact = True
        for i in range(self.demand_count):
            if any_short(
                window(self.demands[i].capacity, rows, start, n, buffers),
                window(self.demands[i].used, rows, start, n, buffers + CHUNK),
                self.demands[i].wanted,
                n,
            ):
                is_short = True
                break
        if not is_short:
            for r in range(n):
                total[r] = 0.0
            if self.has_share:
                is_exact = self.kind == LEAST and self.least_points(total, rows, start, n, buffers)
            if self.has_balance and is_exact:
                is_exact = self.balance_count == 2 and self.even_points(
                    total, points, before, rows, start, n, buffers
                )
        if is_short or not is_exact:
            for r in range(n):
                row = start + r if rows == NULL else rows[r]
                out[row] = self.value(base[row], row)
            return
        for r in range(n):
            row = start + r if rows == NULL else rows[r]
            if base[row] < 0:
                out[row] = base[row]
            elif self.groups != NULL:
                out[row] = base[row] + <int64_t>total[r] + self.included[self.groups[row]]
            else:
                out[row] = base[row] + <int64_t>total[r]

    cdef bint least_points(
        self, double* total, const int64_t* rows, Py_ssize_t start, int n, int64_t* buffers
    ) noexcept nogil:
        """Add the weighted points of LEAST to `total`; False when floats will not do."""
        cdef double sums[CHUNK]
        cdef double weights = 0.0
        cdef const int64_t* capacity
        cdef const int64_t* used
        cdef int r, i
        for r in range(n):
            sums[r] = 0.0
        for i in range(self.share_count):
            capacity = window(self.shares[i].capacity, rows, start, n, buffers)
            used = window(self.shares[i].used, rows, start, n, buffers + CHUNK)
            if not are_exact(capacity, used, self.shares[i].amount, n):
                return False
            weights += <double>self.shares[i].weight
            add_free_shares(sums, capacity, used, self.shares[i].amount, self.shares[i].weight, n)
        add_cut(total, sums, weights, <double>self.share_weight, n)
        return self.share_count > 0

    cdef bint even_points(
        self,
        double* total,
        double* after,
        double* before,
        const int64_t* rows,
        Py_ssize_t start,
        int n,
        int64_t* buffers,
    ) noexcept nogil:
        """Add the weighted points of balance over two resources to `total`; False when floats will not do."""
        cdef const int64_t* capacity
        cdef const int64_t* used
        cdef int r, i
        for r in range(n):
            before[r] = after[r] = 0.0
        for i in range(2):
            capacity = window(self.balances[i].capacity, rows, start, n, buffers)
            used = window(self.balances[i].used, rows, start, n, buffers + CHUNK)
            if not are_exact(capacity, used, self.balances[i].amount, n):
                return False
            add_used_shares(before, capacity, used, 0, 1.0 - 2.0 * i, n)
            add_used_shares(after, capacity, used, self.balances[i].amount, 1.0 - 2.0 * i, n)
        add_evenness(total, before, after, <double>self.balance_weight, n)
        return True

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
            base += self.included[self.groups[row]]
        if self.has_share:
            base += self.share_points(row) * self.share_weight
        if self.has_balance:
            base += self.balance_points(row) * self.balance_weight
        return base

    cdef inline int64_t shortages(self, Py_ssize_t row) noexcept nogil:
        cdef int64_t bits = 0, capacity
        cdef Demand* demand
        cdef int i
        for i in range(self.demand_count):
            demand = &self.demands[i]
            capacity = demand.capacity[row]
            if capacity - demand.used[row] >= demand.wanted:
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
            capacity = part.capacity[row]
            if capacity <= 0:
                continue
            requested = part.used[row] + part.amount
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
            return quotient(total, weights)
        return quotient(2 * total + weights, 2 * weights)

    cdef inline int64_t balance_points(self, Py_ssize_t row) noexcept nogil:
        cdef double before[PARTS]
        cdef double after[PARTS]
        cdef int64_t capacity, used, gain
        cdef int i, number = 0
        cdef Part* part
        for i in range(self.balance_count):
            part = &self.balances[i]
            capacity = part.capacity[row]
            if capacity <= 0:
                continue
            used = part.used[row]
            before[number] = (<double>used) / (<double>capacity)
            after[number] = (<double>(used + part.amount)) / (<double>capacity)
            if before[number] > 1.0:
                before[number] = 1.0
            if after[number] > 1.0:
                after[number] = 1.0
            number += 1
        gain = <int64_t>evenness(after, number) - <int64_t>evenness(before, number)
        return 50 + ((50 + gain) >> 1)


def refuse_beside(
    int64_t[::1] values, const int64_t[::1] more_pods, demands, int64_t place
):
    """`kernel.refuse_beside`; `demands` has (capacity, used, more, wanted, left to devices, is count) by resource."""
    cdef Py_ssize_t i, row, size = 0
    cdef const int64_t[::1] capacity
    cdef const int64_t[::1] used
    cdef const int64_t[::1] more
    cdef int64_t wanted, bit = 1
    cdef bint left, is_count
    cdef int64_t[::1] rows = np.empty(values.shape[0] + 1, dtype=np.int64)
    for row in range(values.shape[0]):
        rows[size] = row
        size += more_pods[row] != 0
    cdef int64_t[::1] bits = np.zeros(size, dtype=np.int64)
    for first, second, third, amount, left, is_count in demands:
        capacity = first
        used = second
        more = third
        wanted = amount
        for i in range(size):
            row = rows[i]
            if capacity[row] - used[row] - more[row] < wanted and not (left and capacity[row] <= 0):
                bits[i] |= bit * 3 if wanted > capacity[row] and not is_count else bit
        bit <<= 2
    for i in range(size):
        row = rows[i]
        if bits[i] and values[row] != DEAD and (values[row] >= 0 or -1 - values[row] >= place):
            values[row] = -1 - (place | bits[i])


cdef inline int64_t quotient(int64_t part, int64_t whole) noexcept nogil:
    """`part` by `whole`, cut."""
    if part >= 0 and part < MAX_EXACT and whole < MAX_EXACT:
        return <int64_t>((<double>part) / (<double>whole))
    return part / whole


cdef inline int64_t hundredths(int64_t part, int64_t whole) noexcept nogil:
    """`part` in hundredths of `whole`, cut; in floats where they are exact, which takes a third of the time."""
    if part >= 0 and part < MAX_EXACT and whole < MAX_EXACT:
        return <int64_t>((<double>part) * 100.0 / (<double>whole))
    return part * 100 / whole


@cython.final
cdef class Peaks:
    """The highest value of an array, kept by blocks: after a change only the changed blocks are looked at.

    With `groups`, numbers below 63 per row, also which groups have a row that is not refused.
    """

    cdef Py_ssize_t size, blocks
    cdef int64_t[::1] best_of
    cdef int64_t[::1] ties_of
    cdef int64_t[::1] feasible_of
    cdef int64_t[::1] groups_of
    cdef const int64_t[::1] groups
    cdef bint is_grouped

    def __init__(self, Py_ssize_t size, groups=None):
        self.size = size
        self.blocks = (size + BLOCK - 1) // BLOCK
        self.best_of = np.empty(self.blocks, dtype=np.int64)
        self.ties_of = np.empty(self.blocks, dtype=np.int64)
        self.feasible_of = np.empty(self.blocks, dtype=np.int64)
        self.groups_of = np.zeros(self.blocks, dtype=np.int64)
        self.is_grouped = groups is not None
        if self.is_grouped:
            self.groups = groups

    def update(self, const int64_t[::1] values, rows):
        """Take over `values` at `rows`, or everywhere."""
        cdef Py_ssize_t i, block
        cdef const int64_t[::1] chosen
        if rows is None:
            for block in range(self.blocks):
                self.scan(values, block)
            return
        chosen = rows
        if chosen.shape[0] == 1:
            self.scan(values, chosen[0] // BLOCK)
            return
        for i in range(chosen.shape[0]):
            self.ties_of[chosen[i] // BLOCK] = STALE
        for block in range(self.blocks):
            if self.ties_of[block] == STALE:
                self.scan(values, block)

    cdef inline void scan(self, const int64_t[::1] values, Py_ssize_t block) noexcept:
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
            if self.is_grouped:
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

    def best(self, const int64_t[::1] values):
        """The highest value (-1: none), how many rows have it, how many are not negative, the first row that has it."""
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
        while values[row] != best:
            row += 1
        return best, ties, feasible, row


def nth_best(const int64_t[::1] values, int64_t best, Py_ssize_t n):
    """The row of the n-th value, from 0, that is `best`."""
    cdef Py_ssize_t row
    for row in range(values.shape[0]):
        if values[row] == best:
            if n == 0:
                return row
            n -= 1
    raise IndexError(n)


def distinct_refusals(const int64_t[::1] values):
    """`kernel.distinct_refusals`; None when there are more than a few."""
    cdef int64_t known[64]
    cdef int64_t value, last = 0
    cdef int i, count = 0, number = 0
    cdef Py_ssize_t row
    cdef int64_t sizes[64]
    said = np.zeros(values.shape[0], dtype=np.int32)
    cdef int[::1] numbers = said
    codes, samples = [], []
    for row in range(values.shape[0]):
        value = values[row]
        if value >= 0 or value == DEAD:
            continue
        if value != last:
            number = 0
            for i in range(count):
                if known[i] == value:
                    number = i + 1
                    break
            if number == 0:
                if count == 64:
                    return None
                known[count] = value
                sizes[count] = 0
                count += 1
                number = count
                codes.append(value)
                samples.append(row)
            last = value
        numbers[row] = number
        sizes[number - 1] += 1
    return said, codes, samples, [sizes[i] for i in range(count)]


def rows_of_numbers(const int32_t[::1] numbers, const unsigned char[::1] wanted):
    """`kernel.rows_of_numbers`."""
    cdef Py_ssize_t row, count = 0
    found = np.empty(numbers.shape[0], dtype=np.int64)
    cdef int64_t[::1] rows = found
    for row in range(numbers.shape[0]):
        rows[count] = row
        count += wanted[numbers[row]]
    return found[:count]


include "_groups.pxi"
include "_domains.pxi"
include "_removing.pxi"
