"""Node: remedies for rejections by node name, taints, labels and features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...api.node import Node
from ...api.selectors import NAME_FIELD, NodeSelector, NodeSelectorTerm, Requirement, parse_integer
from ...api.taints import HARD_EFFECTS, Taint, tolerated
from ..manifest_changes import ObjectChange, pointer
from .proposal import Ask, Remedy, add, in_words, last_resort, plain, put, remedy, remove, replace

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
PLACES = frozenset({"hostname", "region", "zone"})
"""Prefixes of labels that state a node's location; these are not changed for a pod."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FEATURES = ("UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits")


def change_node_name(ask: Ask) -> Iterator[Remedy]:
    """Change the node name that the pod requires."""
    pod, node = ask.pod, ask.node
    text = f"ask for node {node.name}"
    yield remedy(text, replace(pod, pointer("spec", "nodeName"), pod.node_name, node.name, text))


def uncordon(ask: Ask) -> Iterator[Remedy]:
    """Uncordon the node, with its taint."""
    pod, node = ask.pod, ask.node
    changes = [
        remove(
            node, pointer("spec", "unschedulable"), node.unschedulable, f"uncordon node {node.name}"
        )
    ]
    changes += _without_taints(node, [t for t in node.taints if t.key == UNSCHEDULABLE_TAINT])
    yield remedy(f"uncordon node {node.name}", *changes)
    toleration = {"key": UNSCHEDULABLE_TAINT, "operator": "Exists", "effect": "NoSchedule"}
    text = "tolerate cordoned nodes"
    yield remedy(text, add(pod, pointer("spec", "tolerations", "-"), toleration, text))


def bear_taints(ask: Ask) -> Iterator[Remedy]:
    """Add tolerations to the pod, or remove the node's taints."""
    pod, node = ask.pod, ask.node
    taints = [
        taint
        for taint in node.taints
        if taint.effect in HARD_EFFECTS and not tolerated(taint, pod.tolerations)
    ]
    names = ", ".join(map(str, taints))
    yield remedy(
        f"tolerate taint {names}",
        *[
            add(
                pod,
                pointer("spec", "tolerations", "-"),
                _toleration(taint),
                f"tolerate taint {taint}",
            )
            for taint in taints
        ],
    )
    yield remedy(f"remove taint {names} from node {node.name}", *_without_taints(node, taints))


def _toleration(taint: Taint) -> dict[str, str]:
    if not taint.value:
        return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


def _without_taints(node: Node, taints: Iterable[Taint]) -> list[ObjectChange]:
    """Remove the taints, last first, so that the other indexes stay valid."""
    wanted = list(taints)
    return [
        remove(
            node,
            pointer("spec", "taints", i),
            plain(taint),
            f"remove taint {taint} from node {node.name}",
        )
        for i, taint in reversed(list(enumerate(node.taints)))
        if taint in wanted
    ]


def declare_features(ask: Ask) -> Iterator[Remedy]:
    """Add the features that the pod needs to the node."""
    node = ask.node
    path = pointer("status", "declaredFeatures", "-")
    yield remedy(
        f"a node like {node.name} that has the features the pod uses",
        *[
            add(node, path, feature, f"feature {feature} on node {node.name}")
            for feature in FEATURES
            if feature not in node.declared_features
        ],
    )


def meet_affinity(ask: Ask) -> Iterator[Remedy]:
    """Add the required labels to the node, or relax the pod's requirements."""
    labelled = list(_label_node(ask))
    on_pod = list(_change_pod(ask))
    moved = [
        found
        for found in labelled
        if any(is_place(change.path.replace("~1", "/")) for change in found.changes)
    ]
    yield from (found for found in labelled if found not in moved)
    yield from on_pod
    yield from moved
    yield from _drop_affinity(ask)


def is_place(key: str) -> bool:
    """Whether a label states a node's location."""
    return key.rpartition("/")[2] in PLACES


def _label_node(ask: Ask) -> Iterator[Remedy]:
    """Label the node for all requirements, or only for those of the pod or of the configuration."""
    spec, node = ask.pod.spec, ask.node
    selector = spec.node_selector or {}
    plain_keys = tuple(Requirement(key=k, operator="In", values=(v,)) for k, v in selector.items())
    own, added = spec.required_node_selector, _added(ask)
    found: list[dict[str, str | None]] = []
    for start, selectors in ((plain_keys, (own, added)), ((), (added,)), (plain_keys, (own,))):
        for requirements in _options(start, selectors, node.name):
            labels = labels_meeting(requirements, node.labels)
            if labels and labels not in found:
                found.append(labels)
    found.sort(key=len)
    for labels in found[:3]:
        yield in_words(label_changes(node, labels))


def _options(
    start: tuple[Requirement, ...], selectors: Iterable[NodeSelector | None], name: str
) -> list[tuple[Requirement, ...]]:
    """Alternative sets of label requirements for the node called `name`, each complete."""
    options = [start]
    for selector in selectors:
        if selector is not None:
            # those that labels alone can satisfy
            terms = [one.expressions for one in selector.usable_terms if one.matches_name(name)]
            options = [(*have, *term) for have in options for term in terms][:8]
    return options


def _added(ask: Ask) -> NodeSelector | None:
    """Requirements that the configuration adds for the pod."""
    args = ask.view.plugin_args(ask.pod, "NodeAffinity")
    affinity = getattr(args, "added_affinity", None)
    return affinity.required if affinity is not None else None


def labels_meeting(
    requirements: Iterable[Requirement], labels: Mapping[str, str]
) -> dict[str, str | None] | None:
    """The changes of `labels` that satisfy all requirements; the value None removes the label.

    None when that is impossible.
    """
    wanted = list(requirements)
    changed = dict[str, str | None]()
    for requirement in wanted:
        value = changed.get(requirement.key, labels.get(requirement.key))
        if requirement.matches_value(value):
            continue
        if requirement.key in changed:
            return None
        found, value = _value_for(requirement)
        if not found:
            return None
        changed[requirement.key] = value
    now = {k: v for k, v in {**labels, **changed}.items() if v is not None}
    return changed if all(r.matches(now) for r in wanted) else None


def _value_for(requirement: Requirement) -> tuple[bool, str | None]:
    """Whether a value satisfies the requirement, and such a value."""
    values = requirement.values or ()
    match requirement.operator:
        case "In":
            return bool(values), values[0] if values else None
        case "NotIn" | "DoesNotExist":
            return True, None
        case "Exists":
            return True, "true"
        case "Gt" | "Lt":
            bound = parse_integer(values[0]) if values else None
            step = 1 if requirement.operator == "Gt" else -1
            return bound is not None, None if bound is None else str(bound + step)
    return False, None


def label_changes(obj: Any, labels: Mapping[str, str | None]) -> list[ObjectChange]:
    """The changes that set an object's labels, and remove those that are None."""
    kind = obj.kind if isinstance(obj.kind, str) else ""
    what = f"{kind.lower()} {obj.name}"
    changes = []
    for key, value in labels.items():
        path, before = pointer("metadata", "labels", key), obj.labels.get(key)
        if value is not None:
            changes.append(put(obj, path, before, value, f"label {what} with {key}={value}"))
        elif before is not None:
            changes.append(remove(obj, path, before, f"remove label {key} from {what}"))
    return changes


def _change_pod(ask: Ask) -> Iterator[Remedy]:
    """Relax the pod's node selector or affinity so that it matches the node."""
    pod, labels = ask.pod, ask.node.labels
    changes = []
    for key, value in (pod.spec.node_selector or {}).items():
        if labels.get(key) != value:
            path, now = pointer("spec", "nodeSelector", key), labels.get(key)
            if now is None:
                text = f"no longer select {key}={value}"
                changes.append(remove(pod, path, value, text))
            else:
                text = f"select {key}={now} instead of {value}"
                changes.append(replace(pod, path, value, now, text))
    required = pod.spec.required_node_selector
    if required is None or required.matches(labels, ask.node.name):
        yield remedy("select the node by its labels", *changes)
        return
    terms = sorted(enumerate(required.terms), key=lambda t: _misses(t[1], ask.node))
    for i, term in terms[:2]:
        widened = list(_widened(ask, i, term))
        if widened:
            yield remedy("let the required node affinity match the node", *changes, *widened)


def _misses(term: NodeSelectorTerm, node: Node) -> int:
    missed = sum(not r.matches(node.labels) for r in term.expressions)
    return missed + sum(not r.matches_value(node.name) for r in term.fields)


def _widened(ask: Ask, i: int, term: NodeSelectorTerm) -> Iterator[ObjectChange]:
    """The changes that make a term match the node."""
    pod, node = ask.pod, ask.node
    terms = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    for name, requirements, labels in (
        ("matchExpressions", term.expressions, node.labels),
        ("matchFields", term.fields, {NAME_FIELD: node.name}),
    ):
        for j, requirement in reversed(list(enumerate(requirements))):
            if requirement.matches(labels):
                continue
            path, value = (*terms, i, name, j), labels.get(requirement.key)
            before = plain(requirement)
            if requirement.operator == "In" and value is not None and name == "matchExpressions":
                text = f"let the node affinity allow {requirement.key}={value}"
                yield add(pod, pointer(*path, "values", "-"), value, text)
            elif name == "matchFields" and requirement.operator == "In":
                text = f"let the node affinity name {node.name}"
                yield replace(
                    pod, pointer(*path, "values"), list(requirement.values or ()), [node.name], text
                )
            else:
                text = f"drop the condition on {requirement.key} from the node affinity"
                yield remove(pod, pointer(*path), before, text)


def _drop_affinity(ask: Ask) -> Iterator[Remedy]:
    """Drop the pod's node requirements."""
    pod, changes = ask.pod, []
    required = pod.spec.required_node_selector
    if required is not None:
        path = pointer("spec", "affinity", "nodeAffinity", REQUIRED)
        changes.append(remove(pod, path, plain(required), "drop the required node affinity"))
    for key, value in (pod.spec.node_selector or {}).items():
        if ask.node.labels.get(key) != value:
            text = f"no longer select {key}={value}"
            changes.append(remove(pod, pointer("spec", "nodeSelector", key), value, text))
    yield last_resort("drop what the pod asks of nodes", *changes)


def lift_gates(ask: Ask) -> Iterator[Remedy]:
    """Lift the scheduling gates."""
    gates = ask.pod.spec.scheduling_gates or ()
    changes = [
        remove(
            ask.pod, pointer("spec", "schedulingGates", i), plain(gate), f"lift gate {gate.name}"
        )
        for i, gate in enumerate(gates)
    ]
    names = ", ".join(gate.name for gate in gates)
    yield remedy(f"lift the scheduling gates {names}", *changes)


def shrink_gang(ask: Ask) -> Iterator[Remedy]:
    """Reduce the gang's minimum, or remove the pod from its group."""
    group_ref = ask.pod.spec.scheduling_group
    name = group_ref.pod_group_name if group_ref is not None else None
    group = ask.view.cluster.get("PodGroup", ask.pod.namespace, name) if name else None
    if group is not None:
        key = ("PodGroup", ask.pod.namespace, name or "")
        known = len(ask.view.scheduler.cache.pod_groups.members(key))
        path = pointer("spec", "schedulingPolicy", "gang", "minCount")
        text = f"let the gang begin with {known} pods"
        yield remedy(
            f"let gang {name} begin with fewer pods",
            replace(group, path, group.min_count, known, text),
        )
    if group_ref is not None:
        path = pointer("spec", "schedulingGroup")
        yield remedy(
            "schedule the pod without its gang",
            remove(ask.pod, path, plain(group_ref), "take the pod out of its group"),
        )
