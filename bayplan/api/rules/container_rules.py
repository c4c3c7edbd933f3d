"""Container rules: faults of containers, as kube-apiserver finds them.

Mirrors validateContainers and validateInitContainers of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults
from .environment_rules import environment_causes
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    not_found_value,
    required,
    unsupported_value,
)
from .label_rules import text_causes
from .probe_rules import lifecycle_causes, port_causes, port_name_faults
from .resource_rules import requirement_causes
from .security_rules import (
    back_step_causes,
    choice_causes,
    container_security_causes,
    local_path_causes,
)

Tree = Mapping[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTARTS = ("Always", "Never", "OnFailure")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")
_LASTING = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_LASTING = "may not be set for init containers without restartPolicy=Always"


def container_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the containers of a pod or template."""
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    grace_s = spec.get("terminationGracePeriodSeconds")
    names: set[str] = set()
    for i, container in enumerate(containers):
        where = f"{path}.containers[{i}]"
        yield from _one_causes(container, spec, where)
        name = container.get("name") or ""
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        yield from lifecycle_causes(container, where, grace_s)
        yield from _restart_causes(container, where)
    yield from _host_port_causes(containers, f"{path}.containers")
    for i, container in enumerate(spec.get("initContainers") or ()):
        where = f"{path}.initContainers[{i}]"
        yield from _one_causes(container, spec, where)
        yield from _restart_causes(container, where)
        name = container.get("name") or ""
        if name and name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        yield from _host_port_causes([container], f"{path}.initContainers")
        if container.get("restartPolicy") == "Always":
            yield from lifecycle_causes(container, where, grace_s)
            continue
        for field in _LASTING:
            if container.get(field) is not None:
                yield forbidden_field(f"{where}.{field}", _NOT_LASTING)
        yield from _init_resize_causes(container, where)


def _init_resize_causes(container: Tree, path: str) -> Iterator[Cause]:
    for i, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            problem = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            where = f"{path}.resizePolicy[{i}].restartPolicy"
            yield invalid_value(where, "RestartContainer", problem)


def _one_causes(container: Tree, spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults that any container may have."""
    name = container.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    else:
        yield from text_causes(name, dns_label_faults, f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    words = ("File", "FallbackToLogsOnError")
    yield from choice_causes(container, "terminationMessagePolicy", words, path)
    yield from _port_list_causes(container, path)
    yield from environment_causes(container, path)
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    yield from _mount_causes(container, volumes, f"{path}.volumeMounts")
    yield from _device_causes(container, volumes, f"{path}.volumeDevices")
    yield from choice_causes(container, "imagePullPolicy", PULL_POLICIES, path)
    claims = [claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")]
    resources = container.get("resources") or {}
    if path.startswith(("spec.containers", "spec.initContainers")):  # limits of a pod are requests
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        resources = {**resources, "requests": requests}
    yield from requirement_causes(resources, claims, f"{path}.resources")
    yield from _resize_causes(container, spec.get("restartPolicy"), f"{path}.resizePolicy")
    yield from container_security_causes(container, path, spec.get("hostUsers") is not False)


def _port_list_causes(container: Tree, path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for i, port in enumerate(container.get("ports") or ()):
        where, name = f"{path}.ports[{i}]", str(port.get("name") or "")
        faults = port_name_faults(name) if name else ()
        for fault in faults:
            yield invalid_value(f"{where}.name", name, fault)
        if name and not faults and name in names:
            yield duplicate(f"{where}.name", name)
        names |= {name} - {""}
        if not port.get("containerPort"):
            yield required(f"{where}.containerPort")
        else:
            yield from port_causes(port["containerPort"], f"{where}.containerPort")
        if port.get("hostPort"):
            yield from port_causes(port["hostPort"], f"{where}.hostPort")
        yield from choice_causes(port, "protocol", PROTOCOLS, where)


def _host_port_causes(containers: Any, path: str) -> Iterator[Cause]:
    """Yield the host ports that containers share."""
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort") or 0
            key = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{number}"
            if number and key in taken:
                yield duplicate(f"{path}[{i}].ports[{j}].hostPort", key)
            taken.add(key)


def host_network_causes(spec: Tree, path: str, is_pod: bool) -> Iterator[Cause]:
    """Yield the host ports in the host's network that are not those of the container."""
    for i, container in enumerate(spec.get("containers") or () if spec.get("hostNetwork") else ()):
        for j, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort") or 0
            is_set = number or (is_pod and "hostPort" in port)  # its default is the other one
            if is_set and number != port.get("containerPort"):
                problem = "must match `containerPort` when `hostNetwork` is true"
                yield invalid_value(f"{path}.containers[{i}].ports[{j}].hostPort", number, problem)


def _mount_causes(container: Tree, volumes: Mapping[Any, Tree], path: str) -> Iterator[Cause]:
    devices = container.get("volumeDevices") or ()
    names = {device.get("name") for device in devices}
    paths = {device.get("devicePath") for device in devices}
    seen: set[str] = set()
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        where, name, point = f"{path}[{i}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield not_found_value(f"{where}.name", name)
        if not point:
            yield required(f"{where}.mountPath")
        if point in seen:
            yield invalid_value(f"{where}.mountPath", point, "must be unique")
        seen.add(point)
        if name in names:
            problem = "must not already exist in volumeDevices"
            yield invalid_value(f"{where}.name", name, problem)
        if point in paths:
            problem = "must not already exist as a path in volumeDevices"
            yield invalid_value(f"{where}.mountPath", point, problem)
        yield from _sub_path_causes(mount, path, where)
        yield from _propagation_causes(container, mount, path)


def _sub_path_causes(mount: Tree, path: str, where: str) -> Iterator[Cause]:
    below, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    yield from local_path_causes(below, f"{path}.subPath")
    if below and expression:
        problem = "subPathExpr and subPath are mutually exclusive"
        yield invalid_value(f"{where}.subPathExpr", expression, problem)
    yield from local_path_causes(expression, f"{path}.subPathExpr")


def _propagation_causes(container: Tree, mount: Tree, path: str) -> Iterator[Cause]:
    yield from choice_causes(mount, "mountPropagation", _PROPAGATIONS, path)
    is_privileged = (container.get("securityContext") or {}).get("privileged")
    if mount.get("mountPropagation") == "Bidirectional" and not is_privileged:
        problem = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden_field(f"{path}.mountPropagation", problem)
    yield from choice_causes(mount, "recursiveReadOnly", _RECURSIONS, path)
    if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible"):
        where = f"{path}.recursiveReadOnly"
        if not mount.get("readOnly"):
            yield forbidden_field(where, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            problem = "may only be specified when mountPropagation is None or not specified"
            yield forbidden_field(where, problem)


def _device_causes(container: Tree, volumes: Mapping[Any, Tree], path: str) -> Iterator[Cause]:
    mounts = container.get("volumeMounts") or ()
    names, paths = (
        {mount.get("name") for mount in mounts},
        {mount.get("mountPath") for mount in mounts},
    )
    seen: set[str] = set()
    for i, device in enumerate(container.get("volumeDevices") or ()):
        where, name, point = (
            f"{path}[{i}]",
            device.get("name") or "",
            device.get("devicePath") or "",
        )
        volume = volumes.get(name)
        if not name:
            yield required(f"{where}.name")
        elif f"name {name}" in seen:
            yield invalid_value(f"{where}.name", name, "must be unique")
        if volume is None:
            yield not_found_value(f"{where}.name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            problem = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid_value(f"{where}.name", name, problem)
        if not point:
            yield required(f"{where}.devicePath")
        if f"path {point}" in seen:
            yield invalid_value(f"{where}.devicePath", point, "must be unique")
        if any(back_step_causes(point, path)):
            problem = "can not contain backsteps ('..')"
            yield invalid_value(f"{where}.devicePath", point, problem)
        else:
            seen.add(f"path {point}")
        seen.add(f"name {name}")
        if name in names:
            problem = "must not already exist in volumeMounts"
            yield invalid_value(f"{where}.name", name, problem)
        if point in paths:
            problem = "must not already exist as a path in volumeMounts"
            yield invalid_value(f"{where}.devicePath", point, problem)


def _resize_causes(container: Tree, pod_policy: Any, path: str) -> Iterator[Cause]:
    resources: set[str] = set()
    for i, policy in enumerate(container.get("resizePolicy") or ()):
        resource, word = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in resources:
            yield duplicate(f"{path}[{i}]", resource)
        resources.add(resource)
        for found, words in (
            (resource, ("cpu", "memory")),
            (word, ("NotRequired", "RestartContainer")),
        ):
            if not found:
                yield required(path)
            elif found not in words:
                yield unsupported_value(path, found, words)
        if pod_policy == "Never" and word != "NotRequired":
            problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid_value(path, word, problem)


def _restart_causes(container: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the restart policy and the restart rules of a container."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            problem = "must specify restartPolicy when restart rules are used"
            yield required(f"{path}.restartPolicy", problem)
    else:
        yield from choice_causes(container, "restartPolicy", _RESTARTS, path)
    for i, rule in enumerate(rules):
        where = f"{path}.restartPolicyRules[{i}]"
        actions = ("Restart", "RestartAllContainers")
        yield from choice_causes(rule, "action", actions, where)
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(f"{where}.exitCodes", "must be specified")
        else:
            yield from choice_causes(codes, "operator", ("In", "NotIn"), f"{where}.exitCodes")
