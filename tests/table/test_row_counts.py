"""RowCounts: counts by thing and row, and copies of one row."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.table.volumes import RowCounts

steps = st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), max_size=20)


@given(steps)
def test_the_steps_tell_which_rows_have_what(taken: list[tuple[str, int]]) -> None:
    counts: RowCounts[str] = RowCounts()
    seen: set[tuple[str, int]] = set()
    there: list[tuple[str, int]] = []
    for key, row in taken:
        if (key, row) in there and len(there) % 2:
            there.remove((key, row))
            step = counts.add(key, row, -1)
        else:
            there.append((key, row))
            step = counts.add(key, row, 1)
        if step:
            (seen.add if step > 0 else seen.discard)((key, row))

    assert seen == set(there)
    assert set(counts) == {key for key, _ in there}
    assert all(counts.at(key, row) == there.count((key, row)) for key in "xy" for row in range(3))


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
