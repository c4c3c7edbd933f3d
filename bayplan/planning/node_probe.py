"""Node probe: which pods an empty node of each type can run, by the scheduler's filters.

A cluster with one node of each type and zone, its daemons placed, answers for every class of pods. A refusal by a
filter that compares a pod with other pods does not count, because the other pods are missing there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..api.pod import Pod
from ..api.resources import CPU, MEMORY, PODS
from ..api.workloads import workload_of
from ..cluster.memory.absent_owners import is_daemon
from ..cluster.memory.default_class import missing_classes
from ..cluster.objects.object_index import ClusterObject
from ..errors import InputError
from ..scheduler.inquiry import Inquiry
from ..sim.plain_part import PlainPart
from ..sim.settings import Settings
from ..sim.simulation import Simulation
from ..sim.world import is_waiting
from ..table import Bools, Ints
from .attachments import DEVICES, UNLIMITED, Attachments, room_for
from .fleet import NodeOption, free_of, reduced
from .node_types import NodeType
from .plan_input import PlanInput
from .pools import NodePool

COMPARES_PODS = frozenset({"InterPodAffinity", "PodTopologySpread"})
"""Plugins whose refusals on an empty node may not hold when other pods run."""
OF_ONE_POD = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that differ between the pods of one workload."""
CLAIM_KINDS = ("PersistentVolumeClaim", "ResourceClaim")
NO_CAP = 1 << 40


@dataclass(slots=True)
class PlannedClass:
    """Pods that need the same: equal requests, equal nodes that can run them."""

    name: str
    pod: Pod
    count: int = 0
    needs: dict[str, int] = field(default_factory=dict)
    """Amounts that a pod takes of a node: itself, its requests, volumes and devices."""


@dataclass(slots=True)
class UnplaceableClass(PlainPart):
    """Pods that no type of any pool can run, and why."""

    PLAIN = "workload=name pods=count reasons@reason,types"

    name: str
    pod: Pod
    count: int
    reasons: dict[str, list[str]]
    """The types that a reason is about; none if it does not depend on the type."""


@dataclass(slots=True)
class Probe:
    """The classes of pods of a workload, and the options for their nodes."""

    classes: list[PlannedClass]
    options: list[NodeOption]
    resources: list[str]
    """The names that `requests` and the options' `free` count: pods, cpu, memory, then others, attachments last."""
    requests: Ints
    """int64 per class and resource."""
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    """The number of a pod's class, by `class_key`."""
    unplaceable: list[UnplaceableClass] = field(default_factory=list)
    unplaceable_keys: set[tuple[object, ...]] = field(default_factory=set)
    """The `class_key` of each pod that no type can run."""
    order: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 per pod, in the order in which the scheduler tries them: the number of its class."""
    attachments: set[str] = field(default_factory=set)
    """The members of `resources` that are not amounts of nodes (`attachments.py`)."""
    sharing: int = 0
    """Number of kinds of pods that use volumes or claims together with others."""
    claiming: int = 0
    """Number of kinds of pods that claim devices."""
    notes: list[str] = field(default_factory=list)

    @property
    def demand(self) -> Ints:
        """int64 per class: the number of pods."""
        return np.array([one.count for one in self.classes], dtype=np.int64)


@dataclass(slots=True)
class _Spot:
    """One node of the probing cluster."""

    pool: NodePool
    type: NodeType
    zone: str
    name: str
    free: dict[str, int]


def class_label(pod: Pod) -> str:
    """The workload of a pod, as it is named in reports."""
    kind, name = workload_of(pod)
    return f"{kind.lower()} {pod.namespace}/{name}" if kind else f"pod {pod.key}"


def class_key(pod: Pod) -> tuple[object, ...]:
    """A key that is equal for pods that are planned alike."""
    labels = (item for item in pod.labels.items() if item[0] not in OF_ONE_POD)
    return pod.namespace, id(pod.spec.template or pod.spec), tuple(sorted(labels))


def probe_workload(
    given: PlanInput,
    pools: Sequence[NodePool],
    settings: Settings,
    headroom: float = 0.0,
    needed: Collection[NodeType] = (),
    *,
    needs_pods: bool = True,
) -> Probe:
    """Find out which options can run each class of pods; raises InputError when there are no usable types or, with
    `needs_pods`, no pods.

    Types that others replace are left out, unless they are `needed`.
    """
    spots, objects = _spots(pools, headroom)
    empty = settings.simulation([*given.surroundings(), *objects], pods_end=False)
    empty.proceed()
    notes = _place_daemons(empty, spots)
    if not spots:
        raise InputError("\n".join(["expected a type of nodes that holds its daemons", *notes]))
    census = settings.simulation([*given.at_once(), *given.kept, *objects], pods_end=False)
    census.begin()
    pods = [pod for pod in census.cluster.list("Pod") if is_waiting(pod) and not is_daemon(pod)]
    if not pods and needs_pods:
        raise InputError("expected pods that wait for a node; got none")
    _add_claims(empty, census)
    notes += (f"refused: {refusal}" for refusal in census.refusals)
    probe = _judge(empty, pods, spots, notes)
    reported = {reason.partition(";")[0] for one in probe.unplaceable for reason in one.reasons}
    probe.notes += (text for text in census.remarks if text.partition(";")[0] not in reported)
    options = without_replaceable(probe.options, needed)
    left_out = len(probe.options) - len(options)
    if left_out:
        text = f"{left_out:,} of {len(probe.options):,} node types are left out"
        probe.notes.append(f"{text}: others hold as much at no higher price")
    probe.options = options
    return probe


def _add_claims(empty: Simulation, census: Simulation) -> None:
    """Add the claims that controllers made for pods: filters refuse a pod without them everywhere."""
    for kind in CLAIM_KINDS:
        for claim in census.cluster.list(kind):
            if empty.cluster.get(kind, claim.namespace, claim.name) is None:
                empty.cluster.add(claim)
    empty.proceed()


def _spots(pools: Sequence[NodePool], headroom: float) -> tuple[list[_Spot], list[ClusterObject]]:
    spots: list[_Spot] = []
    objects: list[ClusterObject] = []
    for pool in pools:
        for one in pool.types:
            for zone in one.zones:
                name = f"probe-{len(spots)}"
                node, *others = one.make_objects(name, zone)
                node = reduced(node, headroom)  # type: ignore[arg-type]  # nodes only
                objects += [node, *others]
                spots.append(_Spot(pool, one, zone, name, dict(node.allocatable)))
    return spots, objects


def _place_daemons(empty: Simulation, spots: list[_Spot]) -> list[str]:
    """Subtract the daemons' use, and drop the types that do not hold their daemons; these are named."""
    by_name = {spot.name: spot for spot in spots}
    missing: defaultdict[str, set[str]] = defaultdict(set)
    for pod in empty.cluster.list("Pod"):
        if pod.node_name in by_name:
            free = by_name[pod.node_name].free
            for name, amount in (*pod.requests.items(), (PODS, 1)):
                free[name] = free.get(name, 0) - amount
        elif is_waiting(pod) and pod.spec.pin:
            missing[pod.spec.pin].add(workload_of(pod)[1])
    notes = []
    for name, daemons in missing.items():
        spot = by_name.get(name)
        if spot is None:
            continue
        spots.remove(spot)
        what = ", ".join(sorted(daemons))
        notes.append(f"{spot.pool.name}: {spot.type.name} is not used: no room for daemon {what}")
    return list(dict.fromkeys(notes))


def _judge(empty: Simulation, pods: list[Pod], spots: list[_Spot], notes: list[str]) -> Probe:
    classes: dict[tuple[object, ...], PlannedClass] = {}
    for pod in pods:
        key = class_key(pod)
        one = classes.get(key)
        if one is None:
            one = classes[key] = PlannedClass(class_label(pod), pod)
        one.count += 1
    groups: dict[object, PlannedClass] = {}
    accepts: list[list[bool]] = []
    caps: list[list[int]] = []
    probe = Probe([], [], [], np.zeros((0, 0), dtype=np.int64), notes=notes)
    attachments = Attachments(empty, pods, [spot.type for spot in spots])
    for key, one in classes.items():
        accepted, reasons = _accepting(empty, one.pod, spots)
        if not any(accepted):
            causes = missing_classes(empty.cluster, [one.pod])
            reasons = {cause: [] for cause in causes} or reasons
            probe.unplaceable.append(UnplaceableClass(one.name, one.pod, one.count, reasons))
            probe.unplaceable_keys.add(key)
            continue
        probe.sharing += attachments.shares(one.pod)
        probe.claiming += bool(one.pod.spec.resource_claims)
        attached = attachments.of(one.pod)
        probe.attachments |= attached.keys()
        needs = {**one.pod.requests, PODS: 1, **attached}
        limits = _caps(empty, one.pod, spots, accepted)
        alike = tuple(sorted(needs.items())), one.pod.priority, tuple(accepted)
        group = key if min(limits) < NO_CAP else alike
        if group not in groups:
            groups[group] = PlannedClass(one.name, one.pod, needs=needs)
            accepts.append(accepted)
            caps.append(limits)
        groups[group].count += one.count
        probe.numbers[key] = list(groups).index(group)
    queued = sorted(pods, key=lambda pod: -pod.priority)
    numbers = [probe.numbers.get(class_key(pod)) for pod in queued]
    probe.order = np.array([n for n in numbers if n is not None], dtype=np.int64)
    _measure(probe, list(groups.values()))
    for spot in spots:
        room = room_for(spot.type)
        spot.free.update({name: room.get(name, UNLIMITED) for name in probe.attachments})
    shape = len(groups), len(spots)
    probe.options = _options(
        spots,
        np.array(accepts, dtype=np.bool_).reshape(shape),
        np.array(caps, dtype=np.int64).reshape(shape),
        probe.resources,
    )
    return probe


def _measure(probe: Probe, classes: list[PlannedClass]) -> None:
    """Set the classes and their requests."""
    probe.classes = classes
    names = [name for one in classes for name in one.pod.requests]
    probe.resources = list(dict.fromkeys([PODS, CPU, MEMORY, *names, *sorted(probe.attachments)]))
    probe.requests = np.array(
        [free_of(one.needs, probe.resources) for one in classes], dtype=np.int64
    ).reshape(len(classes), len(probe.resources))


def _accepting(
    empty: Simulation, pod: Pod, spots: Sequence[_Spot]
) -> tuple[list[bool], dict[str, list[str]]]:
    """Whether each node can run the pod, and the refusals with the types that they are about."""
    refused: dict[str, str] = {}
    for status, nodes in Inquiry(empty.scheduler, pod).refusals():
        if status.plugin not in COMPARES_PODS:
            refused.update(dict.fromkeys(nodes, status.message))
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for spot in spots:
        if spot.name in refused:
            label = f"{spot.pool.name}/{spot.type.name}"
            if label not in reasons[refused[spot.name]]:
                reasons[refused[spot.name]].append(label)
    return [spot.name not in refused for spot in spots], dict(reasons)


def _caps(
    empty: Simulation, pod: Pod, spots: Sequence[_Spot], accepted: Sequence[bool]
) -> list[int]:
    """Number of copies that each node can run: one if the filters refuse a second one."""
    affinity = pod.spec.affinity
    repels = affinity is not None and affinity.pod_anti_affinity is not None
    if not repels and not pod.spec.host_ports:
        return [NO_CAP] * len(spots)
    copies = [
        empty.cluster.add(
            pod.replace(name=f"{pod.name}-{i}", uid=f"probe/{i}", node_name=spot.name)
        )
        for i, (spot, is_accepted) in enumerate(zip(spots, accepted, strict=True))
        if is_accepted
    ]
    second = pod.replace(name=f"{pod.name}-second", uid="probe/second")
    alone: set[str] = set()
    for status, nodes in Inquiry(empty.scheduler, second).refusals():
        if status.plugin != "NodeResourcesFit":
            alone.update(nodes)
    for copy in copies:
        empty.cluster.delete(copy)
    return [1 if spot.name in alone else NO_CAP for spot in spots]


def _options(
    spots: Sequence[_Spot], accepts: Bools, caps: Ints, resources: Sequence[str]
) -> list[NodeOption]:
    """The nodes, with equivalent zones of a type joined."""
    joined: dict[tuple[object, ...], list[int]] = {}
    for i, spot in enumerate(spots):
        free = tuple(spot.free.get(name, 0) for name in resources)
        key = spot.pool, spot.type, free, accepts[:, i].tobytes(), caps[:, i].tobytes()
        joined.setdefault(key, []).append(i)
    return [
        NodeOption(
            spots[numbers[0]].pool,
            spots[numbers[0]].type,
            tuple(spots[i].zone for i in numbers),
            np.maximum(free_of(spots[numbers[0]].free, resources), 0),
            accepts[:, numbers[0]],
            caps[:, numbers[0]],
        )
        for numbers in joined.values()
        if accepts[:, numbers[0]].any() or spots[numbers[0]].pool.minimum
    ]


def pending_counts(probe: Probe, pods: Sequence[Pod]) -> Ints:
    """int64 per class: how many of `pods` belong to it; pods of other classes are left out."""
    counts: Counter[int] = Counter()
    for pod in pods:
        number = probe.numbers.get(class_key(pod))
        if number is not None:
            counts[number] += 1
    return np.array([counts[i] for i in range(len(probe.classes))], dtype=np.int64)


def without_replaceable(
    options: Sequence[NodeOption], needed: Collection[NodeType]
) -> list[NodeOption]:
    """The options that no other one replaces, and those of `needed` types; of equal ones the first."""
    replaces = np.array([_replaces(one, options) for one in options], dtype=np.bool_)
    replaces = replaces.reshape(len(options), len(options))
    first = np.arange(len(options))
    # Of two options that replace each other the first stays.
    goes: Bools = np.any(replaces & (~replaces.T | (first[:, None] < first)), axis=0)
    stays = {id(one) for one in needed}
    return [
        one for one, gone in zip(options, goes, strict=True) if not gone or id(one.type) in stays
    ]


def _replaces(one: NodeOption, options: Sequence[NodeOption]) -> Bools:
    """bool per option: whether a node of `one` can take the place of one of its nodes."""
    found = np.array(
        [
            one is not other
            and one.price <= other.price
            and set(one.zones) >= set(other.zones)
            and _attaches_as_much(one.type, other.type)
            and _counts_alike(one, other)
            for other in options
        ],
        dtype=np.bool_,
    )
    for i in np.flatnonzero(found).tolist():
        other = options[i]
        found[i] = (
            (one.free >= other.free).all()
            and (one.accepts >= other.accepts).all()
            and (one.caps >= other.caps)[other.accepts].all()
        )
    return found


def _attaches_as_much(one: NodeType, other: NodeType) -> bool:
    """Whether a node of type `one` has room for the volumes and devices that fit on a node of type `other`."""
    room = room_for(other)
    return (not other.slices or one.slices == other.slices) and all(
        room.get(name, UNLIMITED) <= count
        for name, count in room_for(one).items()
        if name != DEVICES
    )


def _counts_alike(one: NodeOption, other: NodeOption) -> bool:
    """Whether a node of one option uses at most as much of the limits of its pool as one of the other."""
    if one.pool is not other.pool:
        return _is_unlimited(one.pool) and _is_unlimited(other.pool)
    return all(
        one.type.capacity.get(name, 0) <= other.type.capacity.get(name, 0)
        for name in one.pool.limits
    )


def _is_unlimited(pool: NodePool) -> bool:
    return not pool.minimum and pool.maximum is None and not pool.limits
