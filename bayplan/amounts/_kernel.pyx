# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops of `kernel.py`, compiled. int64 wraps around (-fwrapv); floats are not contracted (-ffp-contract=off)."""

cimport cython
from libc.math cimport log
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t

import numpy as np

cdef extern from *:
    """
    #define KERNEL_TEXT_OF(name) #name
    #define KERNEL_TEXT(macro) KERNEL_TEXT_OF(macro)
    """
    const char *source_digest "KERNEL_TEXT(KERNEL_SOURCE_DIGEST)"

SOURCE_DIGEST = source_digest.decode()  # hatch_build.py defines the macro

cdef enum:
    MOST_SLOTS = 16384
    BLOCK = 64
    STALE = -1
    LOST = -1
    MOST_MARKS = 8
cdef int64_t DEAD = -((<int64_t>1) << 62) * 2
cdef int64_t REFUSED = -((<int64_t>1) << 48)

include "_peaks.pxi"
include "_judge.pxi"


def distinct_refusals(const int64_t[::1] values):
    """`kernel.distinct_refusals`; None when there are more than a few."""
    cdef int64_t known[64]
    cdef int64_t value, last = 0
    cdef int i, count = 0, number = 0
    cdef Py_ssize_t row
    cdef int64_t sizes[64]
    said = np.zeros(values.shape[0], dtype=np.int32)
    cdef int[::1] numbers = said
    codes = []
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
            last = value
        numbers[row] = number
        sizes[number - 1] += 1
    return said, codes, [sizes[i] for i in range(count)]


include "_groups.pxi"
include "_domains.pxi"
include "_removing.pxi"

include "_filling.pxi"
