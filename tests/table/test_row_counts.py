"""RowCounts: counts by thing and row, their log, and copies of one row."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.table import row_counts
from bayplan.table.row_counts import CountStep, RowCounts

steps = st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), max_size=20)


@given(steps)
def test_the_log_tells_which_rows_have_what(taken: list[tuple[str, int]]) -> None:
    counts: RowCounts[str] = RowCounts(logged=True)
    seen: set[tuple[str, int]] = set()
    there: list[tuple[str, int]] = []
    version = counts.version
    for key, row in taken:
        if (key, row) in there and len(there) % 2:
            there.remove((key, row))
            counts.add(key, row, -1)
        else:
            there.append((key, row))
            counts.add(key, row, 1)
        for step in counts.since(version) or ():
            (seen.add if step.change > 0 else seen.discard)((step.key, step.row))
        version = counts.version

    assert seen == set(there)
    assert set(counts) == {key for key, _ in there}
    assert all(counts.at(key, row) == there.count((key, row)) for key in "xy" for row in range(3))


def test_a_log_that_was_cut_says_so() -> None:
    counts: RowCounts[str] = RowCounts(logged=True)
    for _ in range(row_counts.KEEP + 1):
        counts.add("x", 0, 1)
        counts.add("x", 0, -1)

    assert counts.since(0) is None
    assert counts.since(counts.version - 1) == [CountStep("x", 0, -1)]
    assert RowCounts().since(0) is None


def test_a_copy_of_a_row_leaves_the_whole_alone() -> None:
    counts: RowCounts[str] = RowCounts()
    counts.add("x", 3, 2)

    fork = counts.fork(3)
    assert fork.add("x", 0, -2) == -1
    nested = fork.fork(0)
    assert nested.add("x", 0, 1) == 1
    assert nested.add("y", 0, 1) == 1

    assert (counts.at("x", 3), fork.at("x", 0), nested.at("x", 0)) == (2, 0, 1)
    assert nested.changes == {"x": -1, "y": 1}
    assert fork.changes == {"x": -2}
    assert counts.changes == {}
