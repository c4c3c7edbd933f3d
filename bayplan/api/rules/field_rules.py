"""Field rules: values of fields that kube-apiserver refuses and that do not affect placement.

Mirrors parts of pkg/apis/*/validation, in its words: words that are not among those of a field, ports out of range,
and fields that exclude each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..text.name_faults import key_faults
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    not_found_value,
    required,
    unsupported_value,
)

Tree = Mapping[str, Any]

PORT_RULE = "must be between 1 and 65535, inclusive"
MAX_PRIORITY = 1_000_000_000
MAX_INDEXES = 100_000
"""The most pods of an Indexed Job at once, and the most indexes of it that may fail."""
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_MOUNTED = (
    *("gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi"),
    *("cinder", "cephfs", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
)
"""Sources of volumes that are mounted with options."""
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_CONTAINERS = ("initContainers", "containers")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL = ("Always", "IfNotPresent", "Never")
_SERVICES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ACCESS = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUMES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "azureFile", "configMap", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image"),
)
"""Sources of volumes, in the order in which kube-apiserver checks them."""


def spec_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the spec of a pod or of a template."""
    for field in _CONTAINERS:
        for i, container in enumerate(spec.get(field) or ()):
            yield from _container_causes(container, f"{path}.{field}[{i}]")
    for i, volume in enumerate(spec.get("volumes") or ()):
        for source in [name for name in _VOLUMES if volume.get(name) is not None][1:]:
            problem = "may not specify more than 1 volume type"
            yield forbidden_field(f"{path}.volumes[{i}].{source}", problem)
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if isinstance(needed, Mapping) and not needed.get("nodeSelectorTerms"):
        where = f"{path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        problem = "must have at least one node selector term"
        yield required(f"{where}.nodeSelectorTerms", problem)


def _container_causes(container: Tree, path: str) -> Iterator[Cause]:
    yield from word_causes(container, "imagePullPolicy", _PULL, path)
    names: set[str] = set()
    for i, port in enumerate(container.get("ports") or ()):
        name = str(port.get("name") or "")
        if name in names:
            yield duplicate(f"{path}.ports[{i}].name", name)
        names |= {name} - {""}
        if not port.get("containerPort"):
            yield required(f"{path}.ports[{i}].containerPort")
        else:
            yield from port_causes(port, "containerPort", f"{path}.ports[{i}]")
        if port.get("hostPort"):
            yield from port_causes(port, "hostPort", f"{path}.ports[{i}]")
        yield from word_causes(port, "protocol", _PROTOCOLS, f"{path}.ports[{i}]")
    for i, variable in enumerate(container.get("env") or ()):
        if variable.get("value") and variable.get("valueFrom"):
            problem = "may not be specified when `value` is not empty"
            yield invalid_value(f"{path}.env[{i}].valueFrom", "", problem)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        for action in ("httpGet", "tcpSocket"):
            asked = (container.get(probe) or {}).get(action)
            if isinstance(asked, Mapping):
                yield from port_causes(asked, "port", f"{path}.{probe}.{action}")


def host_port_causes(spec: Tree, path: str, is_pod: bool) -> Iterator[Cause]:
    """Yield host ports that two containers share, or that differ from the container's in the host's network."""
    taken: set[str] = set()
    for i, container in enumerate(spec.get("containers") or ()):
        for j, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort") or 0
            key = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{number}"
            if number and key in taken:
                yield duplicate(f"{path}.containers[{i}].ports[{j}].hostPort", key)
            taken.add(key)
    for i, container in enumerate(spec.get("containers") or () if spec.get("hostNetwork") else ()):
        for j, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort") or 0
            is_set = number or (is_pod and "hostPort" in port)
            if is_set and number != port.get("containerPort"):
                problem = "must match `containerPort` when `hostNetwork` is true"
                yield invalid_value(f"{path}.containers[{i}].ports[{j}].hostPort", number, problem)


def mount_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the mounts of volumes that the pod does not have."""
    names = {volume.get("name") for volume in spec.get("volumes") or ()}
    for field in _CONTAINERS:
        for i, container in enumerate(spec.get(field) or ()):
            for j, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") and mount["name"] not in names:
                    where = f"{path}.{field}[{i}].volumeMounts[{j}].name"
                    yield not_found_value(where, mount["name"])


def template_mount_causes(tree: Tree) -> Iterator[Cause]:
    """The same for the template of a workload; those of a StatefulSet are not checked."""
    template = ((tree.get("spec") or {}).get("template") or {}).get("spec") or {}
    yield from mount_causes(template, "spec.template.spec")


def word_causes(tree: Tree, field: str, words: Sequence[str], path: str) -> Iterator[Cause]:
    """Yield the fault of a field that has another word than these."""
    word = tree.get(field)
    if word and word not in words:
        yield unsupported_value(f"{path}.{field}", str(word), words)


def port_causes(tree: Tree, field: str, path: str) -> Iterator[Cause]:
    """Yield the fault of a field whose number is no port."""
    number = tree.get(field)
    if isinstance(number, int) and not 0 < number < 65536:
        yield invalid_value(f"{path}.{field}", number, PORT_RULE)


def deployment_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Deployment's strategy."""
    strategy = (tree.get("spec") or {}).get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate" and rolling is not None:
        problem = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field("spec.strategy.rollingUpdate", problem)
    elif isinstance(rolling, Mapping):
        given = rolling.get("maxUnavailable")
        if given in (0, "0%") and rolling.get("maxSurge") in (0, "0%"):
            problem = "may not be 0 when `maxSurge` is 0"
            yield invalid_value("spec.strategy.rollingUpdate.maxUnavailable", given, problem)


def stateful_set_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a StatefulSet's policies."""
    policy = (tree.get("spec") or {}).get("podManagementPolicy")
    if policy and policy not in ("OrderedReady", "Parallel"):
        problem = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", policy, problem)


def service_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Service besides those of its ports' numbers."""
    spec = tree.get("spec") or {}
    yield from word_causes(spec, "type", _SERVICES, "spec")
    for i, port in enumerate(spec.get("ports") or ()):
        yield from port_causes(port, "targetPort", f"spec.ports[{i}]")


def claim_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the access modes of a claim that do not exist."""
    for mode in (tree.get("spec") or {}).get("accessModes") or ():
        if mode not in _ACCESS:
            yield unsupported_value("spec.accessModes", str(mode), _ACCESS)


def autoscaler_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a HorizontalPodAutoscaler's limits and target."""
    spec = tree.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if most < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if isinstance(least, int) and most < least:
        yield invalid_value(
            "spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"
        )
    if not (spec.get("scaleTargetRef") or {}).get("apiVersion"):
        problem = "apiVersion must specify API group"
        yield invalid_value("spec.scaleTargetRef.apiVersion", "", problem)
    for field in ("kind", "name"):
        if not (spec.get("scaleTargetRef") or {}).get(field):
            yield required(f"spec.scaleTargetRef.{field}")


def ingress_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of the paths of an Ingress."""
    for i, rule in enumerate((tree.get("spec") or {}).get("rules") or ()):
        for j, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            where = f"spec.rules[{i}].http.paths[{j}]"
            if not path.get("pathType"):
                yield required(f"{where}.pathType", "pathType must be specified")
            yield from word_causes(
                path, "pathType", ("Exact", "ImplementationSpecific", "Prefix"), where
            )


def network_policy_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the types of a NetworkPolicy that do not exist."""
    for i, word in enumerate((tree.get("spec") or {}).get("policyTypes") or ()):
        if word not in ("Ingress", "Egress"):
            yield unsupported_value(f"spec.policyTypes[{i}]", str(word), ("Ingress", "Egress"))


def key_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the invalid keys of a ConfigMap or Secret."""
    for field in ("data", "binaryData"):
        for key in tree.get(field) or ():
            if not _KEY.fullmatch(key):
                yield invalid_value(f"{field}[{key}]", key, _KEY_RULE)


def priority_class_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the fault of a value that only classes of the system may have."""
    is_system = str(tree["metadata"].get("name") or "").startswith("system-")
    value = tree.get("value")
    if isinstance(value, int) and value > MAX_PRIORITY and not is_system:
        problem = f"maximum allowed value of a user defined priority is {MAX_PRIORITY}"
        yield forbidden_field("value", problem)


def indexed_job_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the numbers of a Job whose completion mode is Indexed."""
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > MAX_INDEXES:
        problem = f"must be less than or equal to {MAX_INDEXES} when completion mode is Indexed"
        yield invalid_value(f"{path}.parallelism", parallelism, problem)
    if completions is not None and failed is not None and failed > completions:
        problem = "must be less than or equal to completions"
        yield invalid_value(f"{path}.maxFailedIndexes", failed, problem)
    if failed is not None and failed > MAX_INDEXES:
        problem = f"must be less than or equal to {MAX_INDEXES}"
        yield invalid_value(f"{path}.maxFailedIndexes", failed, problem)
    if (completions or 0) <= MAX_INDEXES or spec.get("backoffLimitPerIndex") is None:
        return
    when = f"when completions are above {MAX_INDEXES} and used with backoff limit per index"
    if failed is None:
        problem = f"must be specified when completions is above {MAX_INDEXES}"
        yield required(f"{path}.maxFailedIndexes", problem)
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
        if value > MAX_INDEXES // 10:
            problem = f"must be less than or equal to {MAX_INDEXES // 10} {when}"
            yield invalid_value(f"{path}.{field}", value, problem)


def limit_range_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of the types of a LimitRange, and of the fields that each may have."""
    types: set[str] = set()
    for i, limit in enumerate((tree.get("spec") or {}).get("limits") or ()):
        kind, path = str(limit.get("type") or ""), f"spec.limits[{i}]"
        faults = key_faults(kind)
        for fault in faults:
            yield invalid_value(f"{path}.type", kind, fault)
        if not faults and "/" not in kind and kind not in _LIMIT_TYPES:
            problem = "must be a standard limit type or fully qualified"
            yield invalid_value(f"{path}.type", kind, problem)
        if kind in types:
            yield duplicate(f"{path}.type", kind)
        types.add(kind)
        for field in ("default", "defaultRequest") if kind == "Pod" else ():
            if limit.get(field):
                problem = "may not be specified when `type` is 'Pod'"
                yield forbidden_field(f"{path}.{field}", problem)
        bounds = {**(limit.get("min") or {}), **(limit.get("max") or {})}
        if kind == "PersistentVolumeClaim" and "storage" not in bounds:
            problem = (
                "either minimum or maximum storage value is required, but neither was provided"
            )
            yield required(f"{path}.limits", problem)


def mount_option_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the annotation with mount options of a volume that has none."""
    spec, annotations = tree.get("spec") or {}, tree["metadata"].get("annotations") or {}
    if _MOUNT_OPTIONS in annotations and not any(spec.get(name) for name in _MOUNTED):
        problem = "may not specify mount options for this volume type"
        yield forbidden_field(f"metadata.annotations.{_MOUNT_OPTIONS}", problem)
