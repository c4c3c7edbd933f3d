"""Removing: the compiled search for victims and the one in NumPy give the same results, whatever the amounts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.amounts import POD_COUNT, FitRule, kernel
from bayplan.amounts.removing import PodRemoval, Removals, count_short
from bayplan.table import Bools, Ints, NodeTable
from bayplan.table.pod_matrix import PodMatrix
from bayplan.testing.builders import make_node, make_pod, make_table
from tests.rig.random_examples import examples

RESOURCES = ("cpu", "memory", "example.com/gpu")
AMOUNT = st.one_of(
    st.just(0), st.integers(0, 200), st.integers(0, 2**40), st.integers(2**60, 2**62)
)
needs_compiled = pytest.mark.skipif(
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


def search(case: dict[str, Any], is_compiled: bool) -> tuple[Any, list[Any]]:
    """Result of the search, and the victims on every row."""
    protected: Bools | None = case["protected"]

    def protect(rows: Ints) -> Bools | None:
        return None if protected is None else protected[rows]

    with pytest.MonkeyPatch.context() as patched:
        if not is_compiled:
            patched.setattr(kernel, "compiled", None)
        removal = PodRemoval(
            *(case[name] for name in ("table", "matrix", "rule", "priority", "more"))
        )
        given = None if protected is None else protect
        found = removal.search(case["rows"], case["start"], case["wanted"], given)
        one_row = [np.array([row]) for row in range(len(case["rows"]))]
        victims = [removal.victims(int(row[0]), protect(row)) for row in one_row]
    short = sorted(bits for part in found.short for bits in part.tolist())
    return found._replace(short=tuple(short)), victims


@needs_compiled
@settings(max_examples=examples(100), deadline=None)
@given(searches())
def test_both_forms_find_the_same(case: dict[str, Any]) -> None:
    assert search(case, is_compiled=True) == search(case, is_compiled=False)


@pytest.fixture(params=["compiled", "NumPy"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form of the kernel."""
    if request.param == "NumPy":
        monkeypatch.setattr(kernel, "compiled", None)
    elif kernel.compiled is None:
        pytest.skip("the extension module is not built (make kernel)")


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


@pytest.mark.usefixtures("form")
def test_the_least_important_victims_are_the_best() -> None:
    found = removals(wanted=3)

    assert (found.row, found.candidates, found.harmless, found.idle) == (0, 2, 2, 1)
    assert found.costs[:4] == (0, 1, 1 + 2**31, 1), (
        "one pod of priority 1, as on n1: the first name"
    )


@pytest.mark.usefixtures("form")
def test_the_search_ends_with_enough_candidates() -> None:
    assert removals(wanted=1).candidates == 1


@pytest.mark.usefixtures("form")
def test_what_is_short_without_all_pods_is_counted() -> None:
    found = removals(wanted=3, cores=5)

    assert found.row == -1
    rule = FitRule({"cpu": 5000}, {"cpu": "Insufficient cpu"})
    assert count_short(rule, found.short) == {"Insufficient cpu": 2}, "n2 has no pod to remove"
