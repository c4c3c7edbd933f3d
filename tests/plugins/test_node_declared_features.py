"""NodeDeclaredFeatures: pods that need a feature of the kubelet."""

from typing import Any

import pytest

from bayplan.framework import SKIP, SUCCESS, CycleState, unresolvable
from bayplan.plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    NodeDeclaredFeatures,
    features_of,
)
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

HOST_NETWORK_IN_USER_NAMESPACE = {"hostNetwork": True, "hostUsers": False}
RULES = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
RESTARTS_ALL = {"containers": [{"name": "c", **RULES}]}


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        pytest.param({}, set(), id="a plain pod needs nothing"),
        pytest.param({"hostNetwork": True}, set(), id="host network alone"),
        pytest.param({"hostUsers": False}, set(), id="user namespace alone"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="the host's users"),
        pytest.param(
            HOST_NETWORK_IN_USER_NAMESPACE,
            {"UserNamespacesHostNetworkSupport"},
            id="host network in a user namespace",
        ),
        pytest.param(
            RESTARTS_ALL,
            {"RestartAllContainersOnContainerExits"},
            id="a container that restarts all",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", **RULES}]},
            {"RestartAllContainersOnContainerExits"},
            id="an init container that restarts all",
        ),
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]},
            set(),
            id="a rule that restarts one container",
        ),
    ],
)
def test_features_of(spec: dict[str, Any], features: set[str]) -> None:
    pod = make_pod(spec=spec)

    assert features_of(pod.spec) == features
    status = NodeDeclaredFeatures().pre_filter(CycleState(), pod, make_table())
    assert status == (SUCCESS if features else SKIP)


def test_filter_wants_every_feature_declared() -> None:
    both = (RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK)
    table = make_table(
        make_node("both", features=both),
        make_node("more", features=("Other", *both)),
        make_node("one", features=both[:1]),
        make_node("none"),
    )
    pod = make_pod(spec={**HOST_NETWORK_IN_USER_NAMESPACE, **RESTARTS_ALL})

    verdict = NodeDeclaredFeatures().filter_rows(CycleState(), pod, table, ALL)

    no = unresolvable("node(s) didn't match Pod's required features")
    assert [verdict.status(row) for row in range(4)] == [SUCCESS, SUCCESS, no, no]


def test_conformance() -> None:
    table = make_table(
        make_node("a", features=(RESTART_ALL_CONTAINERS,)),
        make_node("b", features=(USER_NAMESPACES_HOST_NETWORK,)),
        make_node("c"),
    )
    specs: tuple[Any, ...] = ({}, HOST_NETWORK_IN_USER_NAMESPACE, RESTARTS_ALL)

    pods = [make_pod(f"p{i}", spec=spec) for i, spec in enumerate(specs)]

    check_conformance(NodeDeclaredFeatures, pods, table)
