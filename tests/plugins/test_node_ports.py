"""NodePorts: host ports that are taken."""

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import SKIP, SUCCESS, CycleState, unschedulable
from bayplan.plugins.node_ports import REASON, NodePorts
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

Ports = list[int | str]


@pytest.mark.parametrize(
    ("wanted", "taken", "fits"),
    [
        pytest.param([80], [], True, id="nothing is taken"),
        pytest.param([80], [80], False, id="the same port"),
        pytest.param([80], [81], True, id="another port"),
        pytest.param(["80/UDP"], ["80/TCP"], True, id="another protocol"),
        pytest.param(["80/UDP"], ["80/UDP"], False, id="the same protocol"),
        pytest.param(["80/TCP"], [80], False, id="no protocol is TCP"),
        pytest.param(["10.0.0.1:80"], ["10.0.0.2:80"], True, id="another address"),
        pytest.param(["10.0.0.1:80"], ["10.0.0.1:80"], False, id="the same address"),
        pytest.param(["0.0.0.0:80"], ["10.0.0.1:80"], False, id="all addresses wanted"),
        pytest.param(["10.0.0.1:80"], [80], False, id="no address takes all addresses"),
        pytest.param(["10.0.0.1:80/UDP"], [80], True, id="all addresses of another protocol"),
        pytest.param([80, 81], [81], False, id="one of several ports"),
    ],
)
def test_filter(wanted: Ports, taken: Ports, fits: bool) -> None:
    pod, state, plugin = make_pod(host_ports=wanted), CycleState(), NodePorts()
    table = make_table(
        make_node("a"), make_node("b"), pods=[make_pod("q", node_name="a", host_ports=taken)]
    )

    assert plugin.pre_filter(state, pod, table) == SUCCESS
    verdict = plugin.filter_rows(state, pod, table, ALL)

    assert verdict.status(0) == (SUCCESS if fits else unschedulable(REASON))
    assert verdict.status(1) == SUCCESS


def test_reason_is_kube_schedulers() -> None:
    assert REASON == "node(s) didn't have free ports for the requested pod ports"


def init_container(**fields: str) -> dict[str, object]:
    return {"initContainers": [{"name": "i", "ports": [{"hostPort": 80}], **fields}]}


@pytest.mark.parametrize(
    ("pod", "skips"),
    [
        pytest.param(make_pod(), True, id="no ports"),
        pytest.param(make_pod(host_ports=[{"containerPort": 80}]), True, id="no host port"),
        pytest.param(make_pod(host_ports=[80]), False, id="a host port"),
        pytest.param(make_pod(spec=init_container()), True, id="an init container ends"),
        pytest.param(
            make_pod(spec=init_container(restartPolicy="Always")), False, id="a sidecar stays"
        ),
    ],
)
def test_pre_filter_skips_pods_without_host_ports(pod: Pod, skips: bool) -> None:
    status = NodePorts().pre_filter(CycleState(), pod, make_table())

    assert status == (SKIP if skips else SUCCESS)


def test_two_pods_may_hold_one_port_at_two_addresses() -> None:
    first = make_pod("q", node_name="a", host_ports=["10.0.0.1:80"])
    second = make_pod("r", node_name="a", host_ports=["10.0.0.2:80"])
    table = make_table(make_node("a"), pods=[first, second])

    def fits(port: str) -> bool:
        pod = make_pod(host_ports=[port])
        return NodePorts().filter_node(CycleState(), pod, table.node_at(0)).is_success

    assert (fits("10.0.0.1:80"), fits("10.0.0.2:80"), fits("10.0.0.3:80")) == (False, False, True)


def test_conformance() -> None:
    pods = [make_pod("p"), make_pod("q", host_ports=[80]), make_pod("r", host_ports=["80/UDP"])]
    table = make_table(
        make_node("a"),
        make_node("b"),
        make_node("c"),
        pods=[
            make_pod("x", node_name="b", host_ports=[80]),
            make_pod("y", node_name="c", host_ports=["80/UDP"]),
        ],
    )

    check_conformance(NodePorts, pods, table)
