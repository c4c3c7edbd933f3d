"""Filling: pods are put on rows of a copy, each on the best one; the table never changes."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayplan
from bayplan.amounts import BalanceRule, FitRule, ShareKind, ShareRule, kernel
from bayplan.amounts.filling import Filled, Filling, Fillings, fill
from bayplan.amounts.kernel import JudgeRules, Weighted, make_judge
from bayplan.table import AmountsCopy, Ints, NodeTable, shares_of
from bayplan.testing.builders import make_node, make_pod, make_table
from tests.rig.random_examples import examples

needs_compiled = pytest.mark.skipif(
    kernel.compiled is None, reason="the extension module is not built (make kernel)"
)
BAYPLAN = Path(bayplan.__file__).parent


def make_filling(table: NodeTable, cpu: int) -> Filling:
    pod = make_pod(f"of-{cpu}", cpu=f"{cpu}m", memory=f"{cpu}Ki")
    memory = cpu * 1024
    fit = FitRule(
        {"cpu": cpu, "memory": memory, "pods": 1}, dict.fromkeys(("cpu", "memory", "pods"), "")
    )
    share = ShareRule(ShareKind.LEAST, (("cpu", cpu, 1), ("memory", memory, 1)))
    balance = BalanceRule((("cpu", cpu), ("memory", memory)))
    rules = JudgeRules(fit, 0, [Weighted(share, 1), Weighted(balance, 1)])
    values, base = np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    judge = make_judge(table, rules)
    judge.judge(values, base, None)
    return Filling(judge, values, base, rules, pod, is_ranked=True)


def draw_ranks(classes: list[int], rows: int) -> Ints:
    return np.random.default_rng(0).integers(100, size=(2, len(classes), rows))


def fill_all(table: NodeTable, sizes: list[int], classes: list[int]) -> Filled:
    """Put pods of these sizes on all rows, and once more on another place of the same rows; each has other ranks."""
    count = len(table)
    rows = np.tile(np.arange(count, dtype=np.int64), 2)
    kinds = [make_filling(table, size) for size in sizes]
    numbers = np.array(classes, np.int64)
    ranks = draw_ranks(classes, count)
    return fill(table, kinds, numbers, rows, np.array([count, 2 * count], np.int64), ranks)


@needs_compiled
@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.integers(1, 4000), min_size=1, max_size=6),
    st.lists(st.integers(1, 2500), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), max_size=8),
)
def test_each_pod_is_put_on_the_best_row(
    rooms: list[int], sizes: list[int], classes: list[int]
) -> None:
    nodes = [
        make_node(f"n{i}", cpu=f"{room}m", memory="3Mi", pods=3) for i, room in enumerate(rooms)
    ]
    table, classes = make_table(*nodes), [number % len(sizes) for number in classes]

    found, ranks = fill_all(table, sizes, classes), draw_ranks(classes, len(table))

    before = table.requested["cpu"].tolist()
    for pod, (number, host) in enumerate(zip(classes, found.hosts[0].tolist(), strict=True)):
        kind = make_filling(table, sizes[number])
        best = kind.values.max()
        tied = np.flatnonzero(kind.values == best)
        assert host == (-1 if best < 0 else tied[ranks[0, pod, tied].argmin()])
        assert found.values[0, pod] == max(kind.values.max(), -1)
        if host >= 0:
            for cells, amount in shares_of(table, kind.pod):
                cells[host] += amount
    assert before == [0] * len(table), "only this test puts pods there"


def test_a_copy_of_amounts_does_not_write_to_the_table() -> None:
    table = make_table(make_node("n", cpu="2"))
    copy = AmountsCopy(table)

    for cells, amount in shares_of(copy, make_pod("p", cpu="1", memory="1Ki")):
        cells[0] += amount

    assert copy.requested["cpu"].tolist() == [1000]
    assert copy.pod_count_column.view.tolist() == [1]
    assert table.requested["cpu"].tolist() == [0]
    assert table.scoring_usage["cpu"].tolist() == [0]
    assert table.pod_count.tolist() == [0]


WITH_COLUMNS_OF_THEIR_OWN = {
    "framework/csi_nodes.py",
    "plugins/node_volume_limits/attached.py",
    "plugins/volume_binding/volume_search.py",
    "plugins/volume_binding/volume_columns.py",
}


def written_cells(source: str) -> list[str]:
    """Assignments to items of `.cells`, `.data` or `.view`."""
    found: list[str] = []
    if not any(f"{name}[" in source for name in ("cells", "data", "view")):
        return found
    for node in ast.walk(ast.parse(source)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign):
            targets = [node.target]
        for target in targets:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.value, ast.Attribute)
                and target.value.attr in ("cells", "data", "view")
            ):
                found.append(f"line {target.lineno}: {ast.unparse(target)}")
    return found


def test_only_the_table_writes_its_cells() -> None:
    written = {
        str(path.relative_to(BAYPLAN)): cells
        for path in BAYPLAN.rglob("*.py")
        if (cells := written_cells(path.read_text(encoding="utf-8")))
        and path.relative_to(BAYPLAN).parts[0] != "table"
    }

    assert set(written) <= WITH_COLUMNS_OF_THEIR_OWN, written


def test_a_written_cell_is_found() -> None:
    assert written_cells("table.pod_count_column.cells[row] += 1")
    assert written_cells("table.requested.column('cpu').data[0] = 1")
    assert not written_cells("cells = table.pod_count_column.cells")


@needs_compiled
@pytest.mark.parametrize(("resources", "is_filled"), [(15, True), (16, False), (40, False)])
def test_pods_with_more_amounts_than_the_kernel_holds_are_tried_in_full(
    resources: int, is_filled: bool
) -> None:
    table = make_table(make_node("a", cpu="4"))
    more = {f"example.com/r{i}": 1 for i in range(resources - 1)}
    pod = make_pod("many", cpu="1m", requests=more)

    found = Fillings.of([make_filling(table, 1)._replace(pod=pod)])

    assert (found is not None) == is_filled
