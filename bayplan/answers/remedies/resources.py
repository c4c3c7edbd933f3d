"""Resources: remedies for lack of resources, host ports, and nominated pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...api.pod import Pod
from ...api.resources import PODS, to_unit
from ...api.text.quantity import format_quantity, parse_quantity
from ..manifest_changes import ObjectChange, pointer
from .proposal import (
    MOST_PODS,
    Ask,
    Remedy,
    delete_pod,
    last_resort,
    leaving,
    put,
    remedy,
    remove,
    replace,
)

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient "


def make_room(ask: Ask) -> Iterator[Remedy]:
    """Remove other pods, lower the pod's requests, or enlarge the node."""
    missing = _missing(ask)
    if not missing:
        return
    capacity, wanted = ask.node.allocatable, ask.pod.requests
    larger = _larger_node(ask, missing)
    smaller = list(_smaller_pod(ask, missing))
    if all(wanted.get(r, 1) <= capacity.get(r, 0) for r in missing):
        yield from _free(ask, missing)
        yield from smaller
        yield larger
    else:
        yield larger
        yield from smaller


def _missing(ask: Ask) -> dict[str, int]:
    """The amounts of the rejected resources that the node lacks."""
    node, found = ask.node_info, dict[str, int]()
    for reason in ask.reasons:
        if reason == TOO_MANY_PODS:
            found[PODS] = len(node.pods) + 1 - node.allocatable.get(PODS, 0)
        elif reason.startswith(INSUFFICIENT):
            name = reason.removeprefix(INSUFFICIENT)
            free = node.allocatable.get(name, 0) - node.requested.get(name, 0)
            found[name] = ask.pod.requests.get(name, 0) - free
    return {name: amount for name, amount in found.items() if amount > 0}


def written(amounts: Mapping[str, int]) -> str:
    """`300m cpu and 1Gi memory`."""
    parts = [
        f"{amount} pod{'s' * (amount != 1)}"
        if name == PODS
        else f"{format_quantity(amount, name)} {name}"
        for name, amount in amounts.items()
    ]
    return " and ".join(parts)


def _gives(pod: Pod, name: str) -> int:
    return 1 if name == PODS else pod.usage.get(name, 0)


def _free(ask: Ask, missing: Mapping[str, int]) -> Iterator[Remedy]:
    chosen = pods_giving(ask.pods_here(), missing)
    if chosen is None or len(chosen) > MOST_PODS:
        return
    yield remedy(
        f"free {written(missing)} on {ask.node.name}",
        *[
            delete_pod(pod, f"gives {written({n: _gives(pod, n) for n in missing})}")
            for pod in chosen
        ],
    )


def pods_giving(pods: Sequence[Pod], missing: Mapping[str, int]) -> list[Pod] | None:
    """A small set of pods that together hold the missing amounts, least important first; None if all are not enough."""
    enough = [pod for pod in pods if all(_gives(pod, n) >= a for n, a in missing.items())]
    if enough:
        leaving = [pod for pod in enough if pod.is_terminating]
        lowest = min(pod.priority for pod in enough)
        cheap = leaving or [pod for pod in enough if pod.priority == lowest]
        return [min(cheap, key=lambda pod: sum(_gives(pod, n) / a for n, a in missing.items()))]
    left, chosen, rest = dict(missing), list[Pod](), list(pods)
    while any(amount > 0 for amount in left.values()):
        open_ = {n: a for n, a in left.items() if a > 0}

        def share(pod: Pod, open_: Mapping[str, int] = open_) -> float:
            return sum(min(_gives(pod, n), a) / a for n, a in open_.items())

        best = max(rest, key=share, default=None)
        if best is None or share(best) == 0:
            return None
        rest.remove(best)
        chosen.append(best)
        for name in left:
            left[name] -= _gives(best, name)
    for pod in list(chosen):
        others = [other for other in chosen if other is not pod]
        if all(sum(_gives(o, n) for o in others) >= a for n, a in missing.items()):
            chosen = others
    return chosen


def _larger_node(ask: Ask, missing: Mapping[str, int]) -> Remedy:
    node, changes = ask.node, list[ObjectChange]()
    goal = f"{written(missing)} more on {node.name}"
    if node.allocatable == node.capacity:  # the manifest may have no allocatable
        before = {n: format_quantity(a, n) for n, a in node.allocatable.items()}
        to = {n: format_quantity(node.allocatable.get(n, 0) + a, n) for n, a in missing.items()}
        text = " and ".join(f"raise {name} on {node.name} to {much}" for name, much in to.items())
        path = pointer("status", "allocatable")
        return remedy(goal, replace(node, path, before, before | to, text))
    for name, amount in missing.items():
        have = node.allocatable.get(name)
        path, much = (
            pointer("status", "allocatable", name),
            format_quantity((have or 0) + amount, name),
        )
        known = None if have is None else format_quantity(have, name)
        changes.append(put(node, path, known, much, f"raise {name} on {node.name} to {much}"))
    return remedy(goal, *changes)


def _smaller_pod(ask: Ask, missing: Mapping[str, int]) -> Iterator[Remedy]:
    """Lower the requests of the container that requests most, if it requests enough."""
    if PODS in missing:
        return
    pod, changes = ask.pod, list[ObjectChange]()
    for name, amount in missing.items():
        asked = [
            (to_unit(name, parse_quantity(c.requests[name])), i)
            for i, c in enumerate(pod.spec.containers or ())
            if name in c.requests
        ]
        most, i = max(asked, default=(0, 0))
        if most < amount:
            return
        container = (pod.spec.containers or ())[i]
        path = pointer("spec", "containers", i, "resources", "requests", name)
        to = format_quantity(most - amount, name)
        text = f"request {to} {name} instead of {container.requests[name]}"
        changes.append(replace(pod, path, container.requests[name], to, text))
    yield remedy(f"request {written(missing)} less", *changes)


def free_ports(ask: Ask) -> Iterator[Remedy]:
    """Remove the pods that hold the ports, or drop the pod's host ports."""
    wanted = ask.pod.spec.host_ports
    holders = [
        pod
        for pod in ask.pods_here()
        if any(mine.conflicts_with(theirs) for mine in wanted for theirs in pod.spec.host_ports)
    ]
    ports = ", ".join(
        sorted(
            {
                f"{mine.port}/{mine.protocol}"
                for pod in holders
                for theirs in pod.spec.host_ports
                for mine in wanted
                if mine.conflicts_with(theirs)
            }
        )
    )
    goal = f"free host port {ports} on {ask.node.name}"
    yield leaving(goal, holders, f"has host port {ports}", len(holders))
    changes = []
    for field, containers in (
        ("containers", ask.pod.spec.containers),
        ("initContainers", ask.pod.spec.init_containers),
    ):
        for i, container in enumerate(containers or ()):
            for j, port in enumerate(container.ports or ()):
                if port.host_port:
                    path = pointer("spec", field, i, "ports", j, "hostPort")
                    text = f"drop host port {port.host_port}"
                    changes.append(remove(ask.pod, path, port.host_port, text))
    yield last_resort("drop the host ports", *changes)


def end_nominations(ask: Ask) -> Iterator[Remedy]:
    """Drop the nominations of pods with equal or higher priority to the node."""
    rivals = [
        pod
        for pod in ask.view.scheduler.queue.nominator.nominated_pods(ask.node.name)
        if pod.uid != ask.pod.uid and pod.priority >= ask.pod.priority
    ]
    path = pointer("status", "nominatedNodeName")
    yield remedy(
        f"end the nomination of other pods to {ask.node.name}",
        *[
            remove(pod, path, ask.node.name, f"no longer keep a place for pod {pod.key}")
            for pod in rivals
        ],
    )
    yield remedy(
        f"wait until the pods nominated to {ask.node.name} are elsewhere",
        *[delete_pod(pod.with_node(ask.node.name), "is nominated there") for pod in rivals],
    )
