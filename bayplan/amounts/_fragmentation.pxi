"""Fragmentation of nodes by a mix of tasks, compiled: `fragmentation.GpuTaskMix.fallen`."""

cdef enum:
    WHOLE_GPU = 1000


@cython.final
cdef class CompiledMix:
    """The tables of a mix of tasks."""

    cdef const int64_t[::1] cpus
    cdef const int64_t[:, ::1] unused
    cdef const int64_t[:, ::1] spared

    def __init__(self, cpus, unused, spared):
        self.cpus, self.unused, self.spared = cpus, unused, spared

    def fallen(self, const int64_t[:, :] free, const int64_t[:] milli_cpu, const int64_t[:] models,
               int64_t milli, int64_t asked_cpu):
        cdef Py_ssize_t node
        found = np.empty(free.shape[0], dtype=np.int64)
        cdef int64_t[::1] falls = found
        for node in range(free.shape[0]):
            falls[node] = self.fall(free[node], milli_cpu[node], 0 if models is None else models[node], milli, asked_cpu)
        return found

    cdef int64_t fall(self, const int64_t[:] free, int64_t milli_cpu, int64_t model, int64_t milli,
                      int64_t asked_cpu) noexcept:
        """By how much the fragmentation of one node falls; for a share, on the best of the GPUs with room."""
        cdef Py_ssize_t before = self.key(milli_cpu, model), after = self.key(milli_cpu - asked_cpu, model)
        cdef Py_ssize_t gpu
        cdef int64_t unusable = 0, then = 0, full = 0, count = milli // WHOLE_GPU, best, one
        for gpu in range(free.shape[0]):
            unusable += self.unused[before, free[gpu]]
            then += self.unused[after, free[gpu]]
            full += free[gpu] == WHOLE_GPU
        unusable -= self.spare(before, full)
        if milli == 0 or count:
            return unusable - then + count * self.unused[after, WHOLE_GPU] + self.spare(after, max(full - count, 0))
        best = DEAD
        for gpu in range(free.shape[0]):
            if free[gpu] >= milli:
                one = then - self.unused[after, free[gpu]] + self.unused[after, free[gpu] - milli]
                one -= self.spare(after, full - (free[gpu] == WHOLE_GPU))
                best = max(best, unusable - one)
        return best

    cdef Py_ssize_t key(self, int64_t milli_cpu, int64_t model) noexcept:
        """The row of the tables: how many amounts of cpu are enough, and the model."""
        cdef Py_ssize_t low = 0, high = self.cpus.shape[0], middle
        while low < high:
            middle = (low + high) // 2
            if self.cpus[middle] <= milli_cpu:
                low = middle + 1
            else:
                high = middle
        return low + model * (self.cpus.shape[0] + 1)

    cdef int64_t spare(self, Py_ssize_t key, int64_t full) noexcept:
        """What tasks for several GPUs can use of `full` GPUs that are free as a whole, times their weight."""
        return self.spared[key, min(full, self.spared.shape[1] - 1)] * full * WHOLE_GPU
