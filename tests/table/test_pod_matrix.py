"""PodMatrix follows the table: after any change it is what a new one would be."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.table import NodeTable
from bayplan.table.pod_matrix import PodMatrix
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod

NOON, ONE = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"


def pod_of(name: str, **fields: Any) -> Pod:
    return make_pod(name, node_name="a", **{"cpu": "1", **fields})


def shown(matrix: PodMatrix) -> list[list[Any]]:
    """For each row its pods in order, with what is kept of them."""
    cpu = matrix.index_of("cpu")
    return [
        [
            (
                pod.name,
                matrix.priority[row, place],
                matrix.start_s[row, place],
                matrix.amounts[row, place, cpu],
                matrix.label_samples[matrix.labels[row, place]].labels,  # type: ignore[union-attr]
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
