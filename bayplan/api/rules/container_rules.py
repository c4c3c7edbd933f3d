"""Container rules: faults of containers, their probes and hooks, as kube-apiserver finds them.

Mirrors validateContainers and validateInitContainers of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults
from .environment_rules import check_environment
from .field_causes import Part, Tree
from .resource_rules import check_requirements
from .security_rules import back_step_faults, check_container_security, local_path_faults

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_LASTING = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_LASTING = "may not be set for init containers without restartPolicy=Always"
PORT_RULE = "must be between 1 and 65535, inclusive"
_NAME = re.compile(r"[-a-z0-9]+")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_RULE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
_SECONDS = (
    *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold"),
    "failureThreshold",
)


def check_containers(spec: Part) -> None:
    """Check the containers of a pod or template."""
    spec.needs("containers")
    grace_s = spec.get("terminationGracePeriodSeconds")
    names: set[str] = set()
    for container in spec.each("containers"):
        _check_container(container, spec)
        container.unique("name", names)
        check_lifecycle(container, grace_s)
        _check_restart(container)
    _check_host_ports(spec.each("containers"))
    for container in spec.each("initContainers"):
        _check_container(container, spec)
        _check_restart(container)
        if container.get("name"):
            container.unique("name", names)
        ports = Part(container.tree, spec.at("initContainers[0]"), spec.causes)
        _check_host_ports([ports])  # kube-apiserver numbers each of them 0
        if container.get("restartPolicy") == "Always":
            check_lifecycle(container, grace_s)
            continue
        for field in container.set_of(_LASTING):
            container.forbidden(field, _NOT_LASTING)
        for policy in container.each("resizePolicy"):
            if policy.get("restartPolicy") == "RestartContainer":
                problem = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                policy.invalid("restartPolicy", problem)


def _check_container(container: Part, spec: Part) -> None:
    """Check the fields that any container may have."""
    container.needs_text("name", dns_label_faults)
    container.needs("image")
    container.choice("terminationMessagePolicy", "File", "FallbackToLogsOnError")
    _check_ports(container)
    check_environment(container)
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    _check_mounts(container, volumes)
    _check_devices(container, volumes)
    container.choice("imagePullPolicy", *PULL_POLICIES)
    claims = [claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")]
    resources = container.get("resources") or {}
    if container.path.startswith(("spec.containers", "spec.initContainers")):
        # limits of a pod are requests
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        resources = {**resources, "requests": requests}
    check_requirements(container.below("resources", resources), claims)
    _check_resizes(container, spec.get("restartPolicy"))
    check_container_security(container, spec.get("hostUsers") is not False)


def _check_ports(container: Part) -> None:
    names: set[str] = set()
    for port in container.each("ports"):
        name = str(port.get("name") or "")
        port.text("name", port_name_faults)
        if name and name in names and not port_name_faults(name):
            port.duplicate("name", name)
        names.add(name)
        if port.needs("containerPort"):
            check_port(port, "containerPort")
        if port.get("hostPort"):
            check_port(port, "hostPort")
        port.choice("protocol", *PROTOCOLS)


def _check_host_ports(containers: Iterable[Part]) -> None:
    """Refuse host ports that containers share."""
    taken: set[str] = set()
    for container in containers:
        for port in container.each("ports"):
            number = port.get("hostPort") or 0
            if number:
                key = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{number}"
                port.unique("hostPort", taken, key)


def check_host_network(spec: Part, is_pod: bool) -> None:
    """Refuse host ports in the host's network that are not those of the container."""
    for container in spec.each("containers") if spec.get("hostNetwork") else ():
        for port in container.each("ports"):
            number = port.get("hostPort") or 0
            is_set = number or (is_pod and "hostPort" in port.tree)  # its default is the other one
            if is_set and number != port.get("containerPort"):
                problem = "must match `containerPort` when `hostNetwork` is true"
                port.invalid("hostPort", problem, number)


def _check_mounts(container: Part, volumes: Mapping[Any, Tree]) -> None:
    devices = container.get("volumeDevices") or ()
    names = {device.get("name") for device in devices}
    paths = {device.get("devicePath") for device in devices}
    seen: set[str] = set()
    for mount in container.each("volumeMounts"):
        name, point = mount.get("name") or "", mount.get("mountPath") or ""
        mount.needs("name")
        if name not in volumes:
            mount.not_found("name", name)
        mount.needs("mountPath")
        if point in seen:
            mount.invalid("mountPath", "must be unique", point)
        seen.add(point)
        if name in names:
            mount.invalid("name", "must not already exist in volumeDevices", name)
        if point in paths:
            mount.invalid("mountPath", "must not already exist as a path in volumeDevices", point)
        # kube-apiserver leaves the number of the mount out of the paths of these fields.
        unnumbered = container.below("volumeMounts", mount.tree)
        unnumbered.check("subPath", local_path_faults)
        if mount.get("subPath") and mount.get("subPathExpr"):
            mount.invalid("subPathExpr", "subPathExpr and subPath are mutually exclusive")
        unnumbered.check("subPathExpr", local_path_faults)
        _check_propagation(container, unnumbered)


def _check_propagation(container: Part, mount: Part) -> None:
    mount.choice("mountPropagation", "Bidirectional", "HostToContainer", "None")
    is_privileged = container.below("securityContext").get("privileged")
    if mount.get("mountPropagation") == "Bidirectional" and not is_privileged:
        problem = "Bidirectional mount propagation is available only to privileged containers"
        mount.forbidden("mountPropagation", problem)
    mount.choice("recursiveReadOnly", "Disabled", "Enabled", "IfPossible")
    if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            mount.forbidden("recursiveReadOnly", "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            problem = "may only be specified when mountPropagation is None or not specified"
            mount.forbidden("recursiveReadOnly", problem)


def _check_devices(container: Part, volumes: Mapping[Any, Tree]) -> None:
    mounts = container.get("volumeMounts") or ()
    names = {mount.get("name") for mount in mounts}
    paths = {mount.get("mountPath") for mount in mounts}
    seen: set[str] = set()
    for device in container.each("volumeDevices"):
        name, point = device.get("name") or "", device.get("devicePath") or ""
        volume = volumes.get(name)
        if device.needs("name") and f"name {name}" in seen:
            device.invalid("name", "must be unique")
        if volume is None:
            device.not_found("name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            problem = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            device.invalid("name", problem, name)
        device.needs("devicePath")
        if f"path {point}" in seen:
            device.invalid("devicePath", "must be unique", point)
        if back_step_faults(point):
            device.invalid("devicePath", "can not contain backsteps ('..')")
        else:
            seen.add(f"path {point}")
        seen.add(f"name {name}")
        if name in names:
            device.invalid("name", "must not already exist in volumeMounts", name)
        if point in paths:
            device.invalid("devicePath", "must not already exist as a path in volumeMounts", point)


def _check_resizes(container: Part, pod_policy: Any) -> None:
    """Check resize policies; kube-apiserver leaves their numbers out of most paths."""
    resources: set[str] = set()
    for policy in container.each("resizePolicy"):
        resource, word = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        policy.unique("", resources, resource)
        for found, words in (
            (resource, ("cpu", "memory")),
            (word, ("NotRequired", "RestartContainer")),
        ):
            if not found:
                container.required("resizePolicy")
            elif found not in words:
                container.unsupported("resizePolicy", words, found)
        if pod_policy == "Never" and word != "NotRequired":
            problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            container.invalid("resizePolicy", problem, word)


def _check_restart(container: Part) -> None:
    """Check the restart policy and the restart rules of a container."""
    if not container.has("restartPolicy") and container.get("restartPolicyRules"):
        problem = "must specify restartPolicy when restart rules are used"
        container.required("restartPolicy", problem)
    container.choice("restartPolicy", "Always", "Never", "OnFailure")
    for rule in container.each("restartPolicyRules"):
        rule.choice("action", "Restart", "RestartAllContainers")
        if not rule.has("exitCodes"):
            rule.required("exitCodes", "must be specified")
        rule.below("exitCodes").choice("operator", "In", "NotIn")


def port_name_faults(name: str) -> tuple[str, ...]:
    """The faults of the name of a port."""
    faults = ["must be no more than 15 characters"] if len(name.encode()) > 15 else []
    if not _NAME.fullmatch(name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return tuple(faults)


def check_port(part: Part, name: str) -> None:
    """Check a port that may be a number or a name."""
    port = part.get(name) or 0
    if isinstance(part.get(name), str):
        part.check(name, port_name_faults)
    elif not 0 < port < 65536:
        part.invalid(name, PORT_RULE, port)


def check_lifecycle(container: Part, grace_s: int | None) -> None:
    """Check the hooks and probes of a container that runs for long.

    Stop signals are behind a gate that is off, and dropped.
    """
    lifecycle = container.below("lifecycle")
    for name in lifecycle.set_of(("postStart", "preStop")):
        _check_action(lifecycle.below(name), grace_s, "sleep")
    for name in container.set_of(("livenessProbe", "readinessProbe", "startupProbe")):
        _check_probe(container.below(name), name)


def _check_probe(probe: Part, name: str) -> None:
    _check_action(probe, None, "grpc")
    probe.not_negative(*_SECONDS)
    grace_s = probe.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s <= 0:
        probe.invalid("terminationGracePeriodSeconds", "must be greater than 0")
    if name != "readinessProbe":
        if probe.get("successThreshold") != 1:
            probe.invalid("successThreshold", "must be 1", probe.get("successThreshold") or 0)
    elif grace_s is not None:
        problem = "must not be set for readinessProbes"
        probe.invalid("terminationGracePeriodSeconds", problem)


def _check_action(part: Part, grace_s: int | None, last: str) -> None:
    """Check the one action of a probe or hook; `last` is the action that the other lacks."""
    named = part.set_of(("exec", "httpGet", "tcpSocket", last))
    if not named:
        part.required("", "must specify a handler type")
        return
    name, action = named[0], part.below(named[0])
    if name == "exec":
        action.needs("command")
    if name == "httpGet":
        _check_request(action)
    if name in ("tcpSocket", "grpc"):
        check_port(action, "port")
    seconds: Any = action.get("seconds") or 0
    if name == "sleep" and grace_s is not None and not 0 <= seconds <= grace_s:
        problem = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        action.invalid("", problem, seconds)
    for other in named[1:]:
        part.forbidden(other, "may not specify more than 1 handler type")


def _check_request(request: Part) -> None:
    request.needs("path")
    check_port(request, "port")
    request.needs_choice("scheme", "HTTP", "HTTPS")
    for header in request.get("httpHeaders") or ():
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            request.invalid("httpHeaders", _HEADER_RULE, name)
