"""Hints of the plugins that look at other pods: PodTopologySpread, InterPodAffinity, GangScheduling."""

from typing import Any

import pytest

from bayplan.errors import InputError
from bayplan.framework import Hint
from bayplan.plugins.gang_scheduling.plugin import GangScheduling
from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.testing.builders import ask_plugin, make_handle, make_node, make_object, make_pod

QUEUE, SKIP, NEVER = Hint.QUEUE, Hint.SKIP, None
WEB = {"matchLabels": {"app": "web"}}


def constraint(key: str = "zone", **fields: Any) -> dict[str, Any]:
    hard = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {**hard, "labelSelector": WEB, **fields}


def spread(*objects: Any, **args: Any) -> PodTopologySpread:
    plugin = PodTopologySpread(**args)
    plugin.handle = make_handle(objects=objects)
    return plugin


def other(app: str = "web", **fields: Any) -> Any:
    """Add another pod to a node."""
    return make_pod("other", **{"labels": {"app": app}, "node_name": "a", **fields})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, other(), QUEUE, id="one of them comes"),
        pytest.param(other(), None, QUEUE, id="one of them leaves"),
        pytest.param(None, other("db"), SKIP, id="a pod comes that is not spread with it"),
        pytest.param(None, other(node_name=""), SKIP, id="it comes, but to no node"),
        pytest.param(
            None, other(node_name="", nominated_node_name="a"), QUEUE, id="it is nominated"
        ),
        pytest.param(None, other(namespace="shop"), SKIP, id="it comes to another namespace"),
        pytest.param(other(), other("db"), QUEUE, id="it is one of them no more"),
        pytest.param(other("db"), other(), QUEUE, id="it becomes one of them"),
        pytest.param(other(), other(), SKIP, id="it stays one of them"),
        pytest.param(
            other(), other(tolerations=["x"]), SKIP, id="tolerations of others do not matter"
        ),
    ],
)
def test_spread_after_pod_change(old: Any, new: Any, expected: Hint) -> None:
    action = "Add" if old is None else "Delete" if new is None else "UpdatePodLabel"
    pod = make_pod("waiting", spread=[constraint(nodeTaintsPolicy="Honor")])

    assert ask_plugin(spread(), f"AssignedPod/{action}", pod, old, new) is expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param("Honor", QUEUE, id="nodes with the taint count now"),
        pytest.param("Ignore", SKIP, id="nodes with the taint counted before"),
    ],
)
def test_spread_after_own_toleration_change(policy: str, expected: Hint) -> None:
    before, after = (
        make_pod("waiting", spread=[constraint(nodeTaintsPolicy=policy)], tolerations=tolerations)
        for tolerations in ([], ["gpu"])
    )
    event = "UnschedulablePod/UpdatePodToleration"

    assert ask_plugin(spread(), event, after, before, after) is expected


def test_spread_asks_only_hard_constraints() -> None:
    soft = make_pod("waiting", spread=[constraint(whenUnsatisfiable="ScheduleAnyway")])

    assert ask_plugin(spread(), "AssignedPod/Add", soft, None, other()) is SKIP
    assert ask_plugin(spread(), "Node/Add", soft, None, make_node()) is QUEUE, (
        "it has all of no keys"
    )


def test_spread_takes_the_value_of_match_label_keys_from_the_pod() -> None:
    keys = constraint(matchLabelKeys=["rev"])
    pod = make_pod("waiting", labels={"rev": "2"}, spread=[keys])
    same, older = (other(labels={"app": "web", "rev": rev}) for rev in "21")

    assert ask_plugin(spread(), "AssignedPod/Add", pod, None, same) is QUEUE
    assert ask_plugin(spread(), "AssignedPod/Add", pod, None, older) is SKIP


def test_spread_by_the_constraints_of_the_profile() -> None:
    given = make_pod("waiting", spread=[constraint()]).spec.topology_spread_constraints or ()
    service = make_object("Service", "web", namespace="default", spec={"selector": {"app": "web"}})
    plugin = spread(service, default_constraints=given, defaulting_type="List")
    pod = make_pod("waiting", labels={"app": "web"})

    assert ask_plugin(plugin, "AssignedPod/Add", pod, None, other()) is QUEUE
    assert ask_plugin(plugin, "AssignedPod/Add", pod, None, other("db")) is SKIP
    assert ask_plugin(plugin, "Node/Add", pod, None, make_node()) is SKIP, "it has no zone"


def test_spread_with_a_selector_that_cannot_be_used_is_an_error() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "In"}]}
    pod = make_pod("waiting", spread=[constraint(labelSelector=broken)])

    with pytest.raises(InputError, match="labelSelector"):
        ask_plugin(spread(), "AssignedPod/Add", pod, None, other())
    assert ask_plugin(spread(), "AssignedPod/Add", pod, None, other(node_name="")) is SKIP


BOTH = {"zone": "a", "rack": "1"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, BOTH, QUEUE, id="comes with all keys"),
        pytest.param(None, {"zone": "a"}, SKIP, id="comes with one key of two"),
        pytest.param(BOTH, None, QUEUE, id="leaves with all keys"),
        pytest.param({"zone": "a"}, None, SKIP, id="leaves with one key of two"),
        pytest.param({"zone": "a"}, BOTH, QUEUE, id="has all keys now"),
        pytest.param(BOTH, {"zone": "a"}, QUEUE, id="has all keys no more"),
        pytest.param(BOTH, {**BOTH, "rack": "2"}, QUEUE, id="moves to another domain"),
        pytest.param(BOTH, {**BOTH, "x": "y"}, SKIP, id="stays in its domains"),
        pytest.param({"zone": "a"}, {"zone": "b"}, SKIP, id="moves, but lacks a key all along"),
    ],
)
def test_spread_after_node_change(
    old: dict[str, str] | None, new: dict[str, str] | None, expected: Hint
) -> None:
    action = "Add" if old is None else "Delete" if new is None else "UpdateNodeLabel"
    pod = make_pod("waiting", spread=[constraint(), constraint("rack")])
    before, after = (None if labels is None else make_node(labels=labels) for labels in (old, new))

    assert ask_plugin(spread(), f"Node/{action}", pod, before, after) is expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"zone": "a"}, QUEUE, id="of a node that counts"),
        pytest.param({}, SKIP, id="of a node that does not count"),
    ],
)
def test_spread_after_taint_change(labels: dict[str, str], expected: Hint) -> None:
    pod = make_pod("waiting", spread=[constraint()])
    before, after = make_node(labels=labels), make_node(labels=labels, taints=["x:NoSchedule"])

    assert ask_plugin(spread(), "Node/UpdateNodeTaint", pod, before, after) is expected


def term(app: str = "web", key: str = "zone", **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def anti_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


NEEDS = affinity(term())
AVOIDS = anti_affinity(term())
TIER = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"tier": "front"}}}


@pytest.mark.parametrize(
    ("wishes", "old", "new", "expected"),
    [
        pytest.param(NEEDS, None, other(), QUEUE, id="a needed pod comes"),
        pytest.param(NEEDS, None, other("db"), SKIP, id="a pod comes that is not needed"),
        pytest.param(NEEDS, None, other(node_name=""), SKIP, id="it comes to no node"),
        pytest.param(NEEDS, None, other(namespace="shop"), SKIP, id="in another namespace"),
        pytest.param(AVOIDS, None, other(), SKIP, id="an avoided pod comes"),
        pytest.param(AVOIDS, other(), None, QUEUE, id="an avoided pod leaves"),
        pytest.param(NEEDS, other(), None, SKIP, id="a needed pod leaves"),
        pytest.param({}, other(), None, SKIP, id="a pod leaves that no term selects"),
        pytest.param(
            {}, other(affinity=anti_affinity(term("waiting"))), None, QUEUE, id="it avoided the pod"
        ),
        pytest.param(
            {},
            other(affinity=anti_affinity(term("waiting"), TIER)),
            None,
            SKIP,
            id="only one of its terms avoided the pod: all must",
        ),
        pytest.param(NEEDS, other("db"), other(), QUEUE, id="a pod becomes a needed one"),
        pytest.param(NEEDS, other(), other(), SKIP, id="a pod stays a needed one"),
        pytest.param(AVOIDS, other(), other("db"), QUEUE, id="a pod is avoided no more"),
        pytest.param(AVOIDS, other("db"), other(), SKIP, id="a pod becomes an avoided one"),
        pytest.param(
            affinity(term(), TIER), None, other(), SKIP, id="matches one of two needs: all must"
        ),
        pytest.param(
            anti_affinity(term(), TIER), other(), None, SKIP, id="one of two it avoids: all must"
        ),
    ],
)
def test_affinity_after_pod_change(
    wishes: dict[str, Any], old: Any, new: Any, expected: Hint
) -> None:
    action = "Add" if old is None else "Delete" if new is None else "UpdatePodLabel"
    pod = make_pod("waiting", labels={"app": "waiting"}, affinity=wishes)

    assert ask_plugin(InterPodAffinity(), f"AssignedPod/{action}", pod, old, new) is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"namespaces": ["shop"]}, QUEUE, id="named"),
        pytest.param({"namespaceSelector": {}}, QUEUE, id="every namespace"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"a": "b"}}}, SKIP, id="labels not seen"
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}},
            QUEUE,
            id="a selector that asks for the absence of labels is met by any",
        ),
    ],
)
def test_affinity_in_other_namespaces(fields: dict[str, Any], expected: Hint) -> None:
    pod = make_pod("waiting", affinity=affinity(term(**fields)))
    needed = other(namespace="shop")

    assert ask_plugin(InterPodAffinity(), "AssignedPod/Add", pod, None, needed) is expected


def test_affinity_after_change_of_own_labels() -> None:
    before, after = make_pod("waiting", labels={"a": "1"}), make_pod("waiting")
    event = "UnschedulablePod/UpdatePodLabel"

    assert ask_plugin(InterPodAffinity(), event, after, before, after) is QUEUE


@pytest.mark.parametrize(
    ("wishes", "old", "new", "expected"),
    [
        pytest.param(NEEDS, None, {"zone": "a"}, QUEUE, id="a node comes with the key"),
        pytest.param(NEEDS, None, {}, SKIP, id="a node comes without the key"),
        pytest.param(AVOIDS, None, {}, QUEUE, id="to who avoids, any new node is good"),
        pytest.param({}, None, {"zone": "a"}, SKIP, id="without terms no node helps"),
        pytest.param(NEEDS, {}, {"zone": "a"}, QUEUE, id="gets the key"),
        pytest.param(NEEDS, {"zone": "a"}, {}, SKIP, id="loses the key"),
        pytest.param(NEEDS, {"zone": "a"}, {"zone": "b"}, QUEUE, id="moves"),
        pytest.param(NEEDS, {"zone": "a"}, {"zone": "a"}, SKIP, id="stays"),
        pytest.param(AVOIDS, {}, {"zone": "a"}, SKIP, id="gets the key that is avoided"),
        pytest.param(AVOIDS, {"zone": "a"}, {}, QUEUE, id="loses the key that is avoided"),
        pytest.param(AVOIDS, {"zone": "a"}, {"zone": "b"}, QUEUE, id="moves, for who avoids"),
    ],
)
def test_affinity_after_node_change(
    wishes: dict[str, Any], old: dict[str, str] | None, new: dict[str, str], expected: Hint
) -> None:
    event = "Node/Add" if old is None else "Node/UpdateNodeLabel"
    before = None if old is None else make_node(labels=old)
    pod = make_pod("waiting", affinity=wishes)

    assert ask_plugin(InterPodAffinity(), event, pod, before, make_node(labels=new)) is expected


def test_affinity_with_a_selector_that_cannot_be_used_is_an_error() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "In"}]}
    pod = make_pod("waiting", affinity=anti_affinity(term(labelSelector=broken)))
    plugin = InterPodAffinity()

    with pytest.raises(InputError, match="matchExpressions"):
        ask_plugin(plugin, "AssignedPod/Delete", pod, other())
    with pytest.raises(InputError, match="matchExpressions"):
        ask_plugin(plugin, "Node/Add", pod, None, make_node())
    assert ask_plugin(plugin, "AssignedPod/Delete", pod, other(node_name="")) is SKIP


def member(group: str | None, name: str = "member", namespace: str = "default") -> Any:
    spec = {} if group is None else {"schedulingGroup": {"podGroupName": group}}
    return make_pod(name, namespace=namespace, spec=spec)


@pytest.mark.parametrize(
    ("mine", "added", "expected"),
    [
        pytest.param("g", member("g"), QUEUE, id="of the same group"),
        pytest.param("g", member("h"), SKIP, id="of another group"),
        pytest.param("g", member(None), SKIP, id="of no group"),
        pytest.param(None, member(None), SKIP, id="neither is in a group"),
        pytest.param("g", member("g", namespace="shop"), SKIP, id="of another namespace"),
        pytest.param("g", make_object("PodGroup", "g", namespace="default"), QUEUE, id="the group"),
        pytest.param(
            "g", make_object("PodGroup", "h", namespace="default"), SKIP, id="other group"
        ),
        pytest.param("g", make_object("PodGroup", "g", namespace="shop"), SKIP, id="far group"),
        pytest.param(None, make_object("PodGroup", "g", namespace="default"), SKIP, id="not mine"),
    ],
)
def test_gang_scheduling_after_something_came(mine: str | None, added: Any, expected: Hint) -> None:
    resource = "scheduling.k8s.io/PodGroup" if added.kind == "PodGroup" else "UnschedulablePod"
    pod = member(mine, "waiting")

    assert ask_plugin(GangScheduling(), f"{resource}/Add", pod, None, added) is expected
