"""GpuLedger: which pod has which GPUs, through reservations, restarts, what-ifs and changes of nodes."""

from typing import Any

import numpy as np
import pytest

from bayplan.api.gpus import GPU_INDEX, GPU_MILLI
from bayplan.api.pod import Pod
from bayplan.policies.ledger import GpuLedger, annotated, fullest, kind_of
from bayplan.table import ALL
from bayplan.table.what_if import WhatIf
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table


def gpu_node(name: str, gpus: int) -> Any:
    return make_node(name, cpu="64", extended={GPU_MILLI: gpus * 1000})


def gpu_pod(name: str, milli: int, node_name: str = "", index: str = "") -> Pod:
    notes = {GPU_INDEX: index} if index else {}
    requests = {GPU_MILLI: milli} if milli else {}
    return make_pod(name, requests=requests, node_name=node_name, annotations=notes)


@pytest.mark.parametrize(
    ("free", "milli", "gpus"),
    [
        pytest.param((1000, 400, 500), 400, (1,), id="a share goes where least is left"),
        pytest.param((600, 600), 1000, (), id="halves of two are no whole one"),
        pytest.param((1000, 999, 1000), 2000, (0, 2), id="whole ones must be empty"),
        pytest.param((1000,), 2000, (), id="there are too few"),
        pytest.param((), 300, (), id="there is none"),
    ],
)
def test_fullest(free: tuple[int, ...], milli: int, gpus: tuple[int, ...]) -> None:
    assert fullest(free, milli) == gpus


@pytest.mark.parametrize(
    ("text", "milli", "gpus"),
    [
        pytest.param("1", 300, (1,), id="one"),
        pytest.param("0-3", 2000, (0, 3), id="two"),
        pytest.param("", 300, (), id="no annotation"),
        pytest.param("0-1", 300, (), id="two for a share"),
        pytest.param("1-1", 2000, (), id="one GPU twice"),
        pytest.param("x", 300, (), id="not a number"),
        pytest.param("-1", 300, (), id="an empty part"),
        pytest.param("¹", 300, (), id="not an ASCII digit"),
    ],
)
def test_annotated(text: str, milli: int, gpus: tuple[int, ...]) -> None:
    assert annotated(gpu_pod("p", milli, index=text)) == gpus


def test_kinds_of_pods_are_bits() -> None:
    assert [kind_of(milli) for milli in (1, 999, 1000, 2000, 8000)] == [1, 1, 2, 4, 256]


def test_pods_from_before_get_gpus_by_annotation_then_by_size_and_name() -> None:
    pods = [
        gpu_pod("b", 400, "two"),
        gpu_pod("a", 400, "two"),
        gpu_pod("noted", 300, "two", index="1"),
        gpu_pod("large", 700, "two"),
        gpu_pod("cpu", 0, "two"),
    ]
    for order in (pods, pods[::-1]):  # the order of the events does not matter
        table = make_table(gpu_node("one", 1), gpu_node("two", 2), pods=order)
        ledger = GpuLedger(table)

        assert ledger.free(table, ALL).tolist() == [[1000, 0], [200, 0]]
        assert {pod.name: ledger.gpus_of(pod) for pod in pods} == {
            "noted": (1,),
            "large": (1,),  # the fullest with room, the largest pod first
            "a": (0,),
            "b": (0,),
            "cpu": (),
        }
        assert ledger.kinds(table, ALL).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("pod", "free"),
    [
        pytest.param(gpu_pod("p", 300, "n", index="7"), [700, 1000], id="a GPU that is not there"),
        pytest.param(gpu_pod("p", 3000, "n"), [1000, 1000], id="no room: it counts for none"),
        pytest.param(gpu_pod("p", 2000, "n"), [0, 0], id="whole ones"),
    ],
)
def test_pods_that_need_care(pod: Pod, free: list[int]) -> None:
    table = make_table(gpu_node("n", 2), pods=[pod])

    assert GpuLedger(table).free(table, ALL).tolist() == [free]


def test_two_annotations_for_more_than_a_gpu_leave_nothing() -> None:
    pods = [gpu_pod(name, 700, "n", index="0") for name in "ab"]
    table = make_table(gpu_node("n", 1), pods=pods)

    assert GpuLedger(table).free(table, ALL).tolist() == [[0]]


def test_reserved_pod_keeps_its_gpu_while_others_come_and_go() -> None:
    table = make_table(gpu_node("n", 2))
    writer, ledger = TableWriter(table), GpuLedger(table)
    first, second = gpu_pod("first", 300, "n"), gpu_pod("second", 600, "n")

    writer.add_pod(first)
    assert ledger.assign(first, 0, lambda free: (1,))
    assert ledger.free(table, ALL).tolist() == [[1000, 700]]
    writer.add_pod(second)
    assert ledger.assign(second, 0, lambda free: (0,))
    assert ledger.free(table, ALL).tolist() == [[400, 700]]
    assert ledger.assign(first, 0, lambda free: (0,))  # it has one already
    assert ledger.gpus_of(first) == (1,)

    writer.remove_pod(second)
    assert ledger.free(table, ALL).tolist() == [[1000, 700]]
    assert ledger.gpus_of(second) == ()


def test_room_is_what_is_free_without_the_pod() -> None:
    table = make_table(gpu_node("n", 1))
    writer, ledger = TableWriter(table), GpuLedger(table)
    pod = gpu_pod("p", 800, "n")
    writer.add_pod(pod)
    asked: list[list[int]] = []

    def choose(free: Any) -> tuple[int, ...]:
        asked.append(list(free))
        return ()

    assert not ledger.assign(pod, 0, choose)
    assert asked == [[1000]]


def test_released_pod_that_left_is_forgotten() -> None:
    table = make_table(gpu_node("n", 2))
    writer, ledger = TableWriter(table), GpuLedger(table)
    pod = gpu_pod("p", 300, "n")
    writer.add_pod(pod)
    ledger.assign(pod, 0, lambda free: (1,))

    ledger.release(pod)
    writer.remove_pod(pod)

    assert ledger.free(table, ALL).tolist() == [[1000, 1000]]
    assert ledger.gpus_of(pod) == ()


def test_pod_that_moves_to_another_node_is_counted_there_alone() -> None:
    table = make_table(gpu_node("a", 2), gpu_node("b", 2))
    writer, ledger = TableWriter(table), GpuLedger(table)
    pod = gpu_pod("p", 300, "b")
    writer.add_pod(pod)
    ledger.assign(pod, 1, lambda free: (1,))
    assert ledger.free(table, ALL).tolist() == [[1000, 1000], [1000, 700]]

    writer.remove_pod(pod)
    writer.add_pod(gpu_pod("p", 300, "a"))  # the same uid; its GPU was one of the other node

    assert ledger.free(table, ALL).tolist() == [[700, 1000], [1000, 1000]]
    assert ledger.gpus_of(pod) == (0,)


def test_new_nodes_and_more_gpus_get_room() -> None:
    table = make_table(gpu_node("a", 1))
    writer, ledger = TableWriter(table), GpuLedger(table)
    assert ledger.free(table, ALL).tolist() == [[1000]]

    writer.set_node(gpu_node("b", 3))
    writer.set_node(gpu_node("a", 2))

    assert ledger.free(table, ALL).tolist() == [[1000, 1000, 0], [1000, 1000, 1000]]
    writer.set_node(gpu_node("b", 1))
    assert ledger.free(table, ALL).tolist() == [[1000, 1000, 0], [1000, 0, 0]]


def test_what_if_counts_its_own_pods_and_leaves_the_account_alone() -> None:
    table = make_table(gpu_node("n", 2))
    writer, ledger = TableWriter(table), GpuLedger(table)
    pod = gpu_pod("p", 300, "n")
    writer.add_pod(pod)
    ledger.assign(pod, 0, lambda free: (1,))

    what_if = WhatIf(table, 0)
    what_if.add_pod(gpu_pod("q", 500))
    copy = what_if.node.table
    assert ledger.free(copy, ALL).tolist() == [[1000, 200]]  # beside p, the fullest with room
    what_if.remove_pod(pod)
    assert ledger.free(copy, ALL).tolist() == [[500, 1000]]

    assert ledger.free(table, ALL).tolist() == [[1000, 700]]
    assert ledger.gpus_of(gpu_pod("q", 500)) == ()


def test_rows_are_those_asked_for() -> None:
    table = make_table(*[gpu_node(f"n{i}", i) for i in range(4)])
    ledger = GpuLedger(table)

    found = ledger.free(table, np.array([3, 1]))

    assert found.tolist() == [[1000, 1000, 1000], [1000, 0, 0]]


def test_policies_of_one_scheduler_share_the_account() -> None:
    handle = make_handle(make_table(gpu_node("n", 1)))

    assert GpuLedger.of(handle) is GpuLedger.of(handle)
    ledger = GpuLedger.of(handle)
    handle.table = make_table(gpu_node("n", 1))
    assert GpuLedger.of(handle) is not ledger
