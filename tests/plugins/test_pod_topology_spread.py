"""PodTopologySpread: each rule of Filter and Score, and where default constraints come from."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from bayplan.api.affinity import TopologySpreadConstraint
from bayplan.api.node import Node
from bayplan.api.pod import Pod, PodSpec
from bayplan.api.selectors import LabelSelector, Requirement
from bayplan.api.wire.decode import decode_object
from bayplan.config.plugin_args import LIST_DEFAULTING, PodTopologySpreadArgs
from bayplan.framework import SKIP, Code, CycleState, Handle, Status, unresolvable, unschedulable
from bayplan.plugins.pod_topology_spread.plugin import (
    IGNORED,
    REASON,
    REASON_MISSING_LABEL,
    PodTopologySpread,
)
from bayplan.table import ALL, NodeTable
from bayplan.table.writer import TableWriter

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FITS, UNEVEN, LACKING = Status(), unschedulable(REASON), unresolvable(REASON_MISSING_LABEL)
APP_WEB = {"matchLabels": {"app": "web"}}
SOFT = "ScheduleAnyway"


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, "uid": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def make_node(name: str, zone: str | None = None, **spec: Any) -> Node:
    labels = {HOSTNAME: name, **({} if zone is None else {ZONE: zone})}
    node = make("Node", name, metadata={"labels": labels | spec.pop("labels", {})}, spec=spec)
    assert isinstance(node, Node)
    return node


def make_pod(name: str, node: str = "", *constraints: dict[str, Any], **more: Any) -> Pod:
    """A pod labelled app=web; `more` are its metadata and further fields of its spec."""
    metadata = {"labels": {"app": "web"}} | more.pop("metadata", {})
    spec = {"nodeName": node, "topologySpreadConstraints": list(constraints)} | more
    pod = make("Pod", name, metadata=metadata, spec=spec)
    assert isinstance(pod, Pod)
    return pod


def constraint(max_skew: int = 1, key: str = ZONE, **fields: Any) -> dict[str, Any]:
    defaults = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP_WEB}
    return {"maxSkew": max_skew, "topologyKey": key} | defaults | fields


def make_writer(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> TableWriter:
    writer = TableWriter(NodeTable())
    for node in nodes:
        writer.set_node(node)
    for pod in pods:
        writer.add_pod(pod)
    return writer


def webs(counts: dict[str, int], **more: Any) -> list[Pod]:
    """So many pods on each node."""
    return [make_pod(f"{n}-{i}", n, **more) for n, count in counts.items() for i in range(count)]


def filtered(pod: Pod, nodes: list[Node], pods: list[Pod]) -> list[Status] | None:
    """The status of each node; None where the filter is skipped."""
    table, state = make_writer(nodes, pods).table, CycleState()
    if PLUGIN.pre_filter(state, pod, table) == SKIP:
        return None
    verdict = PLUGIN.filter_rows(state, pod, table, ALL)
    return [verdict.status(position) for position in range(len(nodes))]


PLUGIN = PodTopologySpread()  # one for all tests: what it keeps must not leak into the next pod
ABC = [make_node("a", "a"), make_node("b", "b"), make_node("c", "c")]


@pytest.mark.parametrize(
    ("pod", "counts", "expected"),
    [
        pytest.param(
            make_pod("p", "", constraint(1)),
            {"a": 3, "b": 1},
            [UNEVEN, UNEVEN, FITS],
            id="only the emptiest domain keeps the skew",
        ),
        pytest.param(
            make_pod("p", "", constraint(2)), {"a": 3, "b": 1}, [UNEVEN, FITS, FITS], id="skew 2"
        ),
        pytest.param(
            make_pod("p", "", constraint(1), metadata={"labels": {}}),
            {"a": 3, "b": 1},
            [UNEVEN, FITS, FITS],
            id="a pod that does not match itself adds nothing",
        ),
        pytest.param(
            make_pod("p", "", constraint(1, minDomains=4)),
            {"a": 1, "b": 1, "c": 1},
            [UNEVEN] * 3,
            id="with too few domains the minimum is 0",
        ),
        pytest.param(
            make_pod("p", "", constraint(1, minDomains=3)),
            {"a": 1, "b": 1, "c": 1},
            [FITS] * 3,
            id="with enough domains it is not",
        ),
        pytest.param(
            make_pod("p", "", {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": SOFT}),
            {"a": 3},
            None,
            id="soft constraints do not filter",
        ),
        pytest.param(
            make_pod("p", "", constraint(1, labelSelector={})),
            {"a": 3},
            [FITS] * 3,
            id="an empty selector counts no pod",
        ),
        pytest.param(
            make_pod("p", "", constraint(1, labelSelector=None)),
            {"a": 3},
            [FITS] * 3,
            id="without a selector no pod counts",
        ),
        pytest.param(
            make_pod("p", "", constraint(1, HOSTNAME), constraint(1)),
            {"a": 1, "b": 1},
            [UNEVEN, UNEVEN, FITS],
            id="two constraints",
        ),
    ],
)
def test_filter(pod: Pod, counts: dict[str, int], expected: list[Status] | None) -> None:
    assert filtered(pod, ABC, webs(counts)) == expected


def test_filter_counts_neither_other_namespaces_nor_pods_being_deleted() -> None:
    pods = webs({"a": 1}, metadata={"namespace": "other"})
    pods += webs({"b": 1}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    assert filtered(make_pod("p", "", constraint(1)), ABC, pods) == [FITS] * 3


def test_a_node_without_a_key_is_refused_and_counts_for_no_constraint() -> None:
    nodes = [make_node("a", "a"), make_node("b", "b"), make_node("bare")]
    pods = webs({"a": 1, "b": 1, "bare": 3})

    both = filtered(make_pod("p", "", constraint(1, HOSTNAME), constraint(1)), nodes, pods)

    assert both == [FITS, FITS, LACKING], "bare is not the fullest host: it does not count"


def test_the_first_constraint_that_is_broken_gives_the_reason() -> None:
    racked = {"rack": "r"}
    nodes = [make_node("a", "a", labels=racked), make_node("b", "b", labels=racked)]
    nodes += [make_node("x", "a")]
    zone, rack = constraint(1), constraint(9, "rack")

    for order, reason in (((zone, rack), UNEVEN), ((rack, zone), LACKING)):
        statuses = filtered(make_pod("p", "", *order), nodes, webs({"a": 2}))
        assert statuses == [UNEVEN, FITS, reason]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param({}, [FITS, FITS, UNEVEN], id="affinity honoured, taints ignored"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, [UNEVEN, UNEVEN, UNEVEN], id="both ignored"),
        pytest.param({"nodeTaintsPolicy": "Honor"}, [FITS, FITS, FITS], id="both honoured"),
    ],
)
def test_inclusion_policies(policies: dict[str, str], expected: list[Status]) -> None:
    taint = {"key": "k", "effect": "NoExecute"}
    nodes = [
        make_node("a", "a", labels={"pool": "x"}),
        make_node("b", "b", labels={"pool": "x"}),
        make_node("c", "c", labels={"pool": "x"}, taints=[taint]),
        make_node("d", "d"),
    ]
    pod = make_pod("p", "", constraint(1, **policies), nodeSelector={"pool": "x"})

    statuses = filtered(pod, nodes, webs({"a": 1, "b": 1, "c": 2}))

    assert statuses is not None
    assert statuses[:3] == expected


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(APP_WEB, id="not merged yet"),
        pytest.param(
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}],
            },
            id="merged by the API server",
        ),
    ],
)
def test_match_label_keys_narrow_the_selector_to_the_pods_own_values(selector: Any) -> None:
    keyed = constraint(1, labelSelector=selector, matchLabelKeys=["hash", "absent"])
    new = {"labels": {"app": "web", "hash": "1"}}
    old = {"labels": {"app": "web", "hash": "0"}}
    pods = webs({"a": 3}, metadata=old) + webs({"b": 1}, metadata=new)

    assert filtered(make_pod("p", "", keyed, metadata=new), ABC, pods) == [FITS, UNEVEN, FITS]
    if selector is APP_WEB:
        assert filtered(make_pod("p", "", keyed, metadata=old), ABC, pods) == [UNEVEN, FITS, FITS]


def test_eligible_nodes_follow_changes_of_the_nodes() -> None:
    writer, pod = make_writer(ABC, webs({"a": 1, "b": 1})), make_pod("p", "", constraint(1))
    for node, feasible in ((ABC[2], [False, False, True]), (make_node("c"), [True, True, False])):
        writer.set_node(node)
        state = CycleState()
        PLUGIN.pre_filter(state, pod, writer.table)
        assert PLUGIN.filter_rows(state, pod, writer.table, ALL).feasible.tolist() == feasible


def test_pre_filter_fails_on_a_selector_it_cannot_parse() -> None:
    selector = LabelSelector(match_expressions=(Requirement(key="app", operator="Near"),))
    bad = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=selector,
    )
    pod = Pod("p", spec=PodSpec(topology_spread_constraints=(bad,)))

    status = PodTopologySpread().pre_filter(CycleState(), pod, make_writer(ABC).table)

    assert isinstance(status, Status)
    assert status.code is Code.Error


@pytest.mark.parametrize(
    ("removed", "status"),
    [
        pytest.param([make_pod("a-0", "a")], FITS, id="a victim makes room"),
        pytest.param([make_pod("x", "a", metadata={"labels": {}})], UNEVEN, id="not matching"),
        pytest.param(
            [make_pod("x", "a", metadata={"namespace": "other"})], UNEVEN, id="other namespace"
        ),
        pytest.param(
            [make_pod("x", "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            FITS,
            id="one being deleted was not counted, but is taken away",
        ),
    ],
)
def test_remove_pod(removed: list[Pod], status: Status) -> None:
    table, state = make_writer(ABC, webs({"a": 2, "b": 1, "c": 1})).table, CycleState()
    pod, plugin = make_pod("p", "", constraint(1)), PodTopologySpread()
    plugin.pre_filter(state, pod, table)
    node, what_if = table.fork_row(0).node_at(0), state.clone()

    for victim in removed:
        plugin.remove_pod(what_if, pod, victim, node)

    assert plugin.filter_node(what_if, pod, node) == status
    assert plugin.filter_rows(what_if, pod, node.table, ALL).status(0) == status
    assert plugin.filter_rows(state, pod, table, ALL).status(0) == UNEVEN


@pytest.mark.parametrize(
    ("selector", "status"),
    [
        pytest.param(APP_WEB, UNEVEN, id="a matching pod takes the room"),
        pytest.param({}, UNEVEN, id="an empty selector takes the pod in, and matches itself"),
        pytest.param(None, FITS, id="without a selector no pod matches"),
        pytest.param({"matchLabels": {"app": "db"}}, FITS, id="not matching"),
    ],
)
def test_add_pod(selector: Any, status: Status) -> None:
    table, state, plugin = make_writer(ABC).table, CycleState(), PodTopologySpread()
    pod = make_pod("p", "", constraint(1, labelSelector=selector))
    plugin.pre_filter(state, pod, table)
    node = table.fork_row(0).node_at(0)

    plugin.add_pod(state, pod, make_pod("nominated"), node)

    assert plugin.filter_node(state, pod, node) == status


def scored(
    pod: Pod, nodes: list[Node], pods: list[Pod], rows: list[int] | None = None
) -> tuple[list[int], list[int]] | None:
    """Raw and normalised scores of `rows`; None where Score is skipped."""
    table, state = make_writer(nodes, pods).table, CycleState()
    plugin = PodTopologySpread.from_args(None, Handle(table, lister=Objects(WEB_SERVICE)))
    chosen = ALL if rows is None else np.array(rows, dtype=np.int64)
    if plugin.pre_score(state, pod, table, chosen) == SKIP:
        return None
    raw = plugin.score_rows(state, pod, table, chosen)
    assert [plugin.score_node(state, pod, n) for n in table.nodes_at(chosen)] == raw.tolist()
    return raw.tolist(), plugin.normalize(raw).tolist()


class Objects:
    """The objects of a cluster besides nodes and pods."""

    version = 1

    def version_of(self, *kinds: str) -> int:
        return self.version

    def __init__(self, *objects: Any) -> None:
        self.objects = list(objects)

    def list(self, kind: str, namespace: str | None = None) -> list[Any]:
        return [o for o in self.objects if o.kind == kind and namespace in (None, o.namespace)]

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        return next((o for o in self.list(kind, namespace) if o.name == name), None)


WEB_SERVICE = make("Service", "web", spec={"selector": {"app": "web"}})


def test_score_by_zone() -> None:
    pod = make_pod("p", "", constraint(1, whenUnsatisfiable=SOFT))

    assert scored(pod, ABC, webs({"b": 1, "c": 3})) == ([0, 2, 5], [100, 60, 0])


def test_score_with_system_defaults() -> None:
    nodes = [make_node(name, zone) for name, zone in zip("wxyz", "aabb", strict=True)]
    nodes += [make_node("v", "a")]
    pods = webs({"v": 1, "x": 1, "y": 2, "z": 3})

    assert scored(make_pod("p"), nodes, pods, [0, 1, 2, 3]) == (
        [9, 11, 17, 18],
        [100, 88, 55, 50],
    )


def test_nodes_that_lack_a_key_are_ignored_when_the_pod_brings_constraints() -> None:
    nodes = [make_node("a", "a"), make_node("b", "b"), make_node("bare")]
    both = [constraint(1, key, whenUnsatisfiable=SOFT) for key in (ZONE, HOSTNAME)]

    scores = scored(make_pod("p", "", *both), nodes, webs({"b": 1, "bare": 1}))

    assert scores == ([0, 3, IGNORED], [100, 0, 0])


def test_system_defaults_spread_nodes_without_zone_by_hostname() -> None:
    nodes = [make_node("a", "a"), make_node("b", "b"), make_node("bare")]

    scores = scored(make_pod("p"), nodes, webs({"b": 1, "bare": 1}))

    # A missing zone is a domain too: three domains, so ln 5 for both constraints.
    assert scores == ([6, 9, 4], [77, 44, 100])


def test_system_defaults_take_a_missing_zone_for_an_empty_one() -> None:
    nodes = [make_node("a", ""), make_node("b", "b"), make_node("bare")]

    # Two domains, so ln 4 for the zone; the empty one holds the pod on the node without zone.
    assert scored(make_pod("p"), nodes, webs({"bare": 1})) == ([7, 6, 4], [57, 71, 100])


@pytest.mark.parametrize(
    ("pod", "nodes", "skipped"),
    [
        pytest.param(make_pod("p", "", constraint(1)), ABC, True, id="hard constraints only"),
        pytest.param(make_pod("p", metadata={"labels": {}}), ABC, True, id="no service, no owner"),
        pytest.param(make_pod("p"), [], True, id="no nodes"),
        pytest.param(make_pod("p"), ABC, False, id="system defaults"),
    ],
)
def test_pre_score_skip(pod: Pod, nodes: list[Node], skipped: bool) -> None:
    assert (scored(pod, nodes, []) is None) is skipped


@pytest.mark.parametrize(
    ("raw", "normalized"),
    [
        pytest.param([0, 2, 5], [100, 60, 0], id="fewest pods, most points"),
        pytest.param([0, 0], [100, 100], id="no pods at all"),
        pytest.param([4, IGNORED, 8], [100, 0, 50], id="ignored nodes get nothing"),
        pytest.param([IGNORED, 0], [0, 100], id="ignored beside zero"),
        pytest.param([IGNORED], [0], id="all ignored"),
    ],
)
def test_normalize(raw: list[int], normalized: list[int]) -> None:
    scores = np.array(raw, dtype=np.int64)

    assert PodTopologySpread().normalize(scores).tolist() == normalized


def owned_by(kind: str, api_version: str = "apps/v1") -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": kind, "name": "owner", "controller": True}
    return {"ownerReferences": [owner | {"uid": "owner"}]}


@pytest.mark.parametrize(
    ("objects", "metadata", "counted"),
    [
        pytest.param([], {}, None, id="nothing selects the pod"),
        pytest.param([WEB_SERVICE], {}, {"web", "canary"}, id="a service"),
        pytest.param([make("Service", "none")], {}, None, id="a service without selector"),
        pytest.param(
            [WEB_SERVICE, make("Service", "db", spec={"selector": {"app": "db"}})],
            {},
            {"web", "canary"},
            id="a service of other pods",
        ),
        pytest.param(
            [make("Service", "s", spec={"selector": {"app": "web"}}, metadata={"namespace": "x"})],
            {},
            None,
            id="a service of another namespace",
        ),
        pytest.param(
            [WEB_SERVICE, make("Service", "two", spec={"selector": {"track": "canary"}})],
            {"labels": {"app": "web", "track": "canary"}},
            {"canary"},
            id="two services narrow each other",
        ),
        pytest.param(
            [make("ReplicationController", "owner", spec={"selector": {"app": "web"}})],
            owned_by("ReplicationController", "v1"),
            {"web", "canary"},
            id="a replication controller",
        ),
        pytest.param(
            [
                make(
                    "ReplicaSet",
                    "owner",
                    "apps/v1",
                    spec={
                        "selector": {
                            "matchExpressions": [{"key": "track", "operator": "DoesNotExist"}]
                        }
                    },
                )
            ],
            owned_by("ReplicaSet"),
            {"web", "db"},
            id="a replica set with expressions",
        ),
        pytest.param(
            [WEB_SERVICE, make("StatefulSet", "owner", "apps/v1", spec={"selector": APP_WEB})],
            owned_by("StatefulSet"),
            {"web", "canary"},
            id="a stateful set and a service",
        ),
        pytest.param(
            [make("ReplicaSet", "owner", "apps/v1", spec={"selector": APP_WEB})],
            owned_by("ReplicaSet", "example.com/v1"),
            None,
            id="a replica set of another group",
        ),
        pytest.param([], owned_by("ReplicaSet"), None, id="an owner that is not there"),
    ],
)
def test_default_constraints_use_the_selectors_of_services_and_owners(
    objects: list[Any], metadata: dict[str, Any], counted: set[str] | None
) -> None:
    others = {
        "web": {"app": "web"},
        "canary": {"app": "web", "track": "canary"},
        "db": {"app": "db"},
    }
    nodes = [make_node(name, name) for name in others]
    pods = [make_pod(n, n, metadata={"labels": labels}) for n, labels in others.items()]
    table, state = make_writer(nodes, pods).table, CycleState()
    given = TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable=SOFT)
    args = PodTopologySpreadArgs((given,), LIST_DEFAULTING)
    plugin = PodTopologySpread.from_args(args, Handle(table, lister=Objects(*objects)))
    pod = make_pod("p", metadata=metadata)

    status = plugin.pre_score(state, pod, table, ALL)

    assert (status == SKIP) is (counted is None)
    if counted is not None:
        raw = plugin.score_rows(state, pod, table, ALL)
        assert {name for name, score in zip(others, raw, strict=True) if score} == counted


def test_default_constraints_follow_changes_of_the_objects() -> None:
    table, lister = make_writer(ABC).table, Objects()
    plugin = PodTopologySpread.from_args(None, Handle(table, lister=lister))

    assert plugin.pre_score(CycleState(), make_pod("p"), table, ALL) == SKIP
    lister.objects.append(WEB_SERVICE)
    lister.version += 1
    assert plugin.pre_score(CycleState(), make_pod("p"), table, ALL) != SKIP


def test_pods_pinned_to_different_nodes_are_not_taken_for_each_other() -> None:
    """Only the node that a pod names counts for it, and none of them for a pod like it that names none."""
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pinned = make_pod("pinned", "", constraint(1), affinity={"nodeAffinity": required})
    table, plugin = make_writer(ABC, webs({"a": 2})).table, PodTopologySpread()
    said = []
    for pod in (pinned, make_pod("free", "", constraint(1))):
        state = CycleState()
        plugin.pre_filter(state, pod, table)
        said.append(plugin.filter_rows(state, pod, table, ALL).status(0))

    assert said == [FITS, UNEVEN]
