"""Resizes: change a node's allocatable amounts, or pods' requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from ...api.containers import Container, ResourceRequirements
from ...api.pod import Pod
from ...api.resources import allocatable_units
from ...api.text.quantity import Quantity, parse_quantity
from ...cluster.memory.absent_owners import successor_of
from ...cluster.memory.object_store import MemoryCluster
from ...cluster.memory.pod_index import is_there
from ...errors import InputError
from ...manifests.timeline import TimelineTarget
from ..references import find_node, find_ref
from ..stage import Stage
from .change import ClusterChange, check_field


@dataclass(frozen=True, slots=True)
class Resize(ClusterChange):
    """Set resource amounts of a node, or the requests of a pod or of all pods of a workload
    (`kind/name`).

    Pods on a node that becomes too small stay. Resized pods are recreated.
    """

    target: str
    amounts: Mapping[str, Quantity]
    container: str = ""
    """Name of the container; may be empty if the pods have one."""

    def __post_init__(self) -> None:
        check_field(self, "target", str, "a node, or kind/name of a pod or a workload")
        check_field(self, "container", str, "the name of a container")
        check_field(self, "amounts", Mapping, "amounts by resource, such as {'cpu': '8'}")
        given: Mapping[Any, Any] = self.amounts
        for name, amount in given.items():
            if not isinstance(name, str) or not isinstance(amount, str | int | float):
                expected = "amounts by resource, such as {'cpu': '8'}"
                raise TypeError(f"Resize: amounts: expected {expected}; got {name!r}: {amount!r}")
            check_amount(name, amount, f"{name}={amount}")

    @property
    def text(self) -> str:
        given = " ".join(f"{name}={amount}" for name, amount in self.amounts.items())
        container = f" --container {self.container}" if self.container else ""
        return f"resize {self.target} {given}{container}"

    def apply(self, stage: Stage) -> None:
        if "/" in self.target.removeprefix("node/"):
            ref = find_ref(stage.cluster, self.target)
            if ref.kind != "Node":
                self._resize_pods(stage, ref)
                return
        if self.container:
            raise InputError(
                f"expected a pod or a workload with --container; got node {self.target}"
            )
        node = find_node(stage.cluster, self.target)
        units = allocatable_units(self.amounts)
        for name in self.amounts:
            if name not in units:
                known = ", ".join(node.allocatable)
                raise InputError(f'expected a resource such as {known}; got "{name}"')
        capacity = {name: max(units[name], node.capacity.get(name, 0)) for name in units}
        stage.update_node(
            node.replace(
                allocatable={**node.allocatable, **units}, capacity={**node.capacity, **capacity}
            )
        )

    def _resize_pods(self, stage: Stage, ref: TimelineTarget) -> None:
        pods = pods_of(stage.cluster, ref)
        if not pods:
            raise InputError(f"expected a pod or a workload that has pods; got {self.target}")
        refused: dict[str, int] = {}
        for pod in pods:
            spec = replace(pod.spec, containers=_resized(pod, self.amounts, self.container))
            resized = successor_of(pod).with_spec(spec)
            refusal = stage.simulation.refusal_of(resized, pod)
            if refusal:
                reason = refusal.partition(" is forbidden: ")[2] or refusal
                refused[reason] = refused.get(reason, 0) + 1
            else:
                stage.exchange(pod, resized, "it is resized")
        for reason, number in refused.items():
            are = "pod of {} is" if number == 1 else "pods of {} are"
            stage.notes.append(f"{number} {are.format(self.target)} not resized: {reason}")


def parse_resources(texts: Iterable[str]) -> dict[str, Quantity]:
    """Parse `cpu=8 memory=32Gi`; raises InputError otherwise."""
    amounts: dict[str, Quantity] = {}
    for text in texts:
        name, _, amount = text.partition("=")
        check_amount(name, amount, text)
        amounts[name] = amount
    return amounts


def check_amount(name: str, amount: Any, shown: Any) -> None:
    """Raise InputError unless the amount is a quantity that is not negative."""
    try:
        is_good = bool(name) and amount not in ("", None) and parse_quantity(amount) >= 0
    except ValueError:
        is_good = False
    if not is_good:
        raise InputError(f'expected resource=quantity, such as cpu=8 or memory=32Gi; got "{shown}"')


def pods_of(cluster: MemoryCluster, ref: TimelineTarget) -> list[Pod]:
    """The pod itself, or the pods of a workload; for a Deployment, those of its ReplicaSets."""
    owners = {(ref.kind, ref.name)}
    if ref.kind == "Deployment":
        owners |= {
            ("ReplicaSet", found.name)
            for found in cluster.list("ReplicaSet", ref.namespace)
            if any(o.kind == ref.kind and o.name == ref.name for o in found.owner_references)
        }
    return [
        pod
        for pod in cluster.list("Pod", ref.namespace)
        if is_there(pod) and ((ref.kind, pod.name) == ("Pod", ref.name) or _owner_of(pod) in owners)
    ]


def _owner_of(pod: Pod) -> tuple[str, str] | None:
    owner = pod.controller
    return None if owner is None else (owner.kind, owner.name)


def _resized(pod: Pod, amounts: Mapping[str, Quantity], name: str) -> tuple[Container, ...]:
    """The pod's containers: the named one, or the only one, with other requests."""
    containers = pod.spec.containers or ()
    names = [container.name for container in containers]
    if not name and len(containers) == 1:
        name = names[0]
    if name not in names:
        known = ", ".join(names)
        got = f'got "{name}"' if name else "got none"
        raise InputError(f"--container: expected one of {known} ({pod.key}); {got}")
    return tuple(_with_requests(one, amounts) if one.name == name else one for one in containers)


def _with_requests(container: Container, amounts: Mapping[str, Quantity]) -> Container:
    """The container with other requests; limits below them are raised."""
    known = container.resources or ResourceRequirements()
    limits = known.limits
    if limits is not None:
        raised = {
            name: amount
            for name, amount in amounts.items()
            if name in limits and parse_quantity(limits[name]) < parse_quantity(amount)
        }
        limits = {**limits, **raised}
    requests = {**(known.requests or {}), **amounts}
    return replace(container, resources=replace(known, requests=requests, limits=limits))
