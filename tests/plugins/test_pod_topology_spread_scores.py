"""PodTopologySpread: scores, and default constraints from Services and owners."""

from typing import Any

import numpy as np
import pytest

from bayplan.api.affinity import TopologySpreadConstraint
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.config.plugin_args import LIST_DEFAULTING, PodTopologySpreadArgs
from bayplan.framework import SKIP, CycleState, Handle
from bayplan.plugins.pod_topology_spread.plugin import IGNORED, PodTopologySpread
from bayplan.table import ALL
from tests.plugins.spread_cluster import (
    ABC,
    APP_WEB,
    FITS,
    HOSTNAME,
    SOFT,
    UNEVEN,
    ZONE,
    constraint,
    make,
    make_writer,
    web_pod,
    webs,
    zone_node,
)


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
    pod = web_pod("p", "", constraint(1, whenUnsatisfiable=SOFT))

    assert scored(pod, ABC, webs({"b": 1, "c": 3})) == ([0, 2, 5], [100, 60, 0])


def test_score_with_system_defaults() -> None:
    nodes = [zone_node(name, zone) for name, zone in zip("wxyz", "aabb", strict=True)]
    nodes += [zone_node("v", "a")]
    pods = webs({"v": 1, "x": 1, "y": 2, "z": 3})

    assert scored(web_pod("p"), nodes, pods, [0, 1, 2, 3]) == (
        [9, 11, 17, 18],
        [100, 88, 55, 50],
    )


def test_nodes_that_lack_a_key_are_ignored_when_the_pod_brings_constraints() -> None:
    nodes = [zone_node("a", "a"), zone_node("b", "b"), zone_node("bare")]
    both = [constraint(1, key, whenUnsatisfiable=SOFT) for key in (ZONE, HOSTNAME)]

    scores = scored(web_pod("p", "", *both), nodes, webs({"b": 1, "bare": 1}))

    assert scores == ([0, 3, IGNORED], [100, 0, 0])


def test_system_defaults_spread_nodes_without_zone_by_hostname() -> None:
    nodes = [zone_node("a", "a"), zone_node("b", "b"), zone_node("bare")]

    scores = scored(web_pod("p"), nodes, webs({"b": 1, "bare": 1}))

    # A missing zone is a domain too: three domains, so ln 5 for both constraints.
    assert scores == ([6, 9, 4], [77, 44, 100])


def test_system_defaults_take_a_missing_zone_for_an_empty_one() -> None:
    nodes = [zone_node("a", ""), zone_node("b", "b"), zone_node("bare")]

    # Two domains, so ln 4 for the zone; the empty one holds the pod on the node without zone.
    assert scored(web_pod("p"), nodes, webs({"bare": 1})) == ([7, 6, 4], [57, 71, 100])


@pytest.mark.parametrize(
    ("pod", "nodes", "skipped"),
    [
        pytest.param(web_pod("p", "", constraint(1)), ABC, True, id="hard constraints only"),
        pytest.param(web_pod("p", metadata={"labels": {}}), ABC, True, id="no service, no owner"),
        pytest.param(web_pod("p"), [], True, id="no nodes"),
        pytest.param(web_pod("p"), ABC, False, id="system defaults"),
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
    nodes = [zone_node(name, name) for name in others]
    pods = [web_pod(n, n, metadata={"labels": labels}) for n, labels in others.items()]
    table, state = make_writer(nodes, pods).table, CycleState()
    given = TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable=SOFT)
    args = PodTopologySpreadArgs((given,), LIST_DEFAULTING)
    plugin = PodTopologySpread.from_args(args, Handle(table, lister=Objects(*objects)))
    pod = web_pod("p", metadata=metadata)

    status = plugin.pre_score(state, pod, table, ALL)

    assert (status == SKIP) is (counted is None)
    if counted is not None:
        raw = plugin.score_rows(state, pod, table, ALL)
        assert {name for name, score in zip(others, raw, strict=True) if score} == counted


def test_default_constraints_follow_changes_of_the_objects() -> None:
    table, lister = make_writer(ABC).table, Objects()
    plugin = PodTopologySpread.from_args(None, Handle(table, lister=lister))

    assert plugin.pre_score(CycleState(), web_pod("p"), table, ALL) == SKIP
    lister.objects.append(WEB_SERVICE)
    lister.version += 1
    assert plugin.pre_score(CycleState(), web_pod("p"), table, ALL) != SKIP


def test_pods_pinned_to_different_nodes_are_not_taken_for_each_other() -> None:
    """Only the node that a pod names counts for it, and none of them for a pod like it that names none."""
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pinned = web_pod("pinned", "", constraint(1), affinity={"nodeAffinity": required})
    table, plugin = make_writer(ABC, webs({"a": 2})).table, PodTopologySpread()
    said = []
    for pod in (pinned, web_pod("free", "", constraint(1))):
        state = CycleState()
        plugin.pre_filter(state, pod, table)
        said.append(plugin.filter_rows(state, pod, table, ALL).status(0))

    assert said == [FITS, UNEVEN]
