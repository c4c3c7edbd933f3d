"""PodMatrix follows the table: after any change it equals a new one."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.table import NodeTable
from bayplan.table.pod_matrix import PodMatrix, by_importance
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod

NOON, ONE = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"


def pod_of(name: str, **fields: Any) -> Pod:
    return make_pod(name, node_name="a", **{"cpu": "1", **fields})


def shown(matrix: PodMatrix) -> list[list[Any]]:
    """For each row its pods in order, with their stored values."""
    cpu = matrix.index_of("cpu")
    return [
        [
            (
                pod.name,
                matrix.priority[row, place],
                matrix.start_s[row, place],
                matrix.amounts[row, place, cpu],
                matrix.label_samples[matrix.labels[row, place]].labels,
            )
            for place, pod in enumerate(pods)
        ]
        for row, pods in enumerate(matrix.pods)
    ]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(pod_of("one", start_time=NOON), id="a pod starts that was not started"),
        pytest.param(
            pod_of("one", start_time=ONE, labels={"app": "web"}), id="it has other labels"
        ),
        pytest.param(pod_of("one", priority=7), id="it is more important"),
        pytest.param(pod_of("one", cpu="2"), id="it asks for more"),
        pytest.param(pod_of("one"), id="it is as it was"),
    ],
)
def test_a_matrix_follows_a_pod_that_changes(changed: Pod) -> None:
    table = NodeTable()
    writer = TableWriter(table)
    writer.set_node(make_node("a"))
    one, two = pod_of("one"), pod_of("two", start_time=ONE)
    for pod in (one, two):
        writer.add_pod(pod)
    matrix = PodMatrix(table)
    matrix.refresh()

    writer.replace_pod(one, changed)
    matrix.refresh()

    anew = PodMatrix(table)
    anew.refresh()
    assert shown(matrix) == shown(anew)


def test_that_a_pod_started_is_no_change_of_its_row() -> None:
    """Nothing that is kept about nodes is judged again when the cluster confirms where a pod is."""
    table = NodeTable()
    writer = TableWriter(table)
    writer.set_node(make_node("a"))
    assumed, started = pod_of("one"), pod_of("one", start_time=NOON)
    writer.add_pod(assumed)
    before = table.row_changes.version

    writer.replace_pod(assumed, started)

    assert table.row_changes.version == before
    assert table.pods[0] == {started.uid: started}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([("a", 1, ONE), ("b", 2, ONE)], "ba", id="the higher priority is first"),
        pytest.param([("a", 1, ONE), ("b", 1, NOON)], "ba", id="then the earlier start"),
        pytest.param([("b", 1, NOON), ("a", 1, NOON)], "ba", id="equal pods keep their order"),
        pytest.param([("a", 1, None), ("b", 1, NOON)], "ba", id="a pod without start is last"),
        pytest.param(
            [("a", 1, None), ("b", 1, None), ("c", 1, None)], "cba", id="without start: reversed"
        ),
        pytest.param(
            [("a", 1, None), ("b", 2, None), ("c", 1, NOON), ("d", 2, None), ("e", 1, None)],
            "dbcea",
            id="reversed within their priority",
        ),
    ],
)
def test_importance(pods: list[tuple[str, int, str | None]], expected: str) -> None:
    listed = [pod_of(name, priority=p, start_time=at) for name, p, at in pods]

    assert "".join(pod.name for pod in by_importance(listed)) == expected


def less(left: tuple[int, float], right: tuple[int, float], clock: Iterator[float]) -> bool:
    """kube-scheduler's comparison of (priority, start); a missing start reads the clock, the left operand first."""
    if left[0] != right[0]:
        return left[0] > right[0]
    return (left[1] or next(clock)) < (right[1] or next(clock))


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 0, 1, 2])), max_size=12))
def test_importance_is_the_order_of_an_insertion_sort(keys: list[tuple[int, int]]) -> None:
    names, clock = list(range(len(keys))), count(100.0)
    for i in range(1, len(names)):
        j = i
        while j and less(keys[names[j]], keys[names[j - 1]], clock):
            names[j - 1 : j + 1] = names[j], names[j - 1]
            j -= 1
    starts = {0: None, 1: NOON, 2: ONE}
    pods = [pod_of(str(n), priority=p, start_time=starts[at]) for n, (p, at) in enumerate(keys)]

    assert [pod.name for pod in by_importance(pods)] == [str(n) for n in names]


def test_a_row_whose_pods_change_their_order_is_filled_anew() -> None:
    table = NodeTable()
    writer = TableWriter(table)
    writer.set_node(make_node("a"))
    one, two = pod_of("one", start_time=NOON), pod_of("two", start_time=NOON)
    for pod in (one, two):
        writer.add_pod(pod)
    matrix = PodMatrix(table)
    matrix.refresh()

    writer.replace_pod(one, one.with_status(make_pod(start_time=NOON).status))
    matrix.refresh()

    assert [pod.name for pod in matrix.pods[0]] == ["two", "one"]


@pytest.mark.parametrize(
    "start_time", [pytest.param(None, id="not started"), pytest.param(NOON, id="started at once")]
)
def test_many_equal_pods_are_sorted_for_each_preemptor(start_time: str | None) -> None:
    """Potential victims are sorted without the other pods, which affects the order of equal ones."""
    table = NodeTable()
    writer = TableWriter(table)
    writer.set_node(make_node("a"))
    for number in range(40):
        priority = (number * 7) % 3
        writer.add_pod(pod_of(f"pod-{number:02}", priority=priority, start_time=start_time))
    matrix = PodMatrix(table)
    there = list(table.pods[0].values())
    orders = set()

    for priority in (2, 3, 1, 2):
        matrix.refresh(priority)
        lower = by_importance(pod for pod in there if pod.priority < priority)
        assert matrix.pods[0][-len(lower) :] == lower
        orders.add(tuple(pod.name for pod in matrix.pods[0] if pod.priority == 0))

    assert len(orders) > 1
    assert by_importance(there) != sorted(there, key=lambda pod: -pod.priority)
