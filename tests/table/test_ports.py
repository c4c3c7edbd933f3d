"""Host ports: which requests clash, and when a port is free again."""

import numpy as np
import pytest

from bayplan.table import ALL
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod, make_table

NOON = "2026-01-01T12:00:00Z"


@pytest.mark.parametrize(
    ("used", "wanted", "clash"),
    [
        pytest.param("80", "80", True, id="same port"),
        pytest.param("80", "81", False, id="other port"),
        pytest.param("80", "80/UDP", False, id="other protocol"),
        pytest.param("10.0.0.1:80", "10.0.0.2:80", False, id="other address"),
        pytest.param("10.0.0.1:80", "10.0.0.1:80", True, id="same address"),
        pytest.param("80", "10.0.0.1:80", True, id="used on every address"),
        pytest.param("10.0.0.1:80", "0.0.0.0:80", True, id="wanted on every address"),
    ],
)
def test_conflicts(used: str, wanted: str, clash: bool) -> None:
    there = make_pod("there", node_name="a", host_ports=[used])
    table = make_table(make_node("a"), make_node("b"), pods=[there])

    found = table.ports.conflicts(make_pod(host_ports=[wanted]).spec.host_ports, ALL)

    assert found.tolist() == [clash, False]


def test_conflicts_answers_for_the_rows_asked() -> None:
    there = make_pod("there", node_name="b", host_ports=[80])
    table = make_table(make_node("a"), make_node("b"), pods=[there])

    assert table.ports.conflicts(there.spec.host_ports, np.array([1])).tolist() == [True]


def test_a_port_is_free_when_one_of_its_pods_is_gone() -> None:
    """The ports of a node are a set, as in kube-scheduler."""
    pods = [make_pod(name, node_name="a", host_ports=["80/TCP"]) for name in "pq"]
    table = make_table(make_node("a"), pods=pods)

    TableWriter(table).remove_pod(pods[0])

    assert table.ports.conflicts(pods[0].spec.host_ports, ALL).tolist() == [False]


def test_a_freed_port_is_taken_again_when_its_other_pod_is_updated() -> None:
    pods = [make_pod(name, node_name="a", host_ports=["80/TCP"]) for name in "pq"]
    table = make_table(make_node("a"), pods=pods)
    writer = TableWriter(table)
    writer.remove_pod(pods[0])
    before = table.row_changes.version

    writer.replace_pod(pods[1], pods[1].with_status(make_pod(start_time=NOON).status))

    assert table.ports.conflicts(pods[0].spec.host_ports, ALL).tolist() == [True]
    assert table.row_changes.since(before) == [0], "what is cached about the row is stale"


def test_a_port_that_two_containers_name_counts_once() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    containers = [{"name": name, "ports": [port]} for name in "pq"]
    pod = make_pod(node_name="a", spec={"containers": containers})
    table = make_table(make_node("a"), pods=[pod])

    TableWriter(table).remove_pod(pod)

    assert table.ports.conflicts(pod.spec.host_ports, ALL).tolist() == [False]
