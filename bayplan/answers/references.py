"""References: resolve the objects named in a question, with similar names on failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from ..api.custom import CustomObject
from ..api.meta import controller_of
from ..api.node import Node
from ..api.selectors import Requirement, parse_label_query
from ..api.wire.kinds import KINDS, group_of
from ..api.workloads import ReplicaSet
from ..cluster.memory.object_store import MemoryCluster
from ..cluster.objects.object_index import ObjectIndex
from ..errors import InputError
from ..manifests.timeline import KIND as TIMELINE
from ..manifests.timeline import TimelineTarget

SHORT_NAMES = {
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "no": "Node",
    "ns": "Namespace",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pvc": "PersistentVolumeClaim",
    "rc": "ReplicationController",
    "rs": "ReplicaSet",
    "sts": "StatefulSet",
}
EXPECTED = "expected kind/name or kind/namespace/name"
NEAR, CUTOFF = 3, 0.5
ANY = "*"


def find_node(cluster: MemoryCluster, name: str) -> Node:
    """The node called `name`; raises InputError with similar names when there is none."""
    node = cluster.get("Node", "", name.removeprefix("node/"))
    if node is None:
        raise InputError(
            f'expected a node of the cluster; got "{name}"{near(name, _names(cluster))}'
        )
    assert isinstance(node, Node)
    return node


def find_nodes(cluster: MemoryCluster, names: Sequence[str], selector: str = "") -> list[Node]:
    """The nodes with these names or patterns (`gpu-*`), or all, that have the labels of `selector`.

    Raises InputError when a name or pattern fits no node, or no node has the labels.
    """
    found: dict[str, Node] = {}
    for name in names or (ANY,):
        if not is_pattern(name):
            found[name] = find_node(cluster, name)
            continue
        wanted = name.removeprefix("node/")
        matching = [node for node in cluster.list("Node") if fnmatchcase(node.name, wanted)]
        if not matching:
            raise InputError(
                f'expected nodes of the cluster; got "{name}"{near(name, _names(cluster))}'
            )
        found.update((node.name, node) for node in matching)
    chosen = {node.name: node for node in found.values()}
    return _selected(list(chosen.values()), selector, "node")


def find_refs(cluster: MemoryCluster, text: Any, selector: str = "") -> list[TimelineTarget]:
    """The objects named by `kind/pattern` or `kind/namespace/pattern` that have the labels of `selector`.

    Without a pattern it is the one object that `find_ref` finds; with a selector a kind alone stands for all of them.
    """
    if selector and isinstance(text, str) and "/" not in text:
        text = f"{text}/{ANY}"
    parts = text.split("/") if isinstance(text, str) else []
    if not parts or not is_pattern(parts[-1]):
        refs = [find_ref(cluster, text)]
    else:
        kind = _kind_of(cluster, text, parts)
        space = parts[1] if len(parts) == 3 else ANY
        refs = [
            TimelineTarget(kind, obj.namespace, obj.name)
            for obj in cluster.list(kind)
            if fnmatchcase(obj.name, parts[-1]) and fnmatchcase(obj.namespace, space)
        ]
        if not refs:
            known = [f"{parts[0]}/{obj.key}" for obj in cluster.list(kind)]
            raise InputError(f"expected objects of the cluster; got {text}{near(text, known)}")
    if not selector:
        return refs
    objects = {(ref.namespace, ref.name): ref for ref in refs}
    stored = [cluster.get(ref.kind, ref.namespace, ref.name) for ref in refs]
    chosen = _selected([obj for obj in stored if obj is not None], selector, refs[0].kind.lower())
    return [objects[obj.namespace, obj.name] for obj in chosen]


def is_pattern(name: str) -> bool:
    """Whether the name is a pattern with `*`, `?` or `[...]`."""
    return any(sign in name for sign in "*?[")


def parse_selector(text: str) -> list[Requirement]:
    """The conditions of a label selector as after `kubectl -l`; raises InputError when it is invalid."""
    try:
        return parse_label_query(text)
    except ValueError as error:
        raise InputError(
            f'selector: expected labels such as zone=a,!spot; got "{text}" ({error})'
        ) from None


def _selected(objects: list[Any], selector: str, what: str) -> list[Any]:
    """The objects with the labels of `selector`; raises InputError when there is none."""
    conditions = parse_selector(selector)
    chosen = [obj for obj in objects if all(one.matches(obj.labels) for one in conditions)]
    if not chosen:
        labels = [obj.labels for obj in objects]
        raise InputError(
            f"expected a {what} with {selector}; got none{_values(conditions, labels)}"
        )
    return chosen


def _values(conditions: Iterable[Requirement], labels: Iterable[Mapping[str, str]]) -> str:
    """`; zone is a, b or c`: the existing values of the first label of the selector."""
    for condition in conditions:
        values = sorted({each[condition.key] for each in labels if condition.key in each})
        if not values:
            return f"; no label {condition.key} there"
        more = f" and {len(values) - NEAR:,} more" if len(values) > NEAR else ""
        return f"; {condition.key} is {', '.join(values[:NEAR])}{more}"
    return ""


def find_ref(cluster: MemoryCluster, text: Any) -> TimelineTarget:
    """The object named by `kind/name` or `kind/namespace/name`.

    Without a namespace it is the one in `default`, or the only one of that name. Raises InputError,
    with similar names, when it is missing or ambiguous.
    """
    parts = text.split("/") if isinstance(text, str) else []
    kind = "ReplicaSet" if is_custom_workload(cluster, parts) else _kind_of(cluster, text, parts)
    found = [obj for obj in cluster.list(kind) if obj.name == parts[-1]]
    if kind == "ReplicaSet" and find_kind(parts[0]) is None:
        found = _sets_of(cluster, parts)
    if len(parts) == 3:
        found = [obj for obj in found if obj.namespace == parts[1]]
    elif len(found) > 1:
        found = [obj for obj in found if obj.namespace == "default"] or found
    if len(found) == 1:
        return TimelineTarget(kind, found[0].namespace, found[0].name)
    if found:
        names = ", ".join(f"{parts[0]}/{obj.key}" for obj in found[:NEAR])
        raise InputError(f"expected one object; got {text}, which may be {names}")
    known = [f"{parts[0]}/{obj.key}" for obj in cluster.list(kind)]
    wanted = "/".join(parts)
    raise InputError(f"expected an object of the cluster; got {wanted}{near(wanted, known)}")


def is_custom_workload(cluster: ObjectIndex, parts: Sequence[str]) -> bool:
    """Whether the parts of `kind/name` name a custom workload, such as a Rollout, that replica sets stand for."""
    is_unknown = len(parts) in (2, 3) and find_kind(parts[0]) is None
    return is_unknown and bool(_sets_of(cluster, parts))


def custom_kind(
    cluster: ObjectIndex,
    word: str,
    owned: Iterable[str] = ("ReplicaSet",),
    more: Iterable[tuple[str, str]] = (),
) -> str | None:
    """The kind of a custom workload for a word such as `rayjob`, `rayjobs` or `rayjobs.ray.io`: one that owns objects
    of the kinds `owned`, or one of `more`, kinds with their groups.
    """
    known = dict.fromkeys(more)
    for obj in (obj for kind in owned for obj in cluster.list(kind)):
        owner = controller_of(obj.owner_references)
        if owner is not None and find_kind(owner.kind) is None:
            known[owner.kind, group_of(owner.api_version)] = None
    for kind, group in known:
        name = kind.lower()
        plurals = (name, f"{name}s", f"{name}es")
        begin, _, end = word.lower().partition(".")
        if begin in plurals and (not end or f".{end}".endswith(f".{group}")):
            return kind
    return None


def _sets_of(cluster: ObjectIndex, parts: Sequence[str]) -> list[ReplicaSet]:
    """The replica sets of a custom workload; of several in a namespace, the largest."""
    kind = custom_kind(cluster, parts[0])
    largest: dict[str, ReplicaSet] = {}
    for each in cluster.list("ReplicaSet"):
        owner = controller_of(each.owner_references)
        if owner is None or (owner.kind, owner.name) != (kind, parts[-1]):
            continue
        known = largest.get(each.namespace)
        if known is None or (each.spec.replicas or 0) > (known.spec.replicas or 0):
            largest[each.namespace] = each
    return list(largest.values())


def _kind_of(cluster: MemoryCluster, text: Any, parts: Sequence[str]) -> str:
    """The kind that the text begins with; raises InputError when it is unknown."""
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(f"{EXPECTED}; got {_shown(text)}")
    kind = find_kind(parts[0]) or _find_custom(cluster, parts[0].lower())
    if kind is None:
        raise InputError(f"{EXPECTED} of a known kind; got {_shown(text)}")
    return kind


def find_kind(word: str) -> str | None:
    """The kind for a word such as `pod`, `pods` or `deploy`."""
    word = word.lower()
    if word in SHORT_NAMES:
        return SHORT_NAMES[word]
    names = {name.lower(): name for name in KINDS if name != TIMELINE}
    return (
        names.get(word) or names.get(word.removesuffix("s")) or names.get(word.removesuffix("es"))
    )


def _find_custom(cluster: MemoryCluster, word: str) -> str | None:
    """The custom kind of some object for its name, its plural, or the kind of its manifest."""
    for kind in cluster.kinds():
        for obj in cluster.list(kind):
            if not isinstance(obj, CustomObject):
                break
            if word in (kind, obj.resource.plural, obj.resource.kind.lower()):
                return kind
    return None


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean node-1 or node-2?`, or the existing names when none is similar."""
    names = list(known)
    close = get_close_matches(name, names, NEAR, CUTOFF)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    if not names:
        return "; there is none"
    more = f" and {len(names) - NEAR:,} more" if len(names) > NEAR else ""
    return f"; there are {', '.join(names[:NEAR])}{more}"


def _names(cluster: MemoryCluster) -> list[str]:
    return [node.name for node in cluster.list("Node")]


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else "none" if value is None else str(value)
