"""FollowedColumn: always what working it out anew would give."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.table import ALL, Ints, NodeTable, Rows
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod


def free_cpu(table: NodeTable) -> Ints:
    def of_rows(rows: Rows) -> Ints:
        return table.allocatable["cpu"][rows] - table.requested["cpu"][rows]

    def of_row(row: int) -> int:
        return table.allocatable.rows[row].get("cpu", 0) - table.requested.rows[row].get("cpu", 0)

    return table.followed("free cpu", of_rows, of_row)


steps = st.lists(st.tuples(st.sampled_from(["node", "pod", "gone"]), st.integers(0, 30)))


@given(st.lists(steps, max_size=6))
def test_the_column_follows_nodes_and_pods(rounds: list[list[tuple[str, int]]]) -> None:
    table = NodeTable()
    writer = TableWriter(table)
    pods = {}
    for number, changes in enumerate(rounds):
        for position, (what, node) in enumerate(changes):
            name = f"n{node}"
            if what == "node":
                writer.set_node(make_node(name, cpu=str(number + 1)))
            elif what == "pod":
                pod = make_pod(f"p{number}-{position}", node_name=name, cpu="100m")
                writer.add_pod(pod)
                pods[pod.uid] = pod
            elif pods:
                writer.remove_pod(pods.popitem()[1])

        expected = table.allocatable["cpu"][ALL] - table.requested["cpu"][ALL]
        assert free_cpu(table).tolist() == expected.tolist()


def test_what_an_attempt_reads_twice_is_worked_out_once() -> None:
    table = NodeTable()
    TableWriter(table).set_node(make_node("a", cpu="4"))
    asked = []

    def of_rows(rows: Rows) -> Ints:
        asked.append(rows)
        return np.zeros(1, dtype=np.int64)

    for _ in range(2):
        table.followed("zero", of_rows, lambda row: 0)

    assert asked == [ALL]
