"""Kernel: the compiled loops and those in NumPy give the same numbers, whatever the amounts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.amounts import (
    AlignmentRule,
    BalanceRule,
    FitRule,
    ShareKind,
    ShareRule,
    kernel,
)
from bayplan.amounts.kernel import (
    DEAD,
    JudgeRules,
    Peaks,
    RowJudge,
    Weighted,
    make_judge,
    place_of,
    refusal,
)
from bayplan.amounts.scoring import (
    MAX_EXACT,
)
from bayplan.table import NodeTable
from bayplan.testing.builders import make_node, make_pod, make_table
from tests.rig.random_examples import examples

PLACE = 5
RESOURCES = ("cpu", "memory", "example.com/gpu")

needs_compiled = pytest.mark.skipif(
    kernel.compiled is None, reason="the extension module is not built (make kernel)"
)

AMOUNT = st.one_of(
    st.just(0),
    st.integers(0, 200),
    st.integers(0, 2**40),
    st.integers(MAX_EXACT - 9, MAX_EXACT + 9),
    st.integers(2**60, 2**62),
)


@st.composite
def tables(draw: st.DrawFn, amount: st.SearchStrategy[int] = AMOUNT) -> NodeTable:
    """Columns of any amounts, also such as no cluster has; or nodes that are used in part."""
    size = draw(st.integers(1, 6))
    table = make_table(*[make_node(f"n{i}") for i in range(size)])
    amounts = st.lists(amount, min_size=size, max_size=size)
    percents = st.lists(st.integers(0, 130), min_size=size, max_size=size)
    is_any_use = draw(st.booleans())
    for resource in RESOURCES:
        capacities = draw(amounts)
        table.allocatable.column(resource).data[:size] = capacities
        for columns in (table.requested, table.scoring_usage):
            columns.column(resource).data[:size] = (
                draw(amounts)
                if is_any_use
                else [c * p // 100 for c, p in zip(capacities, draw(percents), strict=True)]
            )
    pods = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    table.pod_count_column.data[:size] = pods
    for on_node, count in zip(table.pods, pods, strict=False):
        on_node.update({f"p{i}": make_pod(f"p{i}") for i in range(count)})
    table.allocatable.column("pods").data[:size] = 4
    return table


@st.composite
def rules(
    draw: st.DrawFn, amount: st.SearchStrategy[int] = AMOUNT
) -> tuple[FitRule | None, list[Weighted]]:
    """A fit rule and score rules, each of which may be missing."""
    chosen = draw(st.sampled_from([RESOURCES, RESOURCES[:2], RESOURCES[1:], RESOURCES[:1], ()]))
    amounts = {"pods": 1, **{name: draw(amount) for name in chosen}}
    left = draw(st.sampled_from([frozenset(), frozenset({"example.com/gpu"})]))
    fit = FitRule(amounts, {name: name for name in amounts}, left)
    added = st.one_of(amount, st.integers(0, 50))
    parts = tuple((name, draw(added), draw(st.integers(1, 3))) for name in chosen)
    steps = draw(st.lists(st.sampled_from([0, 1, 50, 99, 100]), min_size=1, max_size=5))
    heights = np.resize(np.array(steps, np.int64), 101)
    share = ShareRule(draw(st.sampled_from(list(ShareKind))), parts, heights)
    balance = BalanceRule(tuple(part[:2] for part in parts))
    alignment = AlignmentRule(balance.parts)
    scores = [
        Weighted(share, draw(st.integers(1, 3))),
        Weighted(balance, 1),
        Weighted(alignment, 2),
    ]
    kept = draw(st.sampled_from([scores, scores[:2], scores[:1], scores[1:2], scores[2:], []]))
    return (fit if draw(st.booleans()) else None), kept


BASE = st.sampled_from([0, 7, 300, DEAD, refusal(2, 0), refusal(9, 3)])


@needs_compiled
@settings(max_examples=examples(120), deadline=None)
@given(table=tables(), ruled=rules(), data=st.data())
def test_both_forms_judge_alike(table: NodeTable, ruled: Any, data: st.DataObject) -> None:
    fit, scores = ruled
    size = len(table)
    base = np.array(data.draw(st.lists(BASE, min_size=size, max_size=size)), np.int64)
    some = data.draw(st.sampled_from([None, np.arange(0, size, 2, dtype=np.int64)]))
    expected, found = np.zeros(size, np.int64), np.zeros(size, np.int64)

    with np.errstate(over="ignore"):
        RowJudge(table, JudgeRules(fit, PLACE, scores)).judge(expected, base, some)
    compiled = make_judge(table, JudgeRules(fit, PLACE, scores))
    compiled.judge(found, base, some)

    assert isinstance(compiled, kernel.compiled.CompiledJudge)
    assert found.tolist() == expected.tolist()


@needs_compiled
@settings(max_examples=examples(60), deadline=None)
@given(table=tables(), ruled=rules(), data=st.data())
def test_both_forms_judge_many_rows_alike(
    table: NodeTable, ruled: Any, data: st.DataObject
) -> None:
    """Both forms agree on so many rows that they are judged in chunks: each row of the table many times, in any
    order.
    """
    fit, scores = ruled
    size = data.draw(st.sampled_from([63, 64, 65, 128, 150]))
    order = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, len(table), size)
    many = make_table(*[make_node(f"n{i}") for i in range(size)])
    pairs = [(table.pod_count_column, many.pod_count_column)]
    for name in ("allocatable", "requested", "scoring_usage"):
        few, more = getattr(table, name), getattr(many, name)
        pairs += [
            (few.column(resource), more.column(resource)) for resource in (*RESOURCES, "pods")
        ]
    for few, more in pairs:
        more.data[:size] = few.data[order]
    base = np.array(data.draw(st.lists(BASE, min_size=3, max_size=6)), np.int64)[order % 3]
    some = data.draw(st.sampled_from([None, np.flatnonzero(order % 2), np.arange(size)[::-1] // 2]))
    grouped = data.draw(st.sampled_from([None, (order % 2, np.array([3, 40], np.int64))]))
    expected, found = np.zeros(size, np.int64), np.zeros(size, np.int64)

    of_class = JudgeRules(fit, PLACE, scores)
    judges = (RowJudge(many, of_class), make_judge(many, of_class))
    if grouped:
        for judge in judges:
            judge.set_group_points(*grouped)
    with np.errstate(over="ignore"):
        judges[0].judge(expected, base, some)
    judges[1].judge(found, base, some)

    assert found.tolist() == expected.tolist()


SMALL = st.one_of(st.just(0), st.integers(0, 200), st.integers(0, MAX_EXACT // 4))


@pytest.mark.parametrize("kind", ShareKind, ids=lambda kind: kind.name)
@pytest.mark.parametrize("number", [1, 2, 3], ids="{} resources".format)
@pytest.mark.parametrize("is_aligned", [False, True], ids=["as by default", "with alignment"])
def test_all_forms_judge_many_nodes_alike(kind: ShareKind, number: int, is_aligned: bool) -> None:
    """512 nodes that are used in part: cases where only rounding makes a difference are rare."""
    size, draw = 512, np.random.default_rng(number)
    table = make_table(*[make_node(f"n{i}") for i in range(size)])
    for resource in RESOURCES:
        capacities = draw.choice([0, 7, 100, 4000, 2**20, 2**34], size)
        table.allocatable.column(resource).data[:size] = capacities
        for columns in (table.requested, table.scoring_usage):
            columns.column(resource).data[:size] = capacities * draw.uniform(0, 1.1, size)
    table.allocatable.column("pods").data[:size] = 4
    added = [(name, int(draw.integers(0, 300))) for name in RESOURCES[:number]]
    parts = tuple((name, amount, int(draw.integers(1, 4))) for name, amount in added)
    share = ShareRule(kind, parts, draw.integers(0, 101, 101) * (np.arange(101) % 3 > 0))
    scores = [Weighted(share, 2), Weighted(BalanceRule(tuple(added)), 1)]
    if is_aligned:
        scores.append(Weighted(AlignmentRule(tuple(added)), 3))
    fit = FitRule({"cpu": 5}, {"cpu": "cpu"}, frozenset())
    of_class, base = JudgeRules(fit, PLACE, scores), np.zeros(size, np.int64)
    expected, found = np.zeros(size, np.int64), np.zeros(size, np.int64)

    RowJudge(table, of_class).judge(expected, base, None)
    make_judge(table, of_class).judge(found, base, None)

    assert len(np.unique(expected)) > 40
    assert found.tolist() == expected.tolist()


@pytest.fixture(scope="module")
def many_nodes() -> NodeTable:
    """A table of 20,000 nodes, whose amounts each test sets."""
    return make_table(*[make_node(f"n{i}") for i in range(20_000)])


@needs_compiled
@pytest.mark.parametrize("kind", [ShareKind.LEAST, ShareKind.MOST], ids=lambda kind: kind.name)
@pytest.mark.parametrize("bits", [4, 12, 30, 43, 46], ids="amounts of up to {} bits".format)
@pytest.mark.parametrize("alike", [1, 200], ids="{} nodes of each kind".format)
def test_dividing_by_multiplying_with_the_inverse_changes_no_digit(
    kind: ShareKind, bits: int, alike: int, many_nodes: NodeTable
) -> None:
    """Shares of all kinds of capacities, many of which are whole percents or one unit beside."""
    table, size, draw = many_nodes, len(many_nodes), np.random.default_rng(bits)
    for resource in RESOURCES[:2]:
        kinds = np.exp2(draw.uniform(0, bits, size // alike)).astype(np.int64)
        capacities = np.repeat(kinds, alike)
        table.allocatable.column(resource).data[:size] = capacities
        for columns in (table.requested, table.scoring_usage):
            used = capacities * draw.integers(0, 101, size) // 100 + draw.integers(-1, 2, size)
            columns.column(resource).data[:size] = np.clip(used, 0, capacities)
    parts = tuple((name, int(draw.integers(0, 3)), 1) for name in RESOURCES[:2])
    scores = [
        Weighted(ShareRule(kind, parts), 1),
        Weighted(BalanceRule(tuple(part[:2] for part in parts)), 1000),
    ]
    base, expected, found = (np.zeros(size, np.int64) for _ in range(3))

    RowJudge(table, JudgeRules(None, PLACE, scores)).judge(expected, base, None)
    make_judge(table, JudgeRules(None, PLACE, scores)).judge(found, base, None)

    assert np.array_equal(found, expected)


VALUES = st.lists(st.sampled_from([DEAD, -3, 0, 5, 5, 9]), min_size=1, max_size=12)


@needs_compiled
@settings(max_examples=examples(80), deadline=None)
@given(listed=VALUES, data=st.data())
def test_both_forms_group_alike(listed: list[int], data: st.DataObject) -> None:
    size, values = len(listed), np.array(listed, np.int64)
    spread = st.sampled_from([st.integers(-2, 2), st.integers(-(2**50), 2**50)])
    marks = [
        np.array(data.draw(st.lists(data.draw(spread), min_size=size, max_size=size)), np.int64)
        for _ in range(data.draw(st.integers(0, 2)))
    ]
    results = []
    for compiled in (kernel.compiled, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "compiled", compiled)
            groups = kernel.group_rows(values, marks)
            assert groups.sizes is not None
            given = np.flatnonzero(np.arange(len(groups.sizes)) % 3 != 2)
            groups.give(given, 10 * given)
            found = groups.ids.tolist(), groups.samples.tolist(), groups.sizes.tolist()
            results.append((found, groups.totals().tolist(), groups.best()))

    assert results[0] == results[1]
    expected = [
        value + 10 * group if group >= 0 and group % 3 != 2 else -1
        for value, group in zip(listed, results[0][0][0], strict=True)
    ]
    assert results[0][1:] == (expected, kernel.summarize(np.array(expected)))


ASKED_VALUES = st.sampled_from(
    [DEAD, 0, 7, *(refusal(place, local) for place in (0, 2, 5) for local in (0, 3))]
)


@given(
    listed=st.lists(ASKED_VALUES, max_size=30),
    place=st.none() | st.integers(0, 6),
    data=st.data(),
)
def test_plugins_are_asked_about_rows_that_none_before_them_refuses(
    listed: list[int], place: int | None, data: st.DataObject
) -> None:
    values = np.array(listed, dtype=np.int64)
    changes = st.lists(st.integers(0, len(listed) - 1)) if listed else st.just([])
    changed = data.draw(st.none() | changes.map(lambda rows: np.array(rows, dtype=np.int64)))

    found = kernel.rows_to_judge(values, changed, place)

    among = range(len(listed)) if changed is None else sorted(set(changed.tolist()))
    assert found.tolist() == [
        row
        for row in among
        if listed[row] >= 0
        or (listed[row] != DEAD and place is not None and place_of(listed[row]) >= place)
    ]


def test_of_two_refusals_the_earlier_plugin_has_the_larger_value() -> None:
    assert refusal(2, 99) > refusal(3, 0) > DEAD
    assert [place_of(refusal(place, 2**40)) for place in (0, 1, 31)] == [0, 1, 31]


PEAK = st.sampled_from([DEAD, refusal(2, 0), refusal(9, 3), 0, 5, 5, 7, 300])
STEP = st.lists(st.tuples(st.integers(0, 40), PEAK), max_size=6)


@needs_compiled
@settings(max_examples=examples(80), deadline=None)
@given(
    listed=st.lists(PEAK, min_size=1, max_size=41), steps=st.lists(STEP, max_size=6), data=st.data()
)
def test_both_forms_keep_the_same_peaks(
    listed: list[int], steps: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    values, size = np.array(listed, np.int64), len(listed)
    numbers = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    groups = data.draw(st.sampled_from([None, np.array(numbers, np.int64)]))
    forms = [kernel.compiled.Peaks(values, groups), Peaks(values, groups)]
    for form in forms:
        form.update(None)

    for step in steps:
        rows = np.array([row % size for row, _ in step], np.int64)
        for row, (_, value) in zip(rows.tolist(), step, strict=True):
            values[row] = value
        for form in forms:
            form.update(rows)
        first, second = [(tuple(form.best()), form.present()) for form in forms]
        assert first == second


@needs_compiled
@settings(max_examples=examples(50), deadline=None)
@given(data=st.data(), seed=st.integers(0, 99), size=st.sampled_from([5, 70, 200]))
def test_judging_keeps_the_peaks(data: st.DataObject, seed: int, size: int) -> None:
    """Rows change in any way, few and many of them, some several times: the peaks are those of all values."""
    draw = np.random.default_rng(seed)
    table = make_table(*[make_node(f"n{i}", cpu="1", memory="1Ki") for i in range(size)])
    table.allocatable.column("pods").data[:size] = 9
    groups, points = draw.integers(0, 3, size), np.array([0, 1, 300], np.int64)
    parts = (("cpu", 10, 1), ("memory", 10, 1))
    scores = [Weighted(ShareRule(ShareKind.LEAST, parts), 1)]
    fit = FitRule({"cpu": 10}, {"cpu": "cpu"}, frozenset())
    judge = make_judge(table, JudgeRules(fit, PLACE, scores))
    judge.set_group_points(groups, points)
    base = draw.choice([0, 0, 0, 7, DEAD, refusal(2, 0)], size)
    values, rows = np.empty(size, np.int64), None
    peaks = kernel.make_peaks(values, groups)

    for number in data.draw(st.lists(st.sampled_from([1, 3, 30, 100]), max_size=5)):
        judge.judge(values, base, rows, peaks)
        rows = draw.integers(0, size, number)
        for resource in RESOURCES[:2]:
            used = draw.integers(0, data.draw(st.sampled_from([300, 1100])), number)
            for columns in (table.requested, table.scoring_usage):
                columns.column(resource).data[rows] = used
    judge.judge(values, base, rows, peaks)

    expected = Peaks(values, groups)
    best = kernel.Best(*peaks.best())
    assert best == kernel.Best(*expected.best())
    assert peaks.present() == expected.present()
    for n in range(best.ties):
        assert peaks.nth_best(n) == expected.nth_best(n)
        assert peaks.total_at(peaks.nth_best(n)) == best.total
    assert peaks.totals() is values


@needs_compiled
@pytest.mark.parametrize(
    ("value", "is_tracked"),
    [
        pytest.param(2**31 - 1, True, id="the highest value of 32 bits"),
        pytest.param(2**31, False, id="a value that 32 bits cannot hold"),
    ],
)
def test_groups_are_tracked_while_their_values_have_32_bits(value: int, is_tracked: bool) -> None:
    values, marks = np.array([5, value], np.int64), [np.array([0, 1], np.int64)]

    tracker = kernel.make_tracker(values, marks)

    assert (tracker is not None) == is_tracked
    if is_tracked:
        assert tracker.best() == (value, 1, 2, 1)


@needs_compiled
@settings(max_examples=examples(50), deadline=None)
@given(listed=VALUES, data=st.data())
def test_tracked_groups_have_the_best_row_after_each_change(
    listed: list[int], data: st.DataObject
) -> None:
    size, values = len(listed), np.array(listed, np.int64)
    marks = [np.array(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))]
    tracker = kernel.make_tracker(values, marks)

    for _ in range(6):
        rows = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=4)), np.int64)
        for row in rows.tolist():
            values[row] = data.draw(st.sampled_from([-3, 0, 5, 5, 9]))
            marks[0][row] = data.draw(st.integers(0, 2))
        try:
            tracker.update(rows, marks if data.draw(st.booleans()) else None)
        except OverflowError:
            tracker = kernel.make_tracker(values, marks)
        numbers, samples, sizes = tracker.current()
        assert [int(np.flatnonzero(tracker.ids == g)[0]) for g in numbers] == samples.tolist()
        assert samples.tolist() == sorted(samples.tolist())
        assert sizes.sum() == np.count_nonzero(values >= 0)
        refused = data.draw(st.sets(st.integers(0, 2)))
        for group in range(min(len(tracker.points), 3)):
            tracker.points[group] = kernel.REFUSED if group in refused else 3 * group
        totals = np.where(tracker.ids >= 0, values + tracker.points[tracker.ids], -1).clip(min=-1)
        fields = kernel.summarize(totals)
        assert tracker.totals().tolist() == totals.tolist()
        assert tracker.best() == fields
        best = kernel.Best(*fields)
        if best.feasible:
            tied = np.flatnonzero(totals == best.total).tolist()
            assert [tracker.nth_best(n) for n in range(best.ties)] == tied
            assert [tracker.total_at(row) == best.total for row in range(size)] == [
                row in tied for row in range(size)
            ]
