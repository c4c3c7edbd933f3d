"""Removing: the victims that the kernel finds are those of the rule in plain words, whatever the amounts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.amounts import POD_COUNT, FitRule, kernel
from bayplan.amounts.removing import PodRemoval, Removals, count_short, rotated
from bayplan.table import Bools, Ints, NodeTable
from bayplan.table.pod_matrix import PodMatrix
from bayplan.testing.builders import make_node, make_pod, make_table
from tests.rig.random_examples import examples

RESOURCES = ("cpu", "memory", "example.com/gpu")
AMOUNT = st.one_of(
    st.just(0), st.integers(0, 200), st.integers(0, 2**40), st.integers(2**56, 2**58)
)
pytestmark = pytest.mark.skipif(
    kernel.compiled is None, reason="the extension module is not built (make kernel)"
)


@st.composite
def searches(draw: st.DrawFn) -> dict[str, Any]:
    """A table with pods of any amounts, and a pod that wants some of them."""
    size = draw(st.integers(1, 8))
    amount = draw(st.sampled_from([st.integers(0, 4), AMOUNT]))
    pods = [
        make_pod(
            f"p{row}-{place}",
            node_name=f"n{row}",
            priority=draw(st.integers(0, 3)),
            start_time=draw(
                st.sampled_from([None, "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"])
            ),
        )
        for row in range(size)
        for place in range(draw(st.integers(0, 4)))
    ]
    table = make_table(*[make_node(f"n{row}", pods=3) for row in range(size)], pods=pods)
    matrix = PodMatrix(table)
    matrix.refresh()
    columns = st.lists(amount, min_size=size, max_size=size)
    shape = (*matrix.priority.shape, 1 + len(RESOURCES))
    cells = st.lists(amount, min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    ones = matrix.amounts[:, :, 0]
    matrix.amounts = np.array(draw(cells), dtype=np.int64).reshape(shape)
    matrix.amounts[:, :, 0] = ones
    matrix.resources = {name: place for place, name in enumerate((POD_COUNT, *RESOURCES))}
    for resource in RESOURCES:
        table.allocatable.column(resource).data[:size] = draw(columns)
        table.requested.column(resource).data[:size] = draw(columns)
    wanted = draw(st.lists(st.sampled_from((POD_COUNT, *RESOURCES, "unknown")), unique=True))
    rule = FitRule(
        {name: 1 if name == POD_COUNT else draw(amount) for name in wanted},
        {name: f"no {name}" for name in wanted},
        frozenset({"example.com/gpu"}) if draw(st.booleans()) else frozenset(),
    )
    more = {name: np.array(draw(columns), dtype=np.int64) for name in wanted}
    order = np.array(draw(st.permutations(range(size))), dtype=np.int64)
    mask = st.lists(st.booleans(), min_size=ones.size, max_size=ones.size)
    return {
        "table": table,
        "matrix": matrix,
        "rule": rule,
        "priority": draw(st.integers(0, 4)),
        "more": more.__getitem__ if draw(st.booleans()) else None,
        "rows": order,
        "start": draw(st.integers(0, size - 1)),
        "wanted": draw(st.integers(1, size)),
        "protected": draw(
            st.none() | mask.map(lambda m: np.array(m, dtype=np.bool_).reshape(ones.shape))
        ),
    }


def search(case: dict[str, Any]) -> tuple[Removals, list[Any]]:
    """Result of the search, and the victims on every row."""
    protected: Bools | None = case["protected"]

    def protect(rows: Ints) -> Bools | None:
        return None if protected is None else protected[rows]

    removal = PodRemoval(*(case[name] for name in ("table", "matrix", "rule", "priority", "more")))
    given = None if protected is None else protect
    found = removal.search(case["rows"], case["start"], case["wanted"], given)
    one_row = [np.array([row]) for row in range(len(case["rows"]))]
    return found, [removal.victims(int(row[0]), protect(row)) for row in one_row]


def lower_pods(case: dict[str, Any], row: int) -> list[int]:
    """The places of the pods that may be removed, in the order in which they come back."""
    priorities, protected = case["matrix"].priority[row].tolist(), case["protected"]
    lower = [place for place, priority in enumerate(priorities) if priority < case["priority"]]
    return sorted(lower, key=lambda place: protected is not None and not protected[row, place])


def expected_victims(case: dict[str, Any], row: int) -> tuple[int, list[int]]:
    """All lower pods are removed, then put back one after the other where they fit."""
    table, matrix, rule, lower = case["table"], case["matrix"], case["rule"], lower_pods(case, row)
    gone, bits = set(lower), 0

    def lacks(name: str) -> bool:
        column, capacity = matrix.index_of(name), table.allocatable[name].item(row)
        taken = table.pod_count if name == POD_COUNT else table.requested[name]
        free = capacity - taken.item(row)
        if case["more"] is not None:
            free -= case["more"](name).item(row)
        if free >= rule.amounts[name] or (name in rule.left_to_devices and capacity <= 0):
            return False
        if column is not None:
            free += sum(matrix.amounts[row, place, column].item() for place in gone)
        return bool(free < rule.amounts[name])

    for number, name in enumerate(rule.amounts if lower else ()):
        if lacks(name):
            never = rule.amounts[name] > table.allocatable[name][row] and name != POD_COUNT
            bits |= (3 if never else 1) << 2 * number
    for place in lower if not bits else ():
        gone.remove(place)
        if any(map(lacks, rule.amounts)):
            gone.add(place)
    return bits, [] if bits else sorted(gone)


def costs_of(case: dict[str, Any], row: int, victims: list[int]) -> tuple[int, ...]:
    matrix, protected = case["matrix"], case["protected"]
    priorities = [matrix.priority[row, place].item() for place in victims]
    starts = [
        matrix.start_s[row, place].item()
        for place, priority in zip(victims, priorities, strict=True)
        if priority == max(priorities)
    ]
    exceeded = 0 if protected is None else sum(protected[row, place] for place in victims)
    total = sum(priority + 2**31 for priority in priorities)
    return exceeded, max(priorities), total, len(victims), -min(starts)


@settings(max_examples=examples(100), deadline=None)
@given(searches())
def test_victims_are_those_of_the_rule(case: dict[str, Any]) -> None:
    found, victims = search(case)

    assert victims == [expected_victims(case, row) for row in range(len(case["rows"]))]
    costs: dict[int, tuple[int, ...]] = {}
    idle = 0
    for row in rotated(case["rows"], case["start"]).tolist():
        idle += not lower_pods(case, row)
        if victims[row][1]:
            costs[row] = costs_of(case, row, victims[row][1])
        harmless = sum(cost[0] == 0 for cost in costs.values())
        if harmless and len(costs) >= case["wanted"]:
            break
    best = min(costs, key=lambda row: (costs[row], case["table"].names[row]), default=-1)
    assert found[:2] == (best, costs.get(best, ()))
    assert (found.candidates, found.idle) == (len(costs), idle)
    if costs:
        assert found.harmless == harmless
    else:
        short = sorted(bits for part in found.short for bits in part.tolist())
        assert short == sorted(bits for bits, _ in victims)


def crowded() -> tuple[NodeTable, PodMatrix]:
    """Nodes of 4 cores: two pods of 2 cores on the first, one of 3 on the second, an important one on the third."""
    pods = [
        make_pod("a", node_name="n0", cpu="2", priority=1),
        make_pod("b", node_name="n0", cpu="2", priority=2),
        make_pod("c", node_name="n1", cpu="3", priority=1),
        make_pod("d", node_name="n2", cpu="3", priority=9),
    ]
    table = make_table(*[make_node(f"n{row}", cpu="4") for row in range(3)], pods=pods)
    matrix = PodMatrix(table)
    matrix.refresh()
    return table, matrix


def removals(wanted: int, cores: int = 2) -> Removals:
    rule = FitRule({"cpu": 1000 * cores}, {"cpu": "Insufficient cpu"})
    removal = PodRemoval(*crowded(), rule, priority=5)
    return removal.search(np.arange(3), 0, wanted)


def test_the_least_important_victims_are_the_best() -> None:
    found = removals(wanted=3)

    assert (found.row, found.candidates, found.harmless, found.idle) == (0, 2, 2, 1)
    assert found.costs[:4] == (0, 1, 1 + 2**31, 1), (
        "one pod of priority 1, as on n1: the first name"
    )


def test_the_search_ends_with_enough_candidates() -> None:
    assert removals(wanted=1).candidates == 1


def test_what_is_short_without_all_pods_is_counted() -> None:
    found = removals(wanted=3, cores=5)

    assert found.row == -1
    rule = FitRule({"cpu": 5000}, {"cpu": "Insufficient cpu"})
    assert count_short(rule, found.short) == {"Insufficient cpu": 2}, "n2 has no pod to remove"
