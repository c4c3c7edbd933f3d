"""References: resolve the objects named in a question, with similar names on failure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from ..api.custom import CustomObject
from ..api.kinds import KINDS
from ..api.node import Node
from ..cluster.memory import MemoryCluster
from ..errors import InputError
from ..sim.timeline import KIND as TIMELINE
from ..sim.timeline import TimelineTarget

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


def find_node(cluster: MemoryCluster, name: str) -> Node:
    """The node called `name`; raises InputError with similar names when there is none."""
    node = cluster.get("Node", "", name.removeprefix("node/"))
    if node is None:
        raise InputError(
            f'expected a node of the cluster; got "{name}"{near(name, _names(cluster))}'
        )
    assert isinstance(node, Node)
    return node


def find_ref(cluster: MemoryCluster, text: Any) -> TimelineTarget:
    """The object named by `kind/name` or `kind/namespace/name`.

    Without a namespace it is the one in `default`, or the only one of that name. Raises InputError,
    with similar names, when it is missing or ambiguous.
    """
    parts = text.split("/") if isinstance(text, str) else []
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(f"{EXPECTED}; got {_shown(text)}")
    kind = find_kind(parts[0]) or _find_custom(cluster, parts[0].lower())
    if kind is None:
        raise InputError(f"{EXPECTED} of a known kind; got {_shown(text)}")
    found = [obj for obj in cluster.list(kind) if obj.name == parts[-1]]
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
