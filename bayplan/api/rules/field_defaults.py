"""Field defaults: the API server's defaults of fields that do not affect placement.

Defaults that depend on other fields are here, the others in `default_values.txt`, and those that affect placement in
`cluster.memory.admission`, shared with the simulator. Mirrors pkg/apis/*/v1/{defaults,conversion}.go.
All functions modify the given tree, which has no zero values.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from pkgutil import get_data
from typing import Any

from ..schema.canonical import Canonical
from ..schema.fields import FIELDS
from ..schema.unknown import schema_type
from .data_rules import GROUP as RBAC
from .data_rules import set_groups

Tree = dict[str, Any]

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
AFFINITY_SECONDS = 10_800
MAX_INT32 = 2**31 - 1
_DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
"""Group and kind of the objects that `dataSource` of a claim may name."""


def child(tree: Tree, name: str) -> Tree:
    """The object at `name`, created if absent."""
    found = tree.get(name)
    if not isinstance(found, dict):
        found = tree[name] = {}
    return found


def fill(tree: Tree, **values: Any) -> None:
    """Set a field that is not set."""
    for name, value in values.items():
        if tree.get(name) is None:
            tree[name] = value


def default_pod_spec(spec: Tree) -> None:
    """Defaults of every pod and template."""
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            fill(container, imagePullPolicy=_pull_policy(container.get("image")))
    for volume in spec.get("volumes") or ():
        if len(volume) == 1:  # a name and no source
            volume["emptyDir"] = {}
        if volume.get("image"):
            fill(volume["image"], pullPolicy=_pull_policy(volume["image"].get("reference")))
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _pull_policy(image: Any) -> str:
    """Always for the latest image, and for one without tag and digest."""
    name, _, digest = str(image or "").partition("@")
    path, _, tag = name.rpartition("/")[2].partition(":")
    is_latest = tag == "latest" or not (tag or digest or path != path.lower())
    return "Always" if image and is_latest else "IfNotPresent"


def _default_template(spec: Tree) -> None:
    default_pod_spec(child(child(spec, "template"), "spec"))


def _pod(tree: Tree) -> None:
    spec = child(tree, "spec")
    default_pod_spec(spec)
    fill(spec, enableServiceLinks=True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _default_rolling(spec: Tree, field: str, **limits: Any) -> None:
    strategy = child(spec, field)
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), **limits)
    _default_template(spec)


def _replication_controller(tree: Tree) -> None:
    spec = child(tree, "spec")
    if spec.get("template") is None:
        return
    _default_template(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels:
        fill(spec, selector=dict(labels))
        fill(tree["metadata"], labels=dict(labels))


def _stateful_set(tree: Tree) -> None:
    spec = child(tree, "spec")
    strategy = child(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        child(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        fill(strategy["rollingUpdate"], partition=0)
    _default_template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        fill(child(claim, "status"), phase="Pending")


def _job(tree: Tree) -> None:
    spec = child(tree, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(
        spec,
        parallelism=1,
        backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
    )
    _default_template(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels:
        fill(tree["metadata"], labels=dict(labels))


def _service(tree: Tree) -> None:
    spec = child(tree, "spec")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = child(child(spec, "sessionAffinityConfig"), "clientIP")
        fill(config, timeoutSeconds=AFFINITY_SECONDS)
    for port in spec.get("ports") or ():
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port")
    if spec["type"] != "ExternalName":
        if spec.get("clusterIP") == "None" and not spec.get("selector"):  # endpoints of any family
            fill(spec, ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack")
        fill(
            spec, internalTrafficPolicy="Cluster", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack"
        )
    is_open = spec["type"] in ("NodePort", "LoadBalancer")
    if is_open or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
        balancer = (tree.get("status") or {}).get("loadBalancer") or {}
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip"):
                fill(ingress, ipMode="VIP")


def _secret(tree: Tree) -> None:
    for name, text in (tree.pop("stringData", None) or {}).items():
        child(tree, "data")[name] = base64.b64encode(str(text).encode()).decode()


def _claim(tree: Tree) -> None:
    """Set the source of the data in both of its fields."""
    spec = tree["spec"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and (source.get("apiGroup") or "", source.get("kind")) not in _DATA_SOURCES:
        del spec["dataSource"]
        source = None
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)


def _node(tree: Tree) -> None:
    if tree["spec"].get("podCIDR"):
        fill(tree["spec"], podCIDRs=[tree["spec"]["podCIDR"]])
    status = tree.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _autoscaler(tree: Tree) -> None:
    behavior = child(tree, "spec").get("behavior")
    if behavior is None:
        return
    all_of_it = {"type": "Percent", "value": 100, "periodSeconds": 15}
    four = {"type": "Pods", "value": 4, "periodSeconds": 15}
    up, down = child(behavior, "scaleUp"), child(behavior, "scaleDown")
    fill(up, stabilizationWindowSeconds=0, selectPolicy="Max", policies=[four, all_of_it])
    fill(down, selectPolicy="Max", policies=[dict(all_of_it)])


def _limit_range(tree: Tree) -> None:
    for item in child(tree, "spec").get("limits") or ():
        if item.get("type") == "Container":
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            found = {"default": limits, "defaultRequest": requests}
            item |= {name: amounts for name, amounts in found.items() if amounts}


def _default_devices(spec: Tree) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        wanted = [request["exactly"]] if request.get("exactly") else []
        for one in (*wanted, *(request.get("firstAvailable") or ())):
            if one.get("allocationMode") == "ExactCount":
                fill(one, count=1)


def _network_policy(tree: Tree) -> None:
    spec = child(tree, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _taint_times(tree: Tree, now: str) -> None:
    """Set the time of the taints of devices."""
    spec = child(tree, "spec")
    of_devices = [taint for one in spec.get("devices") or () for taint in one.get("taints") or ()]
    for taint in (*filter(None, [spec.get("taint")]), *of_devices):
        fill(taint, timeAdded=now)


def _within(default: Callable[[Tree], None], *path: str) -> Callable[[Tree], None]:
    """Sets the defaults of the object at a path."""

    def set_defaults(tree: Tree) -> None:
        for step in path:
            tree = child(tree, step)
        default(tree)

    return set_defaults


_DEFAULTS: dict[str, Callable[[Tree], None]] = {
    f"clusterrolebindings.{RBAC}": set_groups,
    "cronjobs.batch": _within(_default_template, "spec", "jobTemplate", "spec"),
    "daemonsets.apps": _within(
        partial(_default_rolling, field="updateStrategy", maxUnavailable=1, maxSurge=0), "spec"
    ),
    "deployments.apps": _within(
        partial(_default_rolling, field="strategy", maxUnavailable="25%", maxSurge="25%"), "spec"
    ),
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "jobs.batch": _job,
    "limitranges": _limit_range,
    "networkpolicies.networking.k8s.io": _network_policy,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "pods": _pod,
    "podtemplates": _default_template,
    "replicasets.apps": _within(_default_template, "spec"),
    "replicationcontrollers": _replication_controller,
    "resourceclaims.resource.k8s.io": _within(_default_devices, "spec"),
    "resourceclaimtemplates.resource.k8s.io": _within(_default_devices, "spec", "spec"),
    f"rolebindings.{RBAC}": set_groups,
    "secrets": _secret,
    "services": _service,
    "statefulsets.apps": _stateful_set,
}
_TIMED = frozenset({"devicetaintrules.resource.k8s.io", "resourceslices.resource.k8s.io"})


def apply_defaults(storage: str, tree: Tree, type_name: str = "", now: str = "") -> None:
    """Remove zero values, and set the defaults of objects of the resource.

    `type_name` is the type of a built-in object, if it has no `kind`; `now` the time for fields that are times.
    """
    type_name = type_name or schema_type(str(tree.get("apiVersion")), str(tree.get("kind")))
    if not type_name:
        return
    CANONICAL.strip(tree, type_name)
    default = _DEFAULTS.get(storage)
    if default is not None:
        default(tree)
    if now and storage in _TIMED:
        _taint_times(tree, now)


def complete(tree: Tree, type_name: str) -> None:
    """Add the fields that every object of a built-in type has."""
    if type_name:
        CANONICAL.complete(tree, type_name)


def canonical_status(tree: Tree, type_name: str) -> None:
    """Give the status of a built-in object its canonical form."""
    field = FIELDS.of(type_name).get("status")
    if field is not None and tree.get("status") is not None:
        CANONICAL.strip(tree["status"], field.type.name)
        CANONICAL.complete(tree["status"], field.type.name)


def _read() -> dict[str, dict[str, bytes]]:
    table: dict[str, dict[str, bytes]] = {}
    text = get_data(__name__, "default_values.txt")
    assert text is not None, "modules are read from files"
    for line in text.decode().splitlines():
        type_name, field, value = line.split(" ", 2)
        table.setdefault(type_name, {})[field] = value.encode()
    return table


CANONICAL = Canonical(_read())
"""The form of built-in objects, with these values."""
