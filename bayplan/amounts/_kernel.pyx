# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops of `kernel.py`, compiled. int64 wraps around (-fwrapv); floats are not contracted (-ffp-contract=off)."""

cimport cython
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t

import numpy as np

cdef enum:
    MOST_SLOTS = 16384
    BLOCK = 64
    STALE = -1
    LOST = -1
    MOST_MARKS = 8
cdef int64_t DEAD = -((<int64_t>1) << 62) * 2
cdef int64_t REFUSED = -((<int64_t>1) << 48)

include "_judge.pxi"


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
        cdef int64_t[:, ::1] cells = np.zeros((4, self.blocks), dtype=np.int64)
        self.best_of, self.ties_of, self.feasible_of, self.groups_of = cells[0], cells[1], cells[2], cells[3]
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

include "_filling.pxi"
