"""NodeResourcesFit, Filter: is there room on the node?"""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.config.plugin_args import NodeResourcesFitArgs
from bayplan.framework import SUCCESS, CycleState, Status, unresolvable, unschedulable
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance, check_rows_agree

GPU, NIC, PAGES = "example.com/gpu", "other.org/nic", "hugepages-2Mi"


def judged(pod: Pod, *others: Pod, plugin: NodeResourcesFit | None = None, **node: Any) -> Status:
    """The status of a node with 4 cpu, 8Gi of memory, storage and devices."""
    given = {"cpu": "4", "memory": "8Gi", "pods": 3, **node}
    extended: dict[str, int | str] = {"ephemeral-storage": "10Gi", GPU: 2, NIC: 1, PAGES: "4Mi"}
    table = make_table(make_node("a", extended=extended, **given), pods=others)
    fit, state = plugin or NodeResourcesFit(), CycleState()
    fit.handle = make_handle()
    assert fit.pre_filter(state, pod, table) == SUCCESS
    check_rows_agree(fit, pod, table, state)
    return fit.filter_rows(state, pod, table, ALL).status(0)


def here(name: str, **fields: Any) -> Pod:
    return make_pod(name, node_name="a", **fields)


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(make_pod(cpu="4", memory="8Gi"), [], SUCCESS, id="all there is"),
        pytest.param(
            make_pod(cpu="3001m"), [here("q", cpu="1")], unschedulable("Insufficient cpu"), id="cpu"
        ),
        pytest.param(
            make_pod(cpu="4001m"), [], unresolvable("Insufficient cpu"), id="more than the node"
        ),
        pytest.param(
            make_pod(cpu="4000100u"), [], unresolvable("Insufficient cpu"), id="cpu is rounded up"
        ),
        pytest.param(
            make_pod(memory="5Gi"),
            [here("q", memory="4Gi")],
            unschedulable("Insufficient memory"),
            id="memory",
        ),
        pytest.param(
            make_pod(requests={"ephemeral-storage": "8Gi"}),
            [here("q", requests={"ephemeral-storage": "4Gi"})],
            unschedulable("Insufficient ephemeral-storage"),
            id="storage",
        ),
        pytest.param(
            make_pod(requests={GPU: 2}),
            [here("q", requests={GPU: 1})],
            unschedulable(f"Insufficient {GPU}"),
            id="an extended resource",
        ),
        pytest.param(
            make_pod(requests={"example.com/fpga": 1}),
            [],
            unresolvable("Insufficient example.com/fpga"),
            id="a resource the node has not",
        ),
        pytest.param(
            make_pod(requests={PAGES: "4Mi"}),
            [here("q", requests={PAGES: "2Mi"})],
            unschedulable(f"Insufficient {PAGES}"),
            id="huge pages",
        ),
        pytest.param(
            make_pod(requests={"example.com/fpga": 0}), [], SUCCESS, id="nothing of a resource"
        ),
        pytest.param(
            make_pod(cpu="2", memory="5Gi", requests={GPU: 1}),
            [here("q", cpu="3", memory="5Gi")],
            unschedulable("Insufficient cpu", "Insufficient memory"),
            id="everything that is short is named",
        ),
        pytest.param(
            make_pod(cpu="2", memory="9Gi"),
            [here("q", cpu="3")],
            unresolvable("Insufficient cpu", "Insufficient memory"),
            id="one that is hopeless makes the whole hopeless",
        ),
        pytest.param(
            make_pod(),
            [here("q"), here("r"), here("s")],
            unschedulable("Too many pods"),
            id="as many pods as are allowed",
        ),
        pytest.param(make_pod(), [here("q"), here("r")], SUCCESS, id="one pod more is allowed"),
        pytest.param(
            make_pod(cpu="5"),
            [here("q"), here("r"), here("s")],
            unresolvable("Too many pods", "Insufficient cpu"),
            id="too many pods, and no hope for cpu either",
        ),
        pytest.param(
            make_pod(),
            [here("q", cpu="9", memory="99Gi")],
            SUCCESS,
            id="a pod without requests fits an overfull node",
        ),
        pytest.param(
            make_pod(memory="1Gi"),
            [here("q", cpu="9")],
            SUCCESS,
            id="only what the pod asks for is looked at",
        ),
        pytest.param(
            make_pod(),
            [here("q"), here("r")],
            SUCCESS,
            id="the defaults for scores do not count here",
        ),
    ],
)
def test_filter(pod: Pod, others: list[Pod], expected: Status) -> None:
    assert judged(pod, *others) == expected


def test_a_node_that_allows_no_pods() -> None:
    assert judged(make_pod(), pods=0) == unschedulable("Too many pods")


def test_the_largest_init_container_counts() -> None:
    large = {"name": "i", "resources": {"requests": {"cpu": "5"}}}

    status = judged(make_pod(cpu="1", spec={"initContainers": [large]}))

    assert status == unresolvable("Insufficient cpu")


def test_overhead_counts() -> None:
    status = judged(make_pod(cpu="4", spec={"overhead": {"cpu": "1m"}}))

    assert status == unresolvable("Insufficient cpu")


@pytest.mark.parametrize(
    ("resources", "groups", "expected"),
    [
        pytest.param([], [], ["Insufficient cpu", GPU, PAGES, NIC], id="nothing"),
        pytest.param([GPU], [], ["Insufficient cpu", PAGES, NIC], id="a resource by name"),
        pytest.param([], ["other.org"], ["Insufficient cpu", GPU, PAGES], id="by its group"),
        pytest.param([], ["other"], ["Insufficient cpu", GPU, PAGES, NIC], id="part of a group"),
        pytest.param(
            ["cpu", PAGES],
            ["cpu"],
            ["Insufficient cpu", GPU, PAGES, NIC],
            id="only extended resources can be ignored",
        ),
        pytest.param([NIC], ["example.com"], ["Insufficient cpu", PAGES], id="both ways"),
    ],
)
def test_ignored_resources(resources: list[str], groups: list[str], expected: list[str]) -> None:
    args = NodeResourcesFitArgs(
        ignored_resources=tuple(resources), ignored_resource_groups=tuple(groups)
    )
    plugin = NodeResourcesFit.from_args(args, make_handle())

    status = judged(make_pod(cpu="9", requests={GPU: 9, NIC: 9, PAGES: "8Mi"}), plugin=plugin)

    assert {text.removeprefix("Insufficient ") for text in status.reasons} == {
        text.removeprefix("Insufficient ") for text in expected
    }


def test_a_pod_whose_only_lack_is_ignored_fits() -> None:
    plugin = NodeResourcesFit(ignored_groups=["example.com"])

    assert judged(make_pod(requests={GPU: 9}), plugin=plugin) == SUCCESS


def test_conformance() -> None:
    pods = [
        make_pod("p"),
        make_pod("q", cpu="1", memory="1Gi"),
        make_pod("r", cpu="9", requests={GPU: 1}),
    ]
    table = make_table(
        make_node("a", extended={GPU: 1}),
        make_node("b", pods=1),
        make_node("c", memory=None),
        pods=[
            make_pod("x", node_name="a", cpu="3500m", requests={GPU: 1}),
            make_pod("y", node_name="b"),
        ],
    )

    check_conformance(NodeResourcesFit, pods, table)
