"""Pod search: resolve a name from the command line to pods."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from ..api.custom_workloads import CustomWorkload
from ..api.meta import KubeObject, OwnerReference, controller_of
from ..api.pod import Pod
from ..api.pod_groups import pod_group_of
from ..api.wire.kinds import group_of
from ..api.workload_kinds import known_workload_kinds
from ..api.workloads import Job
from ..errors import InputError
from ..trials import TrialCluster
from .references import custom_kind, find_kind

WORKLOADS = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"}
)
NAMESPACED = WORKLOADS | {"Pod", "PodGroup"}
"""Kinds whose names a question may give."""
OWNED = ("ReplicaSet", "Job", "StatefulSet", "Pod")
"""Kinds whose objects belong to custom workloads."""
EXPECTED = (
    "expected [pod/]NAME, NAMESPACE/NAME, podgroup/NAME or a workload such as deployment/NAME"
)
NEAR = 5
MAX_LEVELS = 6
"""Limit on the owners that are followed upwards: a pod, its job, its job set and so on."""


def find_pods(
    view: TrialCluster,
    target: str,
    namespace: str | None = None,
    customs: Sequence[CustomWorkload] = (),
) -> list[Pod]:
    """The pods that `target` names: `web-7`, `pod/web-7`, `shop/web-7`, `pod/shop/web-7`,
    `deployment/web`, `rayjob/train`.

    `customs` are the custom workloads of the input, which may own others of them. Without a namespace, all namespaces
    are searched and the name must be unique. Raises InputError with similar names.
    """
    parts = target.split("/")
    kind = find_kind(parts[0]) if len(parts) > 1 else None
    is_pod = kind == "Pod"
    if len(parts) > 1 and kind not in WORKLOADS:
        more = [(one.manifest_kind, group_of(one.api_version)) for one in customs]
        more += ((kind, group) for group, kind in known_workload_kinds())
        kind = None if is_pod else custom_kind(view.cluster, parts[0], OWNED, more)
    if len(parts) == 2 and view.cluster.get("Pod", *parts) is not None:
        kind = None  # a namespace may have the name of a kind
    if kind is not None:
        within = namespace if len(parts) == 2 or not parts[1] else parts[1]
        return _of_workload(view, kind, parts[-1], within, customs)
    if is_pod:
        parts = parts[1:]
    if len(parts) not in (1, 2) or not all(parts):
        raise InputError(f'{target or "pod"}: {EXPECTED}; got "{target}"')
    if len(parts) == 2:
        namespace = _one_namespace(target, namespace, parts[0])
    if not is_pod:
        kind = _kind_of_name(view, parts[-1], namespace)
        if kind is not None:
            return _of_workload(view, kind, parts[-1], namespace, customs)
    return [_named(view.pods(), parts[-1], namespace)]


def _kind_of_name(view: TrialCluster, name: str, namespace: str | None) -> str | None:
    """The kind of the only workload of that name, which `simulate` lists by it; None if a pod has the name, too."""
    if any(pod.name == name and namespace in (None, pod.namespace) for pod in view.pods()):
        return None
    found = [
        obj.kind
        for kind in sorted(WORKLOADS)
        for obj in view.cluster.list(kind)
        if obj.name == name and namespace in (None, obj.namespace)
    ]
    return found[0] if len(found) == 1 else None


def find_group(
    view: TrialCluster, target: str, namespace: str | None = None
) -> tuple[str, str] | None:
    """Namespace and name of the pod group that `podgroup/red` or `podgroup/shop/red` names; None for other targets.

    A group exists when its object does, or a pod that names it. Raises InputError with similar names.
    """
    word, *parts = target.split("/")
    if find_kind(word) != "PodGroup" or not parts:
        return None
    if len(parts) > 2 or not all(parts):
        raise InputError(
            f'{target}: expected podgroup/NAME or podgroup/NAMESPACE/NAME; got "{target}"'
        )
    if len(parts) == 2:
        namespace = _one_namespace(target, namespace, parts[0])
    known = dict.fromkeys((group.namespace, group.name) for group in view.cluster.list("PodGroup"))
    for pod in view.pods():
        if (name := pod_group_of(pod)) is not None:
            known[pod.namespace, name] = None
    found = [key for key in known if key[1] == parts[-1] and namespace in (None, key[0])]
    if len(found) == 1:
        return found[0]
    if found:
        raise _several(f'PodGroup "{parts[-1]}"', "one", (space for space, _ in found))
    hint = _such_as(_similar(parts[-1], dict.fromkeys(name for _, name in known)))
    raise InputError(
        f'PodGroup "{parts[-1]}": expected one of the cluster{hint}; got no such group'
    )


def _several(what: str, expected: str, namespaces: Iterable[str]) -> InputError:
    spaces = ", ".join(sorted(namespaces))
    return InputError(f"{what}: expected {expected} of that name; got one in each of {spaces}")


def _similar(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, list(known), n=NEAR, cutoff=0.5)


def _such_as(names: Sequence[str]) -> str:
    return f", such as {', '.join(names)}" if names else ""


def _one_namespace(target: str, option: str | None, given: str) -> str:
    if option is not None and option != given:
        raise InputError(f'--namespace: expected the namespace of "{target}"; got "{option}"')
    return given


def _named(pods: Sequence[Pod], name: str, namespace: str | None) -> Pod:
    found = [p for p in pods if p.name == name and namespace in (None, p.namespace)]
    if len(found) == 1:
        return found[0]
    key = name if namespace is None else f"{namespace}/{name}"
    if found:
        raise _several(f'pod "{name}"', "one pod", (pod.namespace for pod in found))
    raise InputError(
        f'pod "{key}": expected a pod of the cluster{_near(name, pods)}; got no such pod'
    )


def _near(name: str, pods: Sequence[Pod]) -> str:
    """Similar names."""
    keys = {pod.name: pod.key for pod in pods}
    close = _similar(name, keys) or [one for one in keys if name in one or one in name][:NEAR]
    return _such_as([keys[known] for known in close])


def _of_workload(
    view: TrialCluster,
    kind: str,
    name: str,
    namespace: str | None,
    customs: Sequence[CustomWorkload],
) -> list[Pod]:
    """The pods of a workload, those of its ReplicaSets, Jobs or custom workloads included."""
    own = [one for one in customs if one.manifest_kind == kind]
    there: list[KubeObject] = [*view.cluster.list(kind), *own]
    owners = [obj for obj in there if obj.name == name and namespace in (None, obj.namespace)]
    spaces = {obj.namespace for obj in owners}
    if len(spaces) > 1:
        raise _several(f'{kind} "{name}"', "one", spaces)
    above = {(one.manifest_kind, one.namespace, one.name): one for one in customs}
    found = [pod for pod in view.pods() if _belongs(view, pod, (kind, name), namespace, above)]
    if not found:
        problem = "one that has pods" if owners else "one of the cluster"
        hint = "" if owners else _such_as(_similar(name, sorted({obj.name for obj in there})))
        why = _refused(view, kind, name, namespace)
        if any(isinstance(obj, Job) and obj.spec.suspend for obj in owners):
            why = ": spec.suspend is true"
        if owners and kind == "DaemonSet" and not why:
            why = ": no node is eligible for them by selector, affinity and taints"
        raise InputError(f'{kind} "{name}": expected {problem}{hint}; got no pod of it{why}')
    return found


def _refused(view: TrialCluster, kind: str, name: str, namespace: str | None) -> str:
    """End of a message: why a limit range or a quota refuses the pods of the workload; empty if none does."""
    for refusal in view.settlement.refused:
        if (refusal.kind, refusal.name) == (kind, name) and namespace in (None, refusal.namespace):
            return f", refused: {refusal.message}"
    return ""


def _belongs(
    view: TrialCluster,
    pod: Pod,
    wanted: tuple[str, str],
    namespace: str | None,
    customs: Mapping[tuple[str, str, str], CustomWorkload],
) -> bool:
    """Whether one of the owners of a pod, up to some levels, has the wanted kind and name."""
    owner: OwnerReference | None = pod.controller
    if namespace not in (None, pod.namespace):
        return False
    for _ in range(MAX_LEVELS):
        if owner is None:
            return False
        if (owner.kind, owner.name) == wanted:
            return True
        key = owner.kind, pod.namespace, owner.name
        above = view.cluster.get(*key) or customs.get(key)
        if above is None:
            # A ReplicaSet missing from the dump is named after its Deployment, a RayCluster after its RayJob.
            base = owner.name.rpartition("-")[0]
            is_custom = find_kind(owner.kind) is None and find_kind(wanted[0]) is None
            return (owner.kind == "ReplicaSet" and ("Deployment", base) == wanted) or (
                is_custom and owner.name.startswith(f"{wanted[1]}-{owner.kind.lower()}")
            )
        owner = controller_of(above.owner_references)
    return False
