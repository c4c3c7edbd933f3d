"""Pod search: resolve a name from the command line to pods."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ..api.meta import OwnerReference
from ..api.pod import Pod
from ..api.pod_groups import pod_group_of
from ..errors import InputError
from .cluster_view import ClusterView
from .references import custom_kind

POD_WORDS = frozenset({"pod", "pods", "po"})
GROUP_WORDS = frozenset({"podgroup", "podgroups"})
WORKLOAD_WORDS = {
    "deployment": "Deployment",
    "deployments": "Deployment",
    "deploy": "Deployment",
    "replicaset": "ReplicaSet",
    "replicasets": "ReplicaSet",
    "rs": "ReplicaSet",
    "statefulset": "StatefulSet",
    "statefulsets": "StatefulSet",
    "sts": "StatefulSet",
    "daemonset": "DaemonSet",
    "daemonsets": "DaemonSet",
    "ds": "DaemonSet",
    "job": "Job",
    "jobs": "Job",
    "replicationcontroller": "ReplicationController",
    "rc": "ReplicationController",
}
EXPECTED = (
    "expected [pod/]NAME, NAMESPACE/NAME, podgroup/NAME or a workload such as deployment/NAME"
)
NEAR = 5


def find_pods(view: ClusterView, target: str, namespace: str | None = None) -> list[Pod]:
    """The pods that `target` names: `web-7`, `pod/web-7`, `shop/web-7`, `pod/shop/web-7`,
    `deployment/web`.

    Without a namespace, all namespaces are searched and the name must be unique. Raises InputError
    with similar names.
    """
    parts = target.split("/")
    word = parts[0].lower()
    kind = (WORKLOAD_WORDS.get(word) or custom_kind(view.cluster, word)) if len(parts) > 1 else None
    if kind is not None and len(parts) == 2:
        return _of_workload(view, kind, parts[1], namespace)
    if kind is not None:
        return _of_workload(view, kind, parts[-1], parts[1])
    if len(parts) > 1 and word in POD_WORDS:
        parts = parts[1:]
    if len(parts) not in (1, 2) or not all(parts):
        raise InputError(f'{target or "pod"}: {EXPECTED}; got "{target}"')
    if len(parts) == 2:
        namespace = _one_namespace(target, namespace, parts[0])
    return [_named(view.pods(), parts[-1], namespace)]


def find_group(
    view: ClusterView, target: str, namespace: str | None = None
) -> tuple[str, str] | None:
    """Namespace and name of the pod group that `podgroup/red` or `podgroup/shop/red` names; None for other targets.

    A group exists when its object does, or a pod that names it. Raises InputError with similar names.
    """
    word, *parts = target.split("/")
    if word.lower() not in GROUP_WORDS or not parts:
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
        spaces = ", ".join(sorted(space for space, _ in found))
        raise InputError(
            f'PodGroup "{parts[-1]}": expected one of that name; got one in each of {spaces}'
        )
    close = difflib.get_close_matches(parts[-1], [name for _, name in known], n=NEAR, cutoff=0.5)
    hint = f", such as {', '.join(dict.fromkeys(close))}" if close else ""
    raise InputError(
        f'PodGroup "{parts[-1]}": expected one of the cluster{hint}; got no such group'
    )


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
        spaces = ", ".join(sorted(pod.namespace for pod in found))
        raise InputError(
            f'pod "{name}": expected one pod of that name; got one in each of {spaces}'
        )
    raise InputError(
        f'pod "{key}": expected a pod of the cluster{_near(name, pods)}; got no such pod'
    )


def _near(name: str, pods: Sequence[Pod]) -> str:
    """Similar names."""
    keys = {pod.name: pod.key for pod in pods}
    close = difflib.get_close_matches(name, keys, n=NEAR, cutoff=0.5)
    if not close:
        close = [known for known in keys if name in known or known in name][:NEAR]
    return f", such as {', '.join(keys[known] for known in close)}" if close else ""


def _of_workload(view: ClusterView, kind: str, name: str, namespace: str | None) -> list[Pod]:
    """The pods of a workload, those of its ReplicaSets or Jobs included."""
    owners = [
        obj
        for obj in view.cluster.list(kind)
        if obj.name == name and namespace in (None, obj.namespace)
    ]
    spaces = {obj.namespace for obj in owners}
    if len(spaces) > 1:
        known = ", ".join(sorted(spaces))
        raise InputError(f'{kind} "{name}": expected one of that name; got one in each of {known}')
    found = [pod for pod in view.pods() if _belongs(view, pod, kind, name, namespace)]
    if not found:
        problem = "one that has pods" if owners else "one of the cluster"
        names = sorted({obj.name for obj in view.cluster.list(kind)})
        close = difflib.get_close_matches(name, names, n=NEAR, cutoff=0.5)
        hint = f", such as {', '.join(close)}" if close and not owners else ""
        why = _refused(view, kind, name, namespace)
        raise InputError(f'{kind} "{name}": expected {problem}{hint}; got no pod of it{why}')
    return found


def _refused(view: ClusterView, kind: str, name: str, namespace: str | None) -> str:
    """Why a limit range or a quota keeps its pods out of the cluster, to end a message; empty if none does."""
    for refusal in view.settlement.refused:
        if (refusal.kind, refusal.name) == (kind, name) and namespace in (None, refusal.namespace):
            return f", refused: {refusal.message}"
    return ""


def _belongs(view: ClusterView, pod: Pod, kind: str, name: str, namespace: str | None) -> bool:
    if namespace not in (None, pod.namespace):
        return False
    owner: OwnerReference | None = pod.controller
    if owner is None:
        return False
    if (owner.kind, owner.name) == (kind, name):
        return True
    above = view.cluster.get(owner.kind, pod.namespace, owner.name)
    if above is not None:
        grand = [o for o in above.metadata.owner_references or () if o.controller]
        return any((o.kind, o.name) == (kind, name) for o in grand)
    # A ReplicaSet missing from the dump is named after its Deployment.
    return (
        kind == "Deployment"
        and owner.kind == "ReplicaSet"
        and owner.name.rpartition("-")[0] == name
    )
