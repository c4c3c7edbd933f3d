"""Defaults: the API server's defaults of fields that do not affect placement.

The other defaults are in `cluster.memory.admission`, shared with the simulator. Mirrors
pkg/apis/{core,apps,batch,...}/v1/ defaults.go. All functions modify the given tree.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from .default_values import set_values
from .rbac_rules import GROUP as RBAC
from .rbac_rules import set_groups

Tree = dict[str, Any]

FILE_MODE = 0o644
_MODED_VOLUMES = ("secret", "configMap", "projected", "downwardAPI")


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
    """Defaults of every pod."""
    fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        terminationGracePeriodSeconds=30,
        securityContext={},
        schedulerName="default-scheduler",
    )
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Tree) -> None:
    image = container.get("image") or ""
    name, _, tag = image.rpartition("/")[2].partition(":")
    is_latest = "@" not in name and tag in ("", "latest")
    fill(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if is_latest else "IfNotPresent",
    )
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe):
            _default_probe(container[probe])
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            fill(reference, apiVersion="v1")


def _default_probe(probe: Tree) -> None:
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if probe.get("httpGet"):
        fill(probe["httpGet"], path="/", scheme="HTTP")


def _default_volume(volume: Tree) -> None:
    if len(volume) == 1:  # a name and no source
        volume["emptyDir"] = {}
    for source in _MODED_VOLUMES:
        if volume.get(source):
            fill(volume[source], defaultMode=FILE_MODE)
    if volume.get("hostPath"):
        fill(volume["hostPath"], type="")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        fill(child(template, "spec"), volumeMode="Filesystem")


def _default_template(spec: Tree) -> None:
    default_pod_spec(child(child(spec, "template"), "spec"))


def _pod(tree: Tree) -> None:
    spec = child(tree, "spec")
    default_pod_spec(spec)
    fill(spec, enableServiceLinks=True)


def _deployment(tree: Tree) -> None:
    spec = child(tree, "spec")
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600, strategy={})
    strategy = spec["strategy"]
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _default_template(spec)


def _replica_set(tree: Tree) -> None:
    spec = child(tree, "spec")
    fill(spec, replicas=1)
    _default_template(spec)


def _replication_controller(tree: Tree) -> None:
    spec = child(tree, "spec")
    fill(spec, replicas=1)
    _default_template(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels:
        fill(spec, selector=dict(labels))
        fill(tree["metadata"], labels=dict(labels))


def _stateful_set(tree: Tree) -> None:
    spec = child(tree, "spec")
    fill(
        spec,
        replicas=1,
        revisionHistoryLimit=10,
        podManagementPolicy="OrderedReady",
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"},
        updateStrategy={},
    )
    strategy = spec["updateStrategy"]
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), partition=0)
    _default_template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim", status={"phase": "Pending"})
        fill(child(claim, "spec"), volumeMode="Filesystem")


def _daemon_set(tree: Tree) -> None:
    spec = child(tree, "spec")
    fill(spec, revisionHistoryLimit=10, updateStrategy={})
    strategy = spec["updateStrategy"]
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    _default_template(spec)


def _job(tree: Tree) -> None:
    spec = child(tree, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(
        spec,
        parallelism=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="TerminatingOrFailed",
    )
    _default_template(spec)


def _cron_job(tree: Tree) -> None:
    spec = child(tree, "spec")
    fill(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    _default_template(child(child(spec, "jobTemplate"), "spec"))


def _service(tree: Tree) -> None:
    spec = child(tree, "spec")
    fill(spec, type="ClusterIP", sessionAffinity="None")
    for port in spec.get("ports") or ():
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port")
    if spec["type"] != "ExternalName":
        fill(
            spec,
            internalTrafficPolicy="Cluster",
            ipFamilies=["IPv4"],
            ipFamilyPolicy="SingleStack",
        )
    if spec["type"] in ("NodePort", "LoadBalancer"):
        fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)


def _secret(tree: Tree) -> None:
    fill(tree, type="Opaque")
    for name, text in (tree.pop("stringData", None) or {}).items():
        child(tree, "data")[name] = base64.b64encode(str(text).encode()).decode()


def _volume(tree: Tree) -> None:
    fill(child(tree, "spec"), volumeMode="Filesystem")
    source = tree["spec"].get("hostPath")
    if source is not None:
        fill(source, type="")


def _claim(tree: Tree) -> None:
    fill(child(tree, "spec"), volumeMode="Filesystem")


def _priority_class(tree: Tree) -> None:
    fill(tree, preemptionPolicy="PreemptLowerPriority")


def _csi_driver(tree: Tree) -> None:
    fill(
        child(tree, "spec"),
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        requiresRepublish=False,
        seLinuxMount=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
    )


def _limit_range(tree: Tree) -> None:
    for item in child(tree, "spec").get("limits") or ():
        if item.get("type") == "Container":
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            item |= {"default": limits, "defaultRequest": requests}


def _resource_claim(tree: Tree) -> None:
    _default_devices(child(tree, "spec"))


def _resource_claim_template(tree: Tree) -> None:
    _default_devices(child(child(tree, "spec"), "spec"))


def _default_devices(spec: Tree) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        wanted = [request["exactly"]] if request.get("exactly") else []
        for one in (*wanted, *(request.get("firstAvailable") or ())):
            fill(one, allocationMode="ExactCount")
            if one["allocationMode"] == "ExactCount":
                fill(one, count=1)


def _network_policy(tree: Tree) -> None:
    spec = child(tree, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


_DEFAULTS: dict[str, Callable[[Tree], None]] = {
    f"clusterrolebindings.{RBAC}": set_groups,
    "cronjobs.batch": _cron_job,
    "csidrivers.storage.k8s.io": _csi_driver,
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _deployment,
    "jobs.batch": _job,
    "limitranges": _limit_range,
    "networkpolicies.networking.k8s.io": _network_policy,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "pods": _pod,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "replicasets.apps": _replica_set,
    "replicationcontrollers": _replication_controller,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourceclaimtemplates.resource.k8s.io": _resource_claim_template,
    f"rolebindings.{RBAC}": set_groups,
    "secrets": _secret,
    "services": _service,
    "statefulsets.apps": _stateful_set,
}


def apply_defaults(resource: str, tree: Tree) -> None:
    """Set the defaults of objects of the resource."""
    default = _DEFAULTS.get(resource)
    if default is not None:
        default(tree)
    set_values(resource, tree)
