"""Measured: requests of pods against their measured use, and the cluster as if their requests equalled it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import pstdev
from typing import Any, TypeAlias

from msgspec.structs import replace

from ..api.containers import Container, ResourceRequirements
from ..api.node import Node
from ..api.pod import Pod
from ..api.text.quantity import format_quantity
from ..cluster.memory.pod_index import is_there
from ..manifests.measured_use import RESOURCES, MeasuredUse, Units
from ..manifests.timeline import InputObject
from ..sim.plain_part import PlainPart

Proposed = Callable[[Pod], Mapping[str, Units] | None]
"""The new requests of a pod's containers; None if they stay."""
Demand: TypeAlias = tuple[int, Mapping[str, int], Units | None]
"""A number of pods that are alike, their requests, and their use; None if it was not measured."""


@dataclass(frozen=True, slots=True)
class UseTotal(PlainPart):
    """One resource on all nodes: cpu in milli, memory in bytes."""

    PLAIN = "resource allocatable# requested# used#"

    resource: str
    allocatable: int
    requested: int
    used: int


@dataclass(slots=True)
class UseAgainstRequests(PlainPart):
    """The requests of running pods against their use, and what follows from the difference."""

    PLAIN = "totals measuredPods=measured runningPods=pods byUse"

    totals: list[UseTotal]
    measured: int
    """Number of running pods with a measured use; the others count with their requests."""
    pods: int
    conclusion: str = ""
    """The answer by use, in a sentence."""
    by_use: dict[str, Any] = field(default_factory=dict)
    """The use as plain data."""
    noun: str = "running pods"
    """Name of the counted pods, for texts."""

    @classmethod
    def of(cls, objects: Iterable[InputObject], use: MeasuredUse) -> UseAgainstRequests:
        """The totals of a cluster."""
        nodes, running = nodes_and_pods(objects)
        return cls(*summed(nodes.values(), _demands(running, use)))


def summed(nodes: Iterable[Node], demands: Iterable[Demand]) -> tuple[list[UseTotal], int, int]:
    """The totals of nodes and pods, the number of pods whose use was measured, and that of all."""
    asked, used = (dict.fromkeys(RESOURCES, 0) for _ in range(2))
    pods = measured = 0
    for number, requests, found in demands:
        pods, measured = pods + number, measured + number * (found is not None)
        for name in RESOURCES:
            wants = requests.get(name, 0)
            asked[name] += number * wants
            used[name] += number * (found or {}).get(name, wants)
    offered = dict.fromkeys(RESOURCES, 0)
    for node in nodes:
        for name in RESOURCES:
            offered[name] += node.allocatable.get(name, 0)
    totals = [UseTotal(name, offered[name], asked[name], used[name]) for name in RESOURCES]
    return totals, measured, pods


def nodes_and_pods(objects: Iterable[InputObject]) -> tuple[dict[str, Node], list[Pod]]:
    """The nodes by name, and the pods that run on nodes."""
    every = list(objects)
    pods = (obj for obj in every if isinstance(obj, Pod))
    running = [pod for pod in pods if pod.node_name and is_there(pod)]
    return {obj.name: obj for obj in every if isinstance(obj, Node)}, running


def use_spread(
    objects: Iterable[InputObject], use: MeasuredUse, moved: Mapping[str, str]
) -> dict[str, float]:
    """Per resource, the standard deviation of the used share of nodes, with some pods on other nodes (`moved`)."""
    shares: dict[str, list[float]] = {name: [] for name in RESOURCES}
    for node, pods in _by_node(objects, moved).values():
        for one in summed([node], _demands(pods, use))[0]:
            if one.allocatable:
                shares[one.resource].append(one.used / one.allocatable)
    return {name: pstdev(each) if each else 0.0 for name, each in shares.items()}


def _by_node(
    objects: Iterable[InputObject], moved: Mapping[str, str]
) -> dict[str, tuple[Node, list[Pod]]]:
    """The nodes by name, each with the pods that run there, some of them on other nodes (`moved`)."""
    nodes, running = nodes_and_pods(objects)
    found: dict[str, tuple[Node, list[Pod]]] = {name: (nodes[name], []) for name in nodes}
    for pod in running:
        name = moved.get(pod.key, pod.node_name)
        if name in found:
            found[name][1].append(pod)
    return found


def _demands(pods: Iterable[Pod], use: MeasuredUse) -> Iterator[Demand]:
    return ((1, pod.requests, use.of_pod(pod.namespace, pod.name)) for pod in pods)


def as_used(objects: Iterable[InputObject], use: MeasuredUse) -> list[InputObject]:
    """The cluster as if requests of running pods equalled their use; pods that were not measured stay as they are."""
    return with_requests(objects, lambda pod: used_by_containers(pod, use))


def with_requests(objects: Iterable[InputObject], proposed: Proposed) -> list[InputObject]:
    """The cluster with other requests of its running pods."""
    made: list[InputObject] = []
    for obj in objects:
        if isinstance(obj, Pod) and obj.node_name and is_there(obj):
            wanted = proposed(obj)
            made.append(obj if wanted is None else requesting(obj, wanted))
        else:
            made.append(obj)
    return made


def used_by_containers(pod: Pod, use: MeasuredUse) -> dict[str, Units] | None:
    """The use of each container of a pod; None if it was not measured."""
    found = use.of_containers(pod.namespace, pod.name)
    return shared_by_containers(found, pod.spec.containers)


def shared_by_containers(
    found: Mapping[str, Units], containers: Iterable[Container] | None
) -> dict[str, Units] | None:
    """The use of each container; the first has all of it where only pods were measured. None if there is no use."""
    names = [container.name for container in containers or ()]
    if not found or not names:
        return None
    if "" in found and len(found) == 1:
        nothing = dict.fromkeys(found[""], 0)
        return {name: found[""] if i == 0 else dict(nothing) for i, name in enumerate(names)}
    return {name: amounts for name, amounts in found.items() if name}


def requesting(pod: Pod, wanted: Mapping[str, Units]) -> Pod:
    """The pod whose containers request these amounts."""
    containers = resized_containers(pod.spec.containers, wanted)
    # Statuses of containers have the amounts in effect, which would count as well.
    status = replace(pod.status, container_statuses=None, resources=None, allocated_resources=None)
    return pod.with_spec(replace(pod.spec, containers=containers)).replace(status=status)


def resized_containers(
    containers: Iterable[Container] | None, wanted: Mapping[str, Units]
) -> tuple[Container, ...]:
    """The containers, with these requests where they are given."""
    return tuple(
        _with_units(one, wanted[one.name]) if one.name in wanted else one
        for one in containers or ()
    )


def _with_units(container: Container, amounts: Units) -> Container:
    known = container.resources or ResourceRequirements()
    texts = {name: format_quantity(value, name) for name, value in amounts.items()}
    requests = {**(known.requests or {}), **texts}
    return replace(container, resources=replace(known, requests=requests, limits=None))


def unused_room(
    objects: Iterable[InputObject], use: MeasuredUse, nodes: Sequence[str], short: Collection[str]
) -> list[str]:
    """A sentence for each of `nodes` and `short` resource whose requested room is not used by half or more."""
    lines = []
    found = _by_node(objects, {})
    for name in (name for name in nodes if name in found):
        node, pods = found[name]
        for one in summed([node], _demands(pods, use))[0]:
            if one.resource in short and one.requested and one.used * 2 <= one.requested:
                amounts = one.requested, one.allocatable, one.used
                texts = [format_quantity(value, one.resource) for value in amounts]
                lines.append(
                    f"{name}: {texts[0]} of {texts[1]} {one.resource} are requested, {texts[2]} are used: "
                    "the pod waits for room that nothing uses"
                )
    return lines
