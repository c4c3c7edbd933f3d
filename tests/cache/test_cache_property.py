"""Cache under any sequence of events: its table equals one built from scratch.

The order of the pods on a node and their host ports depend on the history: these equal a simple model.
"""

from functools import cache as memoized
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bayplan.api.node import Node
from bayplan.api.pod import HostPort, Pod
from bayplan.api.selectors import LabelSelector, Requirement
from bayplan.cache import Cache
from bayplan.clock import ManualClock
from bayplan.table import ABSENT, ALL, DomainCounts, NodeTable, PodTerm, ResourceColumns
from bayplan.testing.builders import make_node, make_pod
from tests.rig.random_examples import examples

NODE_NAMES = ["a", "b", "c", "d"]
NAMESPACES = ["n1", "n2"]
TTL_S = 30.0
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    },
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 3,
                "podAffinityTerm": {
                    "topologyKey": "rack",
                    "labelSelector": {},
                    "namespaces": ["n2"],
                },
            }
        ]
    },
}
NODES: list[dict[str, Any]] = [
    {},
    {"labels": {"zone": "z1", "rack": "r1"}, "images": {"i:1": 100, "j:1": 50}},
    {"labels": {"zone": "z2"}, "taints": ["k=v:NoSchedule"], "images": {"i:1": 100}},
    {"labels": {"zone": "z1", "rack": "r2"}, "unschedulable": True, "features": ["f", "g"]},
    {"cpu": "8", "pods": 3, "extended": {"example.com/gpu": 2}, "taints": ["x:NoExecute"]},
]
RESIZED = {"name": "container-0", "resources": {"requests": {"cpu": "3"}}}
GIVEN_ZERO = {"name": "container-0", "resources": {"requests": {"cpu": "0"}}}
PODS: list[dict[str, Any]] = [
    {},
    {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}},
    {"cpu": "1", "labels": {"app": "web"}, "terminating": True},
    {"requests": {"example.com/gpu": 1}, "host_ports": [80], "priority": 10},
    {"host_ports": ["10.0.0.1:80", "90/UDP"], "affinity": ANTI, "labels": {"app": "db"}},
    {"cpu": "1", "priority": -1, "namespace": "n2", "affinity": ANTI},
    {"cpu": "1", "status": {"containerStatuses": [RESIZED]}},
    {"cpu": "1", "status": {"phase": "Running"}},
    {"cpu": "1", "labels": {"app": "web"}},
    {"memory": "1Gi"},
    {"memory": "1Gi", "status": {"containerStatuses": [GIVEN_ZERO]}},
]
EARLY = [
    PodTerm(None, LabelSelector.of({"app": "web"})),
    PodTerm(frozenset({"n1"}), LabelSelector(), terminating=False),
]
LATE = [
    PodTerm(frozenset({"n1"}), LabelSelector.of({"app": "web"})),
    PodTerm(
        None, LabelSelector(match_expressions=(Requirement(key="app", operator="DoesNotExist"),))
    ),
]
LABEL_KEYS = ["zone", "rack", "kubernetes.io/hostname"]


@memoized
def pod_of(number: int, variant: int) -> Pod:
    given = {"namespace": "n1", **PODS[variant]}
    return make_pod(f"p{number}", uid=f"u{number}", **given)


@memoized
def node_of(name: str, variant: int) -> Node:
    return make_node(name, **NODES[variant])


def with_one_change(pod: Pod, what: str) -> Pod:
    """The pod with one of its own fields changed, and the same spec object."""
    if what == "labels":
        return pod.replace(labels={} if pod.labels else {"app": "web"})
    if what == "deletion":
        return pod.replace(
            deletion_timestamp=None if pod.is_terminating else "2000-01-01T00:00:00Z"
        )
    return pod.replace(annotations={"changed": str(len(pod.annotations))})


PROBES = [pod_of(9, variant).replace(labels={"app": "web"}) for variant in (0, 5)]
PORTS = [port for variant in (3, 4) for port in pod_of(9, variant).spec.host_ports]


def facts(table: NodeTable, terms: list[PodTerm]) -> dict[str, Any]:
    """The contents of the table, by node name."""

    def by_name(values: Any) -> dict[str, Any]:
        listed = values.tolist()
        return {name: listed[row] for name, row in table.row_of.items()}

    def amounts(columns: ResourceColumns) -> dict[str, Any]:
        return {
            name: column for name in columns if any((column := by_name(columns[name])).values())
        }

    def numbers(columns: ResourceColumns) -> dict[str, dict[str, int]]:
        return {name: columns.at(row) for name, row in table.row_of.items()}

    def counted(counts: DomainCounts) -> Any:
        domains = {}
        for key in LABEL_KEYS:
            column = table.labels.column(key)
            found = zip(column.values, counts.per_domain(column).tolist(), strict=False)
            domains[key] = {value: count for value, count in found if count}
        return counts.total, by_name(counts.per_row), domains

    def label(key: str) -> dict[str, str | None]:
        column = table.labels.column(key)
        codes = by_name(column.codes)
        return {n: None if code == ABSENT else column.values[code] for n, code in codes.items()}

    carried = {
        (probe.namespace, t.kind, t.namespace, t.term, t.weight): counted(t.carriers)
        for probe in PROBES
        for t in table.carried.matching(probe, {})
    }
    return {
        "nodes": {name: table.nodes[row] for name, row in table.row_of.items()},
        "pods": {name: table.pods[row] for name, row in table.row_of.items()},
        "live": by_name(table.live),
        "node count": table.node_count,
        "live rows": {table.names[row] for row in table.numbers(table.live_rows)},
        "allocatable": (amounts(table.allocatable), numbers(table.allocatable)),
        "requested": (amounts(table.requested), numbers(table.requested)),
        "scoring usage": (amounts(table.scoring_usage), numbers(table.scoring_usage)),
        "pod count": by_name(table.pod_count),
        "max pods": by_name(table.max_pods),
        "unschedulable": by_name(table.unschedulable),
        "labels": {key: label(key) for key in LABEL_KEYS},
        "taints": {n: table.taints.distinct[i] for n, i in by_name(table.taints.ids).items()},
        "features": {n: table.features.distinct[i] for n, i in by_name(table.features.ids).items()},
        "images": {i: by_name(table.images.total([i], 1) > 0) for i in ("i:1", "j:1")},
        "priorities": {bound: by_name(table.priorities.below(bound)) for bound in (0, 1, 11)},
        "terms": {term: counted(table.terms.count(term)) for term in terms},
        "carried": carried,
        "namespaces": dict(table.namespaces),
    }


class NodePods:
    """The pods of each node as a list, and the set of host ports that are taken on it."""

    def __init__(self) -> None:
        self.uids: dict[str, list[str]] = {}
        self.ports: set[tuple[str, HostPort]] = set()
        self.before: dict[str, set[tuple[str, HostPort]]] = {}
        """The ports of nodes before a pod was there on trial; they are back with the next change of the node."""

    def try_pod(self, pod: Pod) -> None:
        there = {held for held in self.ports if held[0] == pod.node_name}
        if pod.spec.host_ports:
            self.before.setdefault(pod.node_name, there)
        self.ports -= {(pod.node_name, port) for port in pod.spec.host_ports}

    def change(self, name: str) -> None:
        if name in self.before:
            self.ports = {held for held in self.ports if held[0] != name} | self.before.pop(name)

    def add(self, pod: Pod) -> None:
        self.change(pod.node_name)
        self.uids.setdefault(pod.node_name, []).append(pod.uid)
        self.ports |= {(pod.node_name, port) for port in pod.spec.host_ports}

    def remove(self, pod: Pod) -> None:
        self.change(pod.node_name)
        listed = self.uids[pod.node_name]
        place = listed.index(pod.uid)
        listed[place] = listed[-1]
        listed.pop()
        self.ports -= {(pod.node_name, port) for port in pod.spec.host_ports}

    def replace(self, old: Pod, new: Pod) -> None:
        self.remove(old)
        self.add(new)

    def conflict(self, port: HostPort, node: str) -> bool:
        return any(name == node and port.conflicts_with(held) for name, held in self.ports)


class AnySequence(RuleBasedStateMachine):
    """Events of a cluster and of the scheduler, in any order the cache allows."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.cache = Cache(self.clock, assume_ttl_s=TTL_S)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[int, Pod] = {}
        self.lists = NodePods()
        self.assumed: dict[int, float | None] = {}  # when they expire
        self.namespaces: dict[str, dict[str, str]] = {}

    @initialize()
    def ask_early(self) -> None:
        for term in EARLY:
            self.cache.table.terms.count(term)
        self.cache.table.labels.column("zone")

    names = st.sampled_from(NODE_NAMES)
    numbers = st.integers(0, 4)
    variants = st.integers(0, len(PODS) - 1)
    changes = st.sampled_from(["labels", "deletion", "annotations"])

    @rule(name=names, variant=st.integers(0, len(NODES) - 1))
    def set_node(self, name: str, variant: int) -> None:
        self.nodes[name] = node_of(name, variant)
        self.lists.change(name)
        self.cache.set_node(self.nodes[name])

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        self.cache.remove_node(name)

    @rule(number=numbers, variant=variants, name=names, assume=st.booleans())
    def pod_comes(self, number: int, variant: int, name: str, assume: bool) -> None:
        if number in self.pods:
            return
        pod = pod_of(number, variant).with_node(name)
        if assume:
            self.cache.assume_pod(pod)
            self.assumed[number] = None
        else:
            self.cache.add_pod(pod)
        self.lists.add(pod)
        self.pods[number] = pod

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), change=variants | changes | st.none(), name=st.none() | names)
    def confirm(self, data: st.DataObject, change: int | str | None, name: str | None) -> None:
        number = data.draw(st.sampled_from(sorted(self.assumed)))
        pod = self.changed(number, change).with_node(name or self.pods[number].node_name)
        self.cache.add_pod(pod)
        self.lists.replace(self.pods[number], pod)
        self.pods[number] = pod
        del self.assumed[number]

    @precondition(lambda self: self.assumed)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.assumed)))
        self.lists.remove(self.pods[number])
        self.cache.forget_pod(self.pods.pop(number))
        del self.assumed[number]

    @precondition(lambda self: self.assumed)
    @rule(data=st.data())
    def finish_binding(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.assumed)))
        self.cache.finish_binding(self.pods[number])
        self.assumed[number] = self.clock.monotonic() + TTL_S

    @rule(seconds=st.sampled_from([1, 20, 31]))
    def expire(self, seconds: int) -> None:
        self.clock.advance(seconds)
        now = self.clock.monotonic()
        overdue = {n for n, at in self.assumed.items() if at is not None and at <= now}
        order = [pod.uid for pod in self.cache.expire_pods()]
        assert set(order) == {f"u{n}" for n in overdue}
        for number in sorted(overdue, key=lambda number: order.index(f"u{number}")):
            self.lists.remove(self.pods[number])
            del self.assumed[number], self.pods[number]

    @precondition(lambda self: len(self.pods) > len(self.assumed))
    @rule(data=st.data(), change=variants | changes)
    def update(self, data: st.DataObject, change: int | str) -> None:
        number = data.draw(st.sampled_from(sorted(self.pods.keys() - self.assumed.keys())))
        old = self.pods[number]
        self.pods[number] = self.changed(number, change)
        self.cache.update_pod(old, self.pods[number])
        self.lists.replace(old, self.pods[number])

    def changed(self, number: int, change: int | str | None) -> Pod:
        """The pod as another variant, or with one change, on its node."""
        pod = self.pods[number]
        if isinstance(change, int):
            return pod_of(number, change).with_node(pod.node_name)
        return with_one_change(pod, change) if change else pod

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.pods)))
        self.lists.remove(self.pods[number])
        self.cache.remove_pod(self.pods.pop(number))
        self.assumed.pop(number, None)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def try_pods(self, data: st.DataObject) -> None:
        """A trial that adds pods to nodes, and another that removes pods."""
        known = st.sampled_from(sorted(self.nodes))
        tried = data.draw(st.lists(st.tuples(self.variants, known), max_size=3))
        trial = self.cache.begin_trial()
        waiting = [pod_of(20 + place, variant) for place, (variant, _) in enumerate(tried)]
        on_trial = [
            trial.assume(pod, pod.with_node(name))
            for pod, (_, name) in zip(waiting, tried, strict=True)
        ]
        for pod in reversed(on_trial):
            trial.forget(pod)
        self.cache.end_trial()
        for pod in reversed(on_trial):
            self.lists.try_pod(pod)
        removed = [pod for pod in self.pods.values() if data.draw(st.booleans())]
        trial = self.cache.begin_trial()
        for pod in removed:
            trial.remove(pod)
        for pod in removed[::2]:
            trial.restore(pod)
        self.cache.end_trial()
        for pod in removed:
            if pod.spec.host_ports:
                self.lists.change(pod.node_name)

    @rule(name=st.sampled_from(NAMESPACES), team=st.none() | st.sampled_from("xy"))
    def change_namespace(self, name: str, team: str | None) -> None:
        self.namespaces.pop(name, None)
        if team is None:
            self.cache.remove_namespace(name)
        else:
            self.namespaces[name] = {"team": team}
            self.cache.set_namespace(name, self.namespaces[name])

    @rule()
    def take_snapshot(self) -> None:
        self.cache.snapshot.update()
        order = [self.cache.table.names[row] for row in self.cache.snapshot.order]
        assert sorted(order) == sorted(self.nodes)

    def from_scratch(self) -> Cache:
        cache = Cache(self.clock)
        for name in sorted(self.nodes):
            cache.set_node(self.nodes[name])
        for number in sorted(self.pods):
            cache.add_pod(self.pods[number])
        for name, labels in self.namespaces.items():
            cache.set_namespace(name, labels)
        return cache

    @invariant()
    def equals_one_built_from_scratch(self) -> None:
        expected = facts(self.from_scratch().table, EARLY)
        found = facts(self.cache.table, EARLY)
        for what, value in expected.items():
            assert found[what] == value, what
        assert self.cache.pod_count == len(self.pods)
        for number, pod in self.pods.items():
            assert self.cache.get_pod(pod) is pod
            assert self.cache.is_assumed(pod) == (number in self.assumed)

    @invariant()
    def has_the_pods_and_ports_of_its_history(self) -> None:
        table = self.cache.table
        found = {name: list(table.pods[row]) for name, row in table.row_of.items()}
        assert found == {name: self.lists.uids.get(name, []) for name in table.row_of}
        for port in PORTS:
            taken = table.ports.conflicts([port], ALL).tolist()
            for name, row in table.row_of.items():
                assert taken[row] == self.lists.conflict(port, name), (port, name)

    def teardown(self) -> None:
        """Terms not used before, and the image counts after every row was updated."""
        tables = [self.cache.table, self.from_scratch().table]
        for table in tables:
            for row in range(len(table)):
                table.images.touch(row)
            table.images.refresh()
        images, terms = (
            [
                [
                    {
                        name: table.images.total([i], 1).tolist()[row]
                        for name, row in table.row_of.items()
                    }
                    for i in ("i:1", "j:1")
                ]
                for table in tables
            ],
            [facts(table, EARLY + LATE)["terms"] for table in tables],
        )
        assert images[0] == images[1]
        assert terms[0] == terms[1]


AnySequence.TestCase.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None
)
TestAnySequence = AnySequence.TestCase
