"""Counterfactuals of pods that a spread over domains keeps from a node."""

from typing import Any

import pytest

from bayplan.answers import find_counterfactual
from bayplan.answers.account import Counterfactual
from bayplan.answers.remedies.spread import counted_pods
from bayplan.api.pod import TopologySpreadConstraint
from bayplan.api.selectors import LabelSelector
from bayplan.config.load import parse_config
from tests.answers.changed_cluster import (
    HOST,
    WEB,
    ZONE,
    check,
    make,
    make_view,
    spread,
    web_pod,
    zone_node,
)
from tests.rig.conformance.counterfactuals import fits

CONSTRAINTS = "/spec/topologySpreadConstraints"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "99"}
SERVICE = make(
    "Service", "web", metadata={"namespace": "default"}, spec={"selector": {"app": "web"}}
)


def bare_node(name: str = "n", **labels: str) -> dict[str, Any]:
    """A node with these labels only, not even its host name."""
    status = {"capacity": ROOM, "allocatable": ROOM}
    return make("Node", name, metadata={"labels": labels}, spec={}, status=status)


def told(found: Counterfactual) -> list[tuple[str, Any]]:
    return [(f"{c.kind} {c.object.kind}/{c.object.name} {c.path}", c.to) for c in found.changes]


def webs(count: int, node: str) -> list[dict[str, Any]]:
    return [web_pod(f"{node}{i}", "1m", node) for i in range(count)]


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param(
            [bare_node(), web_pod(topologySpreadConstraints=spread(topologyKey=HOST))],
            [("add Node/n /metadata/labels/kubernetes.io~1hostname", "n")],
            id="a node without a host name gets its own name",
        ),
        pytest.param(
            [
                bare_node(),
                zone_node("m", "b", pods="99"),
                *webs(1, "m"),
                web_pod(topologySpreadConstraints=spread()),
            ],
            [("add Node/n /metadata/labels/topology.kubernetes.io~1zone", "b")],
            id="a node without a zone joins one that exists",
        ),
        pytest.param(
            [
                bare_node(),
                zone_node("m", "b"),
                zone_node("l", "c"),
                *webs(1, "m"),
                web_pod(topologySpreadConstraints=spread()),
            ],
            [("add Node/n /metadata/labels/topology.kubernetes.io~1zone", "c")],
            id="a node without a zone joins one that is not full",
        ),
        pytest.param(
            [
                zone_node(labels={"rack": "1"}),
                zone_node("m", "b", labels={"rack": "2"}),
                zone_node("l", "b"),
                *webs(1, "n"),
                *webs(1, "l"),
                web_pod(topologySpreadConstraints=[*spread(), *spread(topologyKey="rack")]),
            ],
            [("delete Pod/n0 ", None)],
            id="no skew over racks is enough where only nodes with a rack count for the zones",
        ),
        pytest.param(
            [
                zone_node(pods="99"),
                zone_node("m", "b", taints=[{"key": "x", "effect": "NoSchedule"}]),
                *webs(2, "n"),
                web_pod(topologySpreadConstraints=spread(nodeTaintsPolicy="Honor", minDomains=2)),
            ],
            [(f"replace Pod/p {CONSTRAINTS}/0/maxSkew", 3)],
            id="a constraint that honors taints already gets a larger skew",
        ),
    ],
)
def test_the_reported_change(
    manifests: list[dict[str, Any]], expected: list[tuple[str, Any]]
) -> None:
    view, pod = make_view(*manifests)

    found = find_counterfactual(view, pod, "n")

    assert told(found) == expected
    check(found, manifests, pod)


def goals(found: Counterfactual) -> list[str]:
    [step] = found.steps
    return [step.goal, *(other.goal for other in step.alternatives)]


@pytest.mark.parametrize(
    ("count", "is_offered"),
    [
        pytest.param(64, True, id="as many pods as are tried"),
        pytest.param(65, False, id="one more pod than are tried"),
    ],
)
def test_pods_leave_the_domain_only_where_they_are_not_too_many(
    count: int, is_offered: bool
) -> None:
    view, pod = make_view(
        zone_node(pods="99"),
        zone_node("m", "b"),
        *webs(count, "n"),
        web_pod(topologySpreadConstraints=spread()),
    )

    found = goals(find_counterfactual(view, pod, "n"))

    assert (f"move {count} pods out of {ZONE}=a" in found) is is_offered
    assert f"allow a skew of {count + 1} over {ZONE}" in found


def defaults(when: str) -> Any:
    """A configuration with a default spread over zones."""
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    profile = {"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    return parse_config({**head, "profiles": [profile]}, "config")


def test_a_default_constraint_gives_way_to_a_preference_of_the_pod() -> None:
    config = defaults("DoNotSchedule")
    manifests = [zone_node(), zone_node("m", "b"), SERVICE, *webs(1, "n"), web_pod()]
    view, pod = make_view(*manifests, config=config)

    found = find_counterfactual(view, pod, "n")

    own = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": WEB,
    }
    assert told(found) == [(f"add Pod/p {CONSTRAINTS}", [own])]
    assert goals(found) == [f"the pod's own spread over {ZONE}, as a preference"]
    assert fits(config, manifests, pod, "n", found.changes)
    assert not fits(config, manifests, pod, "n", [])


@pytest.mark.parametrize(
    ("fields", "only", "counted"),
    [
        pytest.param({}, None, [], id="none without a selector"),
        pytest.param(
            {"label_selector": LabelSelector(match_labels={"app": "web"})},
            None,
            [("a", "n0"), ("b", "m0"), ("b", "old")],
            id="all that are selected",
        ),
        pytest.param(
            {"label_selector": LabelSelector(match_labels={"app": "web"})},
            "a",
            [("a", "n0")],
            id="those of one domain",
        ),
        pytest.param(
            {
                "label_selector": LabelSelector(match_labels={"app": "web"}),
                "match_label_keys": ("version", "absent"),
            },
            None,
            [("b", "old")],
            id="those with the pod's value of a label",
        ),
    ],
)
def test_the_pods_that_a_constraint_counts(
    fields: dict[str, Any], only: str | None, counted: list[tuple[str, str]]
) -> None:
    versioned = {"app": "web", "version": "1"}
    view, pod = make_view(
        zone_node(),
        zone_node("m", "b"),
        bare_node("without"),
        *webs(1, "n"),
        *webs(1, "m"),
        *webs(1, "without"),
        web_pod("old", "1m", "m", labels=versioned),
        web_pod("other", "1m", "m", labels={}),
        web_pod(labels=versioned),
    )
    constraint = TopologySpreadConstraint(topology_key=ZONE, **fields)

    found = counted_pods(view, pod, constraint, only)

    assert sorted((domain, other.name) for domain, other in found) == counted
