"""Launch options: the nodes that can be launched, the room on each beside its daemons, and the pods that each can
run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ..api.devices import ResourceSlice
from ..api.node import Node
from ..api.pod import EMPTY_STATUS, Pod, PodClass
from ..api.pod_spec import PodSpec
from ..api.resources import CPU, MEMORY, PODS
from ..api.storage import CSINode
from ..api.taints import PREFER_NO_SCHEDULE, Taint, tolerated
from ..cluster.memory.workload_pods import WORKLOAD_KINDS
from ..cluster.objects.object_index import ClusterObject
from ..planning.node_probe import COMPARES_PODS
from ..planning.node_types import NodeType
from ..planning.pools import NodePool
from ..sim.settings import Settings
from ..sim.world import is_waiting
from ..table import Bools, Ints
from ..trials import TrialCluster
from .preferences import planned_forms

PROBE, DOMAIN = "bayplan-probe-", "bayplan-domain-"

ChoiceKey: TypeAlias = tuple[PodClass, PodSpec]


def choice_key(pod: Pod) -> ChoiceKey:
    """Equal for pods that the same empty nodes can run; the spec has the names of claims, the class has not."""
    return pod.pod_class, pod.spec


@dataclass(slots=True)
class LaunchOption:
    """A type of a pool in one zone."""

    number: int
    pool: NodePool
    type: NodeType
    zone: str
    daemons: dict[str, int]
    """Use of an empty node by daemons; `pods` is their number."""

    @property
    def label(self) -> str:
        """`pool/type`."""
        return f"{self.pool.name}/{self.type.name}"

    @property
    def price(self) -> float:
        """Per hour, for comparisons: one that is unknown is above all others."""
        return np.inf if self.type.price is None else self.type.price

    @property
    def size(self) -> tuple[int, int]:
        """cpu and memory, for the order of types."""
        return self.type.allocatable.get(CPU, 0), self.type.allocatable.get(MEMORY, 0)

    def make_objects(self, name: str, *, is_shadow: bool = False) -> list[ClusterObject]:
        """A node and its objects; that of the shadow has no daemons, and less room instead."""
        used = self.daemons if is_shadow else {}
        return self.type.make_objects(name, self.zone, used=used)


@dataclass(slots=True)
class OptionChoice:
    """The options whose empty nodes can run the pods of a class, and the refusals of the others."""

    accepts: Bools
    requests: Ints
    reasons: dict[str, list[str]]
    """The types, as `pool/type`, that a refusal is about."""
    version: int
    is_possible: bool = False
    """Whether some option can."""
    accepts_all: bool = False
    amounts: list[int] = field(default_factory=list)
    """The requests as plain numbers."""

    def __post_init__(self) -> None:
        self.is_possible, self.accepts_all = bool(self.accepts.any()), bool(self.accepts.all())
        self.amounts = self.requests.tolist()


class LaunchOptions:
    """All options, pools of a higher weight first. Those that do not hold their daemons are left out and named."""

    def __init__(
        self,
        pools: Iterable[NodePool],
        objects: Iterable[ClusterObject],
        settings: Settings,
        shadow: TrialCluster,
        *,
        respects_wishes: bool = False,
    ) -> None:
        """With `respects_wishes`, pods are tried in several forms (`preferences.py`), as Karpenter does."""
        self.all: list[LaunchOption] = []
        self.remarks: list[str] = []
        ordered = sorted(pools, key=lambda pool: (-pool.weight, pool.name))
        found = [
            LaunchOption(0, pool, one, zone, {})
            for pool in ordered
            for one in pool.types
            for zone in one.zones
        ]
        self._shadow = shadow
        self._place_daemons(found, objects, settings)
        names = dict.fromkeys(name for one in self.all for name in one.type.allocatable)
        self.resources = [PODS, *(name for name in names if name != PODS)]
        self.free: Ints = np.array(
            [
                [one.type.allocatable.get(r, 0) - one.daemons.get(r, 0) for r in self.resources]
                for one in self.all
            ],
            dtype=np.int64,
        ).reshape(len(self.all), len(self.resources))
        """int64 per option and resource: room on an empty node beside its daemons."""
        self.prices = np.array([one.price for one in self.all], dtype=np.float64)
        self.is_spot = np.array([one.type.is_spot for one in self.all], dtype=np.bool_)
        self.zone_numbers = {
            zone: i for i, zone in enumerate(dict.fromkeys(o.zone for o in self.all))
        }
        self.zones = np.array([self.zone_numbers[one.zone] for one in self.all], dtype=np.int64)
        """int64 per option: the number of its zone."""
        self._choices: dict[ChoiceKey, OptionChoice] = {}
        self._respects_wishes = respects_wishes
        self._has_soft_taints = any(
            taint.effect == PREFER_NO_SCHEDULE for one in self.all for taint in one.type.taints
        )
        self._forms: dict[PodSpec, tuple[PodSpec, ...]] = {}

    def _place_daemons(
        self, found: list[LaunchOption], objects: Iterable[ClusterObject], settings: Settings
    ) -> None:
        """Select the options that hold their daemons, with the daemons' use."""
        around = [obj for obj in objects if _is_surrounding(obj)]
        missing: set[int] = set()
        if any(obj.kind == "DaemonSet" for obj in around):
            nodes = [
                obj
                for i, one in enumerate(found)
                for obj in one.type.make_objects(f"{PROBE}{i}", one.zone)
            ]
            empty = settings.simulation([*around, *nodes], pods_end=False)
            empty.proceed()
            for pod in empty.cluster.list("Pod"):
                name = pod.node_name or pod.spec.pin or ""
                if not name.startswith(PROBE):
                    continue
                number = int(name.removeprefix(PROBE))
                if is_waiting(pod):
                    missing.add(number)
                    continue
                use = found[number].daemons
                for resource, amount in (*pod.requests.items(), (PODS, 1)):
                    use[resource] = use.get(resource, 0) + amount
        for i, one in enumerate(found):
            if i not in missing:
                one.number = len(self.all)
                self.all.append(one)
        notes = (f"{found[i].label} is not used: no room for its daemons" for i in sorted(missing))
        self.remarks += dict.fromkeys(notes)

    def make_domains(self) -> list[Node]:
        """A node without room for each pool and zone, so that a spread over zones counts zones without a node, as
        Karpenter does.
        """
        found: dict[tuple[str, str], LaunchOption] = {}
        for one in self.all:
            key = one.pool.name, one.zone
            if one.zone and (key not in found or found[key].size < one.size):
                found[key] = one
        nodes = []
        for i, one in enumerate(found.values()):
            node = one.type.make_node(f"{DOMAIN}{i}", one.zone)
            nodes.append(node.replace(allocatable={}, capacity={}))
        return nodes

    def choice(self, pod: Pod) -> OptionChoice:
        """The options for a pod that was among those of `learn`."""
        return self._choices[choice_key(pod)]

    def forms(self, pod: Pod) -> tuple[Pod, ...]:
        """The pod, then copies of it with fewer and fewer preferences; the pod itself if there is nothing to relax."""
        if not self._respects_wishes:
            return (pod,)
        known = self._forms.get(pod.spec)
        if known is None:
            known = planned_forms(pod.spec, has_soft_taints=self._has_soft_taints)
            self._forms[pod.spec] = known
        return (pod,) if known == (pod.spec,) else tuple(pod.replace(spec=one) for one in known)

    def is_possible(self, pod: Pod) -> bool:
        """Whether some option can run a pod that was among those of `learn`."""
        return any(self.choice(form).is_possible for form in self.forms(pod))

    def softly_tainted(self, form: Pod) -> Bools | None:
        """bool per row: nodes with a taint PreferNoSchedule that the pod does not tolerate; None if all are fine."""
        if not self._respects_wishes:
            return None
        table = self._shadow.table
        if not any(_repels_softly(taints, form) for taints in table.taints.distinct):
            return None
        found: Bools = (
            table.taints.count(lambda taint: _repels_softly((taint,), form), slice(None)) > 0
        )
        return found

    def cheapest(self, numbers: Ints, zone: str) -> LaunchOption:
        """The option with the lowest price; of equal ones the largest, that in the given zone, then the first."""

        def rank(one: LaunchOption) -> tuple[float, int, int, bool, int]:
            return one.price, -one.size[0], -one.size[1], one.zone != zone, one.number

        options: list[LaunchOption] = [self.all[i] for i in numbers.tolist()]
        return min(options, key=rank)

    def learn(self, pods: Iterable[Pod]) -> None:
        """Try new classes of pods on the shadow, and classes without an option after another change."""
        version = self._shadow.version
        asked: dict[ChoiceKey, Pod] = {}
        for pod in pods:
            for form in (pod, *self.forms(pod)):
                key = choice_key(form)
                known = self._choices.get(key)
                if known is None or (not known.is_possible and known.version != version):
                    asked[key] = _waiting(form)
        if not asked:
            return
        probes = [one.make_objects(f"{PROBE}{one.number}", is_shadow=True) for one in self.all]
        for objects in probes:
            self._shadow.put(objects)
        for key, pod in asked.items():
            self._choices[key] = self._ask(pod, version)
        for objects in probes:
            self._shadow.drop(objects)

    def _ask(self, pod: Pod, version: int) -> OptionChoice:
        accepts = np.ones(len(self.all), dtype=np.bool_)
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for status, nodes in self._shadow.ask(pod).refusals():
            if status.plugin in COMPARES_PODS:
                continue  # added and removed pods may change it
            for name in nodes:
                if name.startswith(PROBE):
                    option = self.all[int(name.removeprefix(PROBE))]
                    accepts[option.number] = False
                    if option.label not in reasons[status.message]:
                        reasons[status.message].append(option.label)
        if self._respects_wishes and self._has_soft_taints:
            for option in self.all:
                accepts[option.number] &= not _repels_softly(option.type.taints, pod)
        wanted = {**pod.requests, PODS: 1}
        requests = np.array([wanted.get(name, 0) for name in self.resources], dtype=np.int64)
        return OptionChoice(accepts, requests, dict(reasons), version)


def _waiting(pod: Pod) -> Pod:
    """A copy of the pod without a node name."""
    return pod.replace(node_name="", status=EMPTY_STATUS) if pod.node_name else pod


def _is_surrounding(obj: ClusterObject) -> bool:
    """Whether the object is part of a cluster without nodes and pods."""
    if isinstance(obj, Pod | Node | CSINode | ResourceSlice):
        return False
    return obj.kind == "DaemonSet" or obj.kind not in WORKLOAD_KINDS


def largest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Pods by cpu, then memory, the largest first; equal pods stay together."""
    numbers: dict[PodClass, int] = {}
    keyed = [
        (
            -pod.requests.get(CPU, 0),
            -pod.requests.get(MEMORY, 0),
            numbers.setdefault(pod.pod_class, len(numbers)),
            i,
            pod,
        )
        for i, pod in enumerate(pods)
    ]
    keyed.sort(key=lambda entry: entry[:4])
    return [entry[4] for entry in keyed]


def _repels_softly(taints: Iterable[Taint], pod: Pod) -> bool:
    """Whether one of the taints is PreferNoSchedule and not tolerated."""
    return any(
        one.effect == PREFER_NO_SCHEDULE and not tolerated(one, pod.tolerations) for one in taints
    )


@dataclass(slots=True)
class LaunchPlan:
    """New nodes, and the pods placed on existing nodes."""

    launches: list[tuple[LaunchOption, list[Pod]]] = field(default_factory=list)
    """The options, each with the pods that it is for."""
    existing: dict[str, str] = field(default_factory=dict)
    """The nodes that exist or boot on which pods fit, by uid of the pod."""
    left: list[Pod] = field(default_factory=list)
    """Pods without a place: limits and maxima do not allow one, or no type holds them beside other pods."""

    @property
    def price(self) -> float:
        """Price of the nodes to launch, per hour."""
        return sum(option.price for option, _ in self.launches)
