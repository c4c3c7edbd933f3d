cdef struct Need:
    const int64_t* capacity
    const int64_t* used
    const int64_t* more
    int64_t wanted
    Py_ssize_t column
    bint left_to_devices
    bint is_count


cdef enum:
    EXCEEDED
    HIGHEST
    PRIORITIES
    PODS
    STARTED
    COSTS


cdef inline int compare_costs(const int64_t* a, const int64_t* b) noexcept nogil:
    """Negative: `a` is the better one; 0: equal."""
    cdef int k
    for k in range(COSTS):
        if a[k] != b[k]:
            return -1 if a[k] < b[k] else 1
    return 0


@cython.final
cdef class PodRemoval:
    """`removing.PodRemoval`, compiled. The pods of a row are in order of importance, so those to remove are the last."""

    cdef const int64_t[::1] counts
    cdef const int64_t[:, ::1] priority
    cdef const int64_t[:, ::1] start_s
    cdef const int64_t[:, :, ::1] amounts
    cdef int64_t below
    cdef Need needs[PARTS]
    cdef int number
    cdef list held

    def __init__(self, counts, priority, start_s, amounts, int64_t below):
        self.counts = counts
        self.priority = priority
        self.start_s = start_s
        self.amounts = amounts
        self.below = below
        self.number = 0
        self.held = []

    def add_demand(
        self,
        const int64_t[::1] capacity,
        const int64_t[::1] used,
        more,
        int64_t wanted,
        column,
        bint left_to_devices,
        bint is_count,
    ):
        """Demand `wanted` of a resource, which is at `column` of the amounts of pods (None: no pod uses it)."""
        cdef const int64_t[::1] held
        cdef Need* need = &self.needs[self.number]
        need.capacity = &capacity[0]
        need.used = &used[0]
        need.more = NULL
        if more is not None:
            held = more
            need.more = &held[0]
        need.wanted = wanted
        need.column = -1 if column is None else column
        need.left_to_devices = left_to_devices
        need.is_count = is_count
        self.number += 1
        self.held.append((capacity, used, more))

    cdef int64_t remove(
        self, Py_ssize_t row, const unsigned char* is_protected, unsigned char* victims, int64_t* cost, bint names_all
    ) noexcept:
        """What is short on a row without the pods below the priority; 0: the costs are set, and the victims marked.

        -1: there are no such pods. Unless `names_all`, the first resource that is short is enough. A resource of which
        there is enough beside all pods does not matter: no pod uses less than nothing.
        """
        cdef int64_t slack[PARTS]
        cdef Py_ssize_t columns[PARTS]
        cdef Py_ssize_t place, count = self.counts[row], first = count
        cdef Py_ssize_t width = self.amounts.shape[2]
        cdef const int64_t* priority = &self.priority[row, 0]
        cdef const int64_t* amounts = &self.amounts[row, 0, 0]
        cdef const int64_t* used
        cdef const Need* need
        cdef int64_t bits = 0, left, start
        cdef int k, kind, scarce = 0
        cdef bint stays
        while first > 0 and priority[first - 1] < self.below:
            first -= 1
        memset(cost, 0, COSTS * sizeof(int64_t))
        if first == count:
            return -1
        for k in range(self.number):
            need = &self.needs[k]
            left = need.capacity[row] - need.used[row]
            if need.more != NULL:
                left -= need.more[row]
            if left >= need.wanted or (need.left_to_devices and need.capacity[row] <= 0):
                continue
            if need.column >= 0:
                for place in range(first, count):
                    left += amounts[place * width + need.column]
            if left < need.wanted:
                bits |= (<int64_t>1) << (2 * k)
                if not names_all:
                    return bits
                if need.wanted > need.capacity[row] and not need.is_count:
                    bits |= (<int64_t>2) << (2 * k)
            slack[scarce] = left - need.wanted
            columns[scarce] = need.column
            scarce += 1
        if bits:
            return bits
        for kind in range(1 if is_protected != NULL else 0, -1, -1):
            for place in range(first, count):
                if is_protected != NULL and is_protected[place] != kind:
                    continue
                used = amounts + place * width
                stays = True
                for k in range(scarce):
                    stays = stays and slack[k] >= used[columns[k]]
                if stays:
                    for k in range(scarce):
                        slack[k] -= used[columns[k]]
                    continue
                if victims != NULL:
                    victims[place] = True
                start = self.start_s[row, place]
                if cost[PODS] == 0 or priority[place] > cost[HIGHEST]:
                    cost[HIGHEST] = priority[place]
                    cost[STARTED] = -start
                elif priority[place] == cost[HIGHEST] and -start > cost[STARTED]:
                    cost[STARTED] = -start
                cost[EXCEEDED] += kind
                cost[PRIORITIES] += priority[place] + ((<int64_t>1) << 31)
                cost[PODS] += 1
        return 0

    def search(
        self,
        const int64_t[::1] rows,
        Py_ssize_t start,
        list names,
        Py_ssize_t wanted,
        bint has_harmless,
        const unsigned char[:, ::1] is_protected,
        int64_t[::1] short,
    ):
        """The fields of `Removals` without the last, for which `short` is filled in; of use where no row is found.

        The rows from `start` on come first, then those before it.
        """
        cdef Py_ssize_t turn, i = start, row = -1, candidates = 0, harmless = 0, idle = 0
        cdef int64_t best[COSTS]
        cdef int64_t cost[COSTS]
        cdef int order, k
        for turn in range(rows.shape[0]):
            i = start + turn
            if i >= rows.shape[0]:
                i -= rows.shape[0]
            short[i] = self.remove(
                rows[i], NULL if is_protected is None else &is_protected[i, 0], NULL, cost, row < 0
            )
            if cost[PODS] == 0:
                if short[i] < 0:
                    short[i] = 0
                    idle += 1
                continue
            candidates += 1
            harmless += cost[EXCEEDED] == 0
            order = -1 if candidates == 1 else compare_costs(cost, best)
            if order < 0 or (order == 0 and names[rows[i]] < names[row]):
                memcpy(best, cost, COSTS * sizeof(int64_t))
                row = rows[i]
            if candidates >= wanted and (harmless > 0 or has_harmless):
                break
        if row < 0:
            return row, (), 0, 0, idle
        return row, tuple([best[k] for k in range(COSTS)]), candidates, harmless, idle

    def victims(self, Py_ssize_t row, const unsigned char[:, ::1] is_protected):
        """What is short on a row, or 0, and the places of its victims."""
        cdef int64_t cost[COSTS]
        cdef Py_ssize_t place, count = self.counts[row]
        cdef unsigned char[::1] marks = bytearray(count + 1)
        cdef int64_t bits = self.remove(
            row, NULL if is_protected is None else &is_protected[0, 0], &marks[0], cost, True
        )
        return bits if bits > 0 else 0, [place for place in range(count) if marks[place]]
