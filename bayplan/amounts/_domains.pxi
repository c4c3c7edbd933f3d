"""Rules on counts of pods per domain (`domain_rules.py`), applied to one row of each group."""

cdef int64_t LEAST_COUNT = -((<int64_t>1) << 62)
cdef int64_t MOST_COUNT = (<int64_t>1) << 62
cdef int64_t NO_DOMAIN = ((<int64_t>1) << 31) - 1
cdef int64_t IGNORED = -1


@cython.final
cdef class CompiledCounts:
    """How many pods there are in the domain of a row."""

    cdef object held
    cdef const int64_t* codes
    cdef const int64_t* counts
    cdef Py_ssize_t slots
    cdef int64_t[::1] sums
    cdef const int64_t[::1] rows
    cdef const int64_t[::1] domains
    cdef const int64_t[::1] per_row

    def __init__(self, const int64_t[::1] codes, const int64_t[::1] counts not None):
        """`codes`: the domain of each row, -1: none; None: each row is one. `counts`: by domain."""
        self.held = codes, counts
        self.codes = NULL
        if codes is not None:
            self.codes = &codes[0]
        self.counts = &counts[0]
        self.slots = counts.shape[0]
        self.sums = None

    def sum_up(
        self,
        const int64_t[::1] rows not None,
        const int64_t[::1] domains not None,
        const int64_t[::1] per_row not None,
    ):
        """Let the counts be the sums of `per_row` at `rows`, which are in `domains`."""
        self.sums = np.zeros(self.slots, dtype=np.int64)
        self.counts = &self.sums[0]
        self.rows, self.domains, self.per_row = rows, domains, per_row

    cdef void refresh(self) noexcept:
        cdef Py_ssize_t i
        if self.sums is None:
            return
        self.sums[:] = 0
        for i in range(self.rows.shape[0]):
            self.sums[self.domains[i]] += self.per_row[self.rows[i]]

    cdef inline int64_t code(self, Py_ssize_t row) noexcept:
        return row if self.codes == NULL else self.codes[row]

    cdef inline int64_t at(self, Py_ssize_t row) noexcept:
        cdef int64_t code = self.code(row)
        return self.counts[code] if code >= 0 else 0


@cython.final
cdef class CompiledLimit:
    """Accepts rows whose count is within bounds."""

    cdef CompiledCounts pods
    cdef int64_t lowest, highest, allowance
    cdef bint needs_label
    cdef const int64_t[::1] domains

    def __init__(self, CompiledCounts pods not None):
        self.pods = pods
        self.lowest = LEAST_COUNT
        self.highest = MOST_COUNT
        self.domains = None

    cdef void refresh(self) noexcept:
        """Find the bounds of a skew."""
        cdef int64_t lowest
        cdef Py_ssize_t i
        self.pods.refresh()
        if self.domains is None:
            return
        lowest = NO_DOMAIN
        for i in range(self.domains.shape[0]):
            if self.pods.counts[self.domains[i]] < lowest:
                lowest = self.pods.counts[self.domains[i]]
        self.highest = self.allowance + lowest

    cdef inline bint accepts(self, Py_ssize_t row) noexcept:
        cdef int64_t code = self.pods.code(row)
        cdef int64_t count
        if code < 0:
            return not self.needs_label and self.lowest <= 0
        count = self.pods.counts[code]
        return self.lowest <= count <= self.highest


@cython.final
cdef class SpreadPart:
    """One constraint in the score of PodTopologySpread."""

    cdef CompiledCounts pods
    cdef const int64_t[::1] codes
    cdef Py_ssize_t slots
    cdef int64_t max_skew, blank
    cdef bint is_per_node
    cdef double weight
    cdef char[::1] seen

    def __init__(self, CompiledCounts pods not None, const int64_t[::1] codes, slots, max_skew, blank, is_per_node):
        self.pods, self.codes, self.slots = pods, codes, slots
        self.max_skew, self.blank, self.is_per_node = max_skew, blank, is_per_node
        self.seen = np.zeros(slots, dtype=np.int8)


@cython.final
cdef class DomainJudge:
    """The rules of one class of pods."""

    cdef list limits, together, spreading, attracting
    cdef list factors
    cdef bint may_be_first, checks_labels, requires_labels
    cdef int64_t spread_weight, attraction_weight
    cdef int64_t[::1] accepted
    cdef int64_t[::1] raw
    cdef readonly int64_t present

    def __init__(self):
        self.limits, self.together, self.spreading, self.attracting = [], [], [], []
        self.factors = []
        self.accepted = self.raw = np.zeros(0, dtype=np.int64)

    def add_skew(self, pods, int64_t allowance, domains, bint needs_label):
        """At most `allowance` more pods than in the emptiest of `domains`; than none, when that is None."""
        cdef CompiledLimit limit = CompiledLimit(pods)
        limit.highest = limit.allowance = allowance
        limit.domains = domains
        limit.needs_label = needs_label
        self.limits.append(limit)

    def add_together(self, pods, bint may_be_first):
        """A pod by each of `pods`; the first of all needs none if it `may_be_first`."""
        self.together = [CompiledLimit(counts) for counts in pods]
        self.limits += self.together
        self.may_be_first = may_be_first

    def add_spreading(self, parts, int64_t weight, bint checks_labels, bint requires_labels):
        """Points for few pods."""
        self.spreading = parts
        self.spread_weight = weight
        self.checks_labels, self.requires_labels = checks_labels, requires_labels

    def add_attraction(self, parts, factors, int64_t weight):
        """Points for many pods, each of which counts by the factor of its part."""
        self.attracting, self.factors = parts, factors
        self.attraction_weight = weight

    def judge(self, GroupTracker groups not None, const int64_t[::1] raw_groups):
        """Set the points of `groups`.

        `present`: the numbers in `raw_groups` of groups that are accepted, as bits.
        """
        cdef Py_ssize_t i, number
        if self.accepted.shape[0] < groups.number:
            self.accepted = np.empty(groups.size_of.shape[0], dtype=np.int64)
            self.raw = np.empty(groups.size_of.shape[0], dtype=np.int64)
        self.find_bounds()
        number = self.accept(groups)
        self.present = 0
        if raw_groups is not None:
            for i in range(number):
                self.present |= (<int64_t>1) << raw_groups[groups.sample_of[self.accepted[i]]]
        if number == 0 or (number == 1 and groups.size_of[self.accepted[0]] == 1):
            return  # a single node is taken unscored
        if self.spreading:
            self.spread(groups, number)
        if self.attracting:
            self.attract(groups, number)

    cdef void find_bounds(self):
        cdef CompiledLimit limit
        cdef bint is_first = self.may_be_first
        cdef Py_ssize_t i
        for limit in self.limits:
            limit.refresh()
        for limit in self.together:
            if is_first:
                for i in range(limit.pods.slots):
                    if limit.pods.counts[i] != 0:
                        is_first = False
                        break
        for limit in self.together:
            limit.needs_label = is_first
            limit.lowest = 0 if is_first else 1

    cdef Py_ssize_t accept(self, GroupTracker groups):
        """Find the groups whose rows are within all limits; returns how many."""
        cdef CompiledLimit limit
        cdef Py_ssize_t group, number = 0
        cdef bint is_accepted
        for group in range(groups.number):
            groups.points_of[group] = REFUSED
            if groups.size_of[group]:
                is_accepted = True
                for limit in self.limits:
                    if not limit.accepts(groups.sample_of[group]):
                        is_accepted = False
                        break
                if is_accepted:
                    groups.points_of[group] = 0
                    self.accepted[number] = group
                    number += 1
        return number

    cdef void spread(self, GroupTracker groups, Py_ssize_t number):
        """As PodTopologySpread scores and normalises."""
        cdef SpreadPart part
        cdef Py_ssize_t i, row
        cdef int64_t lowest, highest = 0, points
        cdef double total, more
        self.weigh(groups, number)
        for i in range(number):
            row = groups.sample_of[self.accepted[i]]
            total = 0.0
            for part in self.spreading:
                more = (<double>part.pods.at(row)) * part.weight
                if part.max_skew != 1:
                    more += <double>(part.max_skew - 1)
                if self.checks_labels and part.codes[row] < 0:
                    more = 0.0
                total += more
            self.raw[i] = <int64_t>(total + 0.5)
            if self.is_ignored(row):
                self.raw[i] = IGNORED
            if self.raw[i] > highest:
                highest = self.raw[i]
        lowest = highest
        for i in range(number):
            if self.raw[i] != IGNORED and self.raw[i] < lowest:
                lowest = self.raw[i]
        for i in range(number):
            points = 100
            if self.raw[i] == IGNORED:
                points = 0
            elif highest:
                points = (100 * (highest + lowest) - 100 * self.raw[i]) // highest
            groups.points_of[self.accepted[i]] += points * self.spread_weight

    cdef bint is_ignored(self, Py_ssize_t row):
        """Whether the node lacks a topology key that it needs to be scored."""
        cdef SpreadPart part
        if self.checks_labels and self.requires_labels:
            for part in self.spreading:
                if part.codes[row] < 0:
                    return True
        return False

    cdef void weigh(self, GroupTracker groups, Py_ssize_t number):
        """The weight of each constraint: by how many domains the accepted nodes are in."""
        cdef SpreadPart part
        cdef Py_ssize_t i, row
        cdef int64_t nodes, domains, code
        for part in self.spreading:
            part.pods.refresh()
            nodes = domains = 0
            part.seen[:] = 0
            for i in range(number):
                row = groups.sample_of[self.accepted[i]]
                if self.is_ignored(row):
                    continue
                nodes += groups.size_of[self.accepted[i]]
                if part.is_per_node:
                    continue
                code = part.codes[row]
                if code < 0:  # a missing label and an empty one are the same domain
                    code = part.blank if part.blank >= 0 else part.slots - 1
                domains += part.seen[code] == 0
                part.seen[code] = 1
            part.weight = log(<double>((nodes if part.is_per_node else domains) + 2))

    cdef void attract(self, GroupTracker groups, Py_ssize_t number):
        """As InterPodAffinity scores and normalises."""
        cdef CompiledCounts pods
        cdef Py_ssize_t i, k
        cdef int64_t factor, lowest, highest, points
        for i in range(number):
            self.raw[i] = 0
        for k in range(len(self.attracting)):
            pods, factor = self.attracting[k], self.factors[k]
            for i in range(number):
                self.raw[i] += factor * pods.at(groups.sample_of[self.accepted[i]])
        lowest = highest = self.raw[0]
        for i in range(number):
            lowest = self.raw[i] if self.raw[i] < lowest else lowest
            highest = self.raw[i] if self.raw[i] > highest else highest
        if lowest == highest:
            return
        for i in range(number):
            points = <int64_t>(100.0 * ((<double>(self.raw[i] - lowest)) / (<double>(highest - lowest))))
            groups.points_of[self.accepted[i]] += points * self.attraction_weight
