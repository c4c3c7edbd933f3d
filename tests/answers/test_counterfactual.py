"""Counterfactuals: the change reported for each kind of rejection helps, and no part of it is
superfluous."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.answers import explain, find_counterfactual
from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.config.load import parse_config
from bayplan.config.types import Extender, SchedulerConfiguration
from bayplan.framework import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Status,
    failure,
    unschedulable,
)
from bayplan.testing.extenders import FakeExtender
from tests.answers.changed_cluster import (
    HOST,
    REQUIRED,
    TAINTS,
    WEB,
    ZONE,
    check,
    make,
    make_view,
    spread,
    web_pod,
    zone_node,
)


def claim(**fields: Any) -> dict[str, Any]:
    metadata = {"namespace": "default", **fields.pop("metadata", {})}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return make(
        "PersistentVolumeClaim",
        "c",
        metadata=metadata,
        spec=spec | fields.pop("spec", {}),
        **fields,
    )


def with_claim(**spec: Any) -> dict[str, Any]:
    return web_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}], **spec)


BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
FAR_VOLUME = make(
    "PersistentVolume",
    "pv",
    spec={
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": "c", "uid": "c"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["far"]}]}
                ]
            }
        },
    },
)
CLAIM_CLASS = make("StorageClass", "slow", "storage.k8s.io/v1", provisioner="x")


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param(
            [zone_node(), web_pod("other", "2", "n"), web_pod(cpu="3")],
            ["delete Pod/other "],
            id="resources that another pod holds",
        ),
        pytest.param(
            [zone_node(cpu="2"), web_pod(cpu="3")],
            ["replace Node/n /status/allocatable"],
            id="a node too small even when empty",
        ),
        pytest.param(
            [make("Node", "n", status={"capacity": {"cpu": "2", "pods": "9"}}), web_pod(cpu="3")],
            ["replace Node/n /status/allocatable"],
            id="a node with capacity but without allocatable",
        ),
        pytest.param(
            [zone_node(pods="1"), web_pod("other", "1", "n"), web_pod()],
            ["delete Pod/other "],
            id="too many pods",
        ),
        pytest.param(
            [zone_node(taints=TAINTS), web_pod()],
            ["add Pod/p /spec/tolerations/-", "add Pod/p /spec/tolerations/-"],
            id="taints, each to be tolerated",
        ),
        pytest.param(
            [zone_node(unschedulable=True), web_pod()],
            ["remove Node/n /spec/unschedulable"],
            id="a cordoned node",
        ),
        pytest.param(
            [zone_node(), web_pod(nodeSelector={"disk": "ssd"})],
            ["add Node/n /metadata/labels/disk"],
            id="a label that the node lacks",
        ),
        pytest.param(
            [zone_node(), web_pod(nodeSelector={ZONE: "b"})],
            ["replace Pod/p /spec/nodeSelector/topology.kubernetes.io~1zone"],
            id="the selector changes, not the node's zone",
        ),
        pytest.param(
            [zone_node(), web_pod("other", port=80, node="n"), web_pod(port=80)],
            ["delete Pod/other "],
            id="a host port",
        ),
        pytest.param(
            [zone_node(), web_pod(schedulingGates=[{"name": "a"}, {"name": "b"}])],
            ["remove Pod/p /spec/schedulingGates/0", "remove Pod/p /spec/schedulingGates/1"],
            id="scheduling gates",
        ),
        pytest.param(
            [
                zone_node(),
                zone_node("m", "b"),
                web_pod("w1", node="n"),
                web_pod("w2", node="n"),
                web_pod(topologySpreadConstraints=spread()),
            ],
            ["replace Pod/p /spec/topologySpreadConstraints/0/maxSkew"],
            id="the smallest sufficient skew",
        ),
        pytest.param(
            [
                zone_node(),
                zone_node("m", "b", labels={"rack": "1"}),
                web_pod(topologySpreadConstraints=spread(topologyKey="rack")),
            ],
            ["add Node/n /metadata/labels/rack"],
            id="a topology key that the node lacks",
        ),
        pytest.param(
            [
                zone_node(),
                web_pod("other", node="n"),
                web_pod(
                    affinity={
                        "podAntiAffinity": {REQUIRED: [{"labelSelector": WEB, "topologyKey": HOST}]}
                    }
                ),
            ],
            ["delete Pod/other "],
            id="a pod that its anti-affinity selects",
        ),
        pytest.param(
            [
                zone_node(),
                web_pod(
                    "other",
                    node="n",
                    affinity={
                        "podAntiAffinity": {REQUIRED: [{"labelSelector": WEB, "topologyKey": HOST}]}
                    },
                ),
                web_pod(),
            ],
            ["delete Pod/other "],
            id="a pod whose anti-affinity selects it",
        ),
        pytest.param(
            [
                zone_node(),
                web_pod(
                    labels={},
                    affinity={
                        "podAffinity": {REQUIRED: [{"labelSelector": WEB, "topologyKey": ZONE}]}
                    },
                ),
            ],
            ["create Pod/p-partner "],
            id="a pod that its affinity selects",
        ),
        pytest.param(
            [zone_node(), with_claim()],
            ["create PersistentVolume/default-c-on-n ", "create PersistentVolumeClaim/c "],
            id="a missing claim",
        ),
        pytest.param(
            [
                zone_node(),
                CLAIM_CLASS | {"volumeBindingMode": "Immediate"},
                claim(spec={"storageClassName": "slow"}),
                with_claim(),
            ],
            [
                "create PersistentVolume/default-c-on-n ",
                "add PersistentVolumeClaim/c /spec/volumeName",
                "add PersistentVolumeClaim/c /metadata/annotations/pv.kubernetes.io~1bind-completed",
            ],
            id="an unbound claim",
        ),
        pytest.param(
            [zone_node(), claim(spec={"storageClassName": "fast"}), with_claim()],
            ["create StorageClass/fast "],
            id="a missing class of storage",
        ),
        pytest.param(
            [
                zone_node(),
                FAR_VOLUME,
                claim(spec={"volumeName": "pv"}, metadata={"annotations": BOUND}),
                with_claim(),
            ],
            ["remove PersistentVolume/pv /spec/nodeAffinity"],
            id="a volume in another zone",
        ),
        pytest.param(
            [
                zone_node(),
                web_pod("rival", "3", priority=9, status={"nominatedNodeName": "n"}),
                web_pod(cpu="2"),
            ],
            ["remove Pod/rival /status/nominatedNodeName"],
            id="resources kept for a nominated pod",
        ),
        pytest.param(
            [
                zone_node(taints=TAINTS[:1], unschedulable=True),
                web_pod("other", "2", "n"),
                web_pod(cpu="3", nodeSelector={"disk": "ssd"}),
            ],
            [
                "remove Node/n /spec/unschedulable",
                "add Pod/p /spec/tolerations/-",
                "add Node/n /metadata/labels/disk",
                "delete Pod/other ",
            ],
            id="everything at once",
        ),
    ],
)
def test_the_reported_change(manifests: list[dict[str, Any]], expected: list[str]) -> None:
    view, pod = make_view(*manifests)

    found = find_counterfactual(view, pod, "n")

    named = [f"{c.kind} {c.object.kind}/{c.object.name} {c.path}" for c in found.changes]
    assert sorted(named) == sorted(expected)
    check(found, manifests, pod)


def test_a_missing_class_leaves_no_other_remedy() -> None:
    view, pod = make_view(zone_node(), claim(spec={"storageClassName": "fast"}), with_claim())

    found = find_counterfactual(view, pod, "n")

    assert [step.alternatives for step in found.steps] == [[]]


def test_a_claim_of_another_class_than_its_volume_is_created_anew() -> None:
    asked = claim(spec={"volumeName": "pv", "storageClassName": "slow"})
    view, pod = make_view(zone_node(), CLAIM_CLASS, FAR_VOLUME, asked, with_claim())

    found = find_counterfactual(view, pod, "n")

    wanted = 'create it anew with storageClassName "", which the volume has, instead of "slow"'
    assert wanted in "".join(change.text for change in found.changes)


def test_the_skew_is_the_smallest_that_helps() -> None:
    webs = [web_pod(f"w{i}", node="n", cpu="100m") for i in range(5)]
    view, pod = make_view(
        zone_node(), zone_node("m", "b"), *webs, web_pod(topologySpreadConstraints=spread())
    )

    [change] = find_counterfactual(view, pod, "n").changes

    assert (change.from_, change.to) == (1, 6)


def test_the_removed_pods_are_as_few_and_as_small_as_possible() -> None:
    others = [web_pod(f"o{i}", f"{size}m", "n") for i, size in enumerate((300, 900, 700, 500))]
    view, pod = make_view(zone_node(), *others, web_pod(cpu="2200m"))

    found = find_counterfactual(view, pod, "n")

    assert [change.object.name for change in found.changes] == ["o2"]


class Grumpy(FilterPlugin):
    """Rejects every node for an unknown reason."""

    name = "Grumpy"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unschedulable("not today")


class Failing(FilterPlugin):
    """Fails on the node called m."""

    name = "Failing"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if node.name == "m":
            return failure("no idea")
        return SUCCESS


def test_a_plugin_without_remedies_is_named_and_the_others_are_handled() -> None:
    view, pod = make_view(zone_node(taints=TAINTS[:1]), web_pod(), plugins=(Grumpy,))

    found = find_counterfactual(view, pod, "n")

    assert not found.fits
    assert [(r.plugin, r.reasons) for r in found.unknown] == [("Grumpy", ["not today"])]
    assert [change.path for change in found.changes] == ["/spec/tolerations/-"]


def test_a_plugin_that_fails_on_another_node_fails_the_pod_on_this_one() -> None:
    view, pod = make_view(zone_node(), zone_node("m"), web_pod(), plugins=(Failing,))

    found = find_counterfactual(view, pod, "n")

    assert [refusal.plugin for refusal in found.unknown] == ["Failing"]


def test_an_extender_that_refuses_a_node_is_named() -> None:
    service = FakeExtender(
        filter=lambda asked: {"nodenames": [], "failedNodes": {"n": "not this one"}}
    )
    settings = Extender(url_prefix="http://e", filter_verb="filter", node_cache_capable=True)
    view, pod = make_view(
        zone_node(),
        web_pod(),
        config=replace(default_config(), extenders=(settings,)),
        extender_transport=lambda config: service,
    )

    told = explain(view, pod)

    [group] = told.refused
    assert [(r.plugin, r.reasons) for r in group.refusals] == [
        ("Extender http://e", ["not this one"])
    ]
    assert [r.reasons for r in told.counterfactuals[0].unknown] == [["not this one"]]


def test_a_gang_member_names_the_plugin_that_may_hold_it_and_its_condition() -> None:
    gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    group = make(
        "PodGroup", "g", "scheduling.k8s.io/v1alpha2", metadata={"namespace": "default"}, spec=gang
    )
    member = web_pod(schedulingGroup={"podGroupName": "g"})
    config = enable_gangs()
    view, pod = make_view(zone_node(), group, member, config=config)

    told = explain(view, pod)

    assert told.gate is not None
    assert told.gate.plugin == "GangScheduling"
    assert [change.path for change in told.counterfactuals[0].changes] == [
        "/spec/schedulingPolicy/gang/minCount"
    ]
    assert "GangScheduling may hold the pod once it has a node (Permit)" in told.remarks


def enable_gangs() -> SchedulerConfiguration:
    """The configuration of a cluster with gangs."""
    plugins = {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return parse_config(tree, "config")


def test_questions_have_no_side_effects() -> None:
    view, pod = make_view(
        zone_node(taints=TAINTS), web_pod("other", "3", "n"), web_pod(cpu="2", priority=5)
    )
    first = explain(view, pod).to_dict()

    assert explain(view, pod).to_dict() == first


def test_the_nearest_node_comes_first() -> None:
    view, pod = make_view(
        zone_node("far", taints=TAINTS, unschedulable=True),
        zone_node("near", taints=TAINTS[:1]),
        web_pod(),
    )

    told = explain(view, pod)

    assert [found.node for found in told.counterfactuals] == ["near", "far"]
    assert [group.nodes for group in told.refused] == [["near"], ["far"]]


def test_a_placed_pod_that_its_node_would_reject_today_gets_a_counterfactual() -> None:
    view, pod = make_view(zone_node(unschedulable=True), zone_node("m"), web_pod(node="n"))

    told = explain(view, pod)

    assert told.remarks[0].startswith("today n would refuse the pod")
    [found] = told.counterfactuals
    assert [change.path for change in found.changes] == ["/spec/unschedulable"]


def test_the_changes_reported_for_the_second_best_node_let_it_win() -> None:
    view, pod = make_view(zone_node(), zone_node("m"), web_pod("o1", "2", "m"), web_pod(labels={}))

    told = explain(view, pod)

    assert told.choice is not None
    assert (told.choice.node, told.choice.runner_up) == ("n", "m")
    assert told.runner_up is not None
    assert told.runner_up.gap == told.choice.margin > 0
    last = told.runner_up.ways[-1]
    assert [change.text for change in last.changes] == ["cordon n"]


def test_changes_that_only_draw_level_are_not_reported() -> None:
    view, pod = make_view(zone_node("m"), zone_node(), web_pod("o1", "2", "m"), web_pod(labels={}))

    told = explain(view, pod)

    assert told.runner_up is not None
    reported = [change.text for way in told.runner_up.ways for change in way.changes]
    assert not [text for text in reported if "pod default/o1" in text], "m is as empty as n then"


def test_the_second_best_node_wins_with_the_scores_of_extenders() -> None:
    def prefer_n(asked: Any) -> Any:
        return [{"Host": name, "Score": 10 * (name == "n")} for name in asked["NodeNames"]]

    settings = Extender(
        url_prefix="http://e", prioritize_verb="prioritize", weight=9, node_cache_capable=True
    )
    view, pod = make_view(
        zone_node(),
        zone_node("m"),
        web_pod("o1", "2", "n"),
        web_pod("o2", "1", "m"),
        web_pod(labels={}),
        config=replace(default_config(), extenders=(settings,)),
        extender_transport=lambda config: FakeExtender(prioritize=prefer_n),
    )

    told = explain(view, pod)

    assert told.choice is not None
    assert (told.choice.node, told.choice.runner_up) == ("n", "m")
    assert told.runner_up is not None
    reported = [change.text for way in told.runner_up.ways for change in way.changes]
    assert reported == ["cordon n"], "an emptier m is not enough"
