"""Network cells: the columns of services' and networks' kinds that are computed, and of role bindings.

Mirrors pkg/printers/internalversion/printers.go, as `cells`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .cells import NONE, UNKNOWN, UNSET, Row, age, selector_text

Tree = Mapping[str, Any]
MAX_SHOWN = 3


def autoscaler(tree: Tree, now: datetime) -> Row:
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    about = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        tree["metadata"]["name"],
        f"{about.get('kind')}/{about.get('name')}",
        _targets(spec.get("metrics") or ()),
        UNSET if least is None else str(least),
        str(spec.get("maxReplicas")),
        str(status.get("currentReplicas") or 0),
        age(tree, now),
    ]


def _targets(metrics: Any) -> str:
    """The targets; the current values are unknown, as nothing is measured."""
    found = []
    for metric in metrics:
        kind = str(metric.get("type") or "")
        source = metric.get(kind[:1].lower() + kind[1:]) or {}
        target = source.get("target") or {}
        wanted = target.get("averageUtilization")
        text = f"{wanted}%" if wanted is not None else target.get("averageValue")
        name = f"{source['name']}: " if "name" in source else ""
        found.append(f"{name}{UNKNOWN}/{text or target.get('value') or UNKNOWN}")
    more = f" + {len(found) - MAX_SHOWN} more..." if len(found) > MAX_SHOWN else ""
    return ", ".join(found[:MAX_SHOWN]) + more or UNKNOWN


def ingress(tree: Tree, now: datetime) -> Row:
    spec = tree.get("spec") or {}
    hosts = [str(rule["host"]) for rule in spec.get("rules") or () if rule.get("host")]
    more = f" + {len(hosts) - MAX_SHOWN} more..." if len(hosts) > MAX_SHOWN else ""
    balancer = (tree.get("status") or {}).get("loadBalancer") or {}
    addresses = [one.get("ip") or one.get("hostname") for one in balancer.get("ingress") or ()]
    return [
        tree["metadata"]["name"],
        spec.get("ingressClassName") or NONE,
        ",".join(hosts[:MAX_SHOWN]) + more or "*",
        ",".join(map(str, addresses)),
        "80, 443" if spec.get("tls") else "80",
        age(tree, now),
    ]


def network_policy(tree: Tree, now: datetime) -> Row:
    selector = (tree.get("spec") or {}).get("podSelector") or {}
    return [tree["metadata"]["name"], selector_text(selector), age(tree, now)]


def ip_address(tree: Tree, now: datetime) -> Row:
    parent = (tree.get("spec") or {}).get("parentRef") or {}
    steps = (parent.get(name) for name in ("group", "resource", "namespace", "name"))
    return [tree["metadata"]["name"], "/".join(str(step) for step in steps if step)]


def endpoints(tree: Tree, now: datetime) -> Row:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in tree.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - MAX_SHOWN} more..." if len(found) > MAX_SHOWN else ""
    return [tree["metadata"]["name"], ",".join(found[:MAX_SHOWN]) + more or NONE, age(tree, now)]


def role_binding(tree: Tree, now: datetime) -> Row:
    role, subjects = tree.get("roleRef") or {}, tree.get("subjects") or ()

    def named(kind: str) -> str:
        return ", ".join(
            f"{one['namespace']}/{one['name']}" if one.get("namespace") else str(one.get("name"))
            for one in subjects
            if one.get("kind") == kind
        )

    return [
        tree["metadata"]["name"],
        f"{role.get('kind')}/{role.get('name')}",
        age(tree, now),
        named("User"),
        named("Group"),
        named("ServiceAccount"),
    ]


def quota(tree: Tree, now: datetime) -> Row:
    status = tree.get("status") or {}
    used = status.get("used") or {}
    shown: dict[bool, list[str]] = {True: [], False: []}
    for name, limit in sorted((status.get("hard") or {}).items()):
        text = f"{name}: {used.get(name, 0)}/{limit}"
        shown[name.startswith("limits.")].append(text)
    return [
        tree["metadata"]["name"],
        ", ".join(shown[False]),
        ", ".join(shown[True]),
        age(tree, now),
    ]
