"""Service rules: faults of Services.

Mirrors validateService of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults
from .address_rules import address_causes, block_causes, endpoint_causes
from .container_rules import PROTOCOLS
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from .label_rules import labels_causes, text_causes
from .probe_rules import port_causes
from .security_rules import choice_causes

Tree = Mapping[str, Any]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_SOURCES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DAY_S = 86_400


def service_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Service."""
    spec, kind = tree.get("spec") or {}, (tree.get("spec") or {}).get("type")
    ports, is_headless = spec.get("ports") or (), _is_headless(spec)
    if not ports and not is_headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        problem = f"may not be set to 'None' for {kind} services"
        yield invalid_value("spec.clusterIPs[0]", "None", problem)
    if kind == "ExternalName":
        yield from _external_causes(spec)
    names: set[str] = set()
    for i, port in enumerate(ports):
        yield from _port_causes(port, len(ports) > 1, names, f"spec.ports[{i}]")
    yield from labels_causes(spec.get("selector"), "spec.selector")
    yield from _affinity_causes(spec, "spec")
    if kind != "ExternalName":
        yield from _address_causes(spec)
    for i, address in enumerate(spec.get("externalIPs") or ()):
        found = list(address_causes(address, f"spec.externalIPs[{i}]"))
        yield from found or endpoint_causes(address, f"spec.externalIPs[{i}]")
    yield from choice_causes(spec, "type", _TYPES, "spec")
    yield from _unique_causes(spec, kind)
    yield from _balancer_causes(tree, spec, kind)
    yield from _policy_causes(spec, kind)


def _is_headless(spec: Tree) -> bool:
    return (spec.get("clusterIPs") or [spec.get("clusterIP")]) == ["None"]


def _external_causes(spec: Tree) -> Iterator[Cause]:
    problem = "may not be set for ExternalName services"
    if spec.get("clusterIPs") or spec.get("clusterIP"):
        yield forbidden_field("spec.clusterIPs", problem)
    if spec.get("ipFamilies"):
        yield forbidden_field("spec.ipFamilies", problem)
    if spec.get("ipFamilyPolicy") is not None:
        yield forbidden_field("spec.ipFamilyPolicy", problem)
    name = str(spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    else:
        yield from text_causes(name, subdomain_faults, "spec.externalName")


def _port_causes(port: Tree, needs_name: bool, names: set[str], path: str) -> Iterator[Cause]:
    name = str(port.get("name") or "")
    if needs_name and not name:
        yield required(f"{path}.name")
    elif name:
        yield from text_causes(name, dns_label_faults, f"{path}.name")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    yield from port_causes(port.get("port") or 0, f"{path}.port")
    yield from choice_causes(port, "protocol", PROTOCOLS, path)
    yield from port_causes(port.get("targetPort") or 0, f"{path}.targetPort")
    if port.get("appProtocol") is not None:
        yield from text_causes(port["appProtocol"], key_faults, f"{path}.appProtocol")


def _affinity_causes(spec: Tree, path: str) -> Iterator[Cause]:
    kind, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    yield from choice_causes(spec, "sessionAffinity", ("ClientIP", "None"), path)
    where = f"{path}.sessionAffinityConfig"
    if kind == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is not None and not 0 < seconds <= _DAY_S:
            problem = f"must be greater than 0 and less than {_DAY_S}"
            yield invalid_value(f"{where}.clientIP.timeoutSeconds", seconds, problem)
    elif kind == "None" and config is not None:
        yield forbidden_field(where, "must not be set when session affinity is None")


def _address_causes(spec: Tree) -> Iterator[Cause]:
    """Yield the faults of the cluster IPs of a Service, and of their families."""
    one, many = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if one and many and many[0] != one:
        yield invalid_value("spec.clusterIPs", many, "first value must match `clusterIP`")
    families = spec.get("ipFamilies") or ()
    for i, family in enumerate(families):
        if family not in ("IPv4", "IPv6"):
            yield unsupported_value(f"spec.ipFamilies[{i}]", family, ("IPv4", "IPv6"))
        if family in families[:i]:
            yield duplicate(f"spec.ipFamilies[{i}]", family)
    policies = ("PreferDualStack", "RequireDualStack", "SingleStack")
    yield from choice_causes(spec, "ipFamilyPolicy", policies, "spec")
    given = many or [one]
    for i, address in enumerate(given):
        if i == 0 and address == "None":
            if len(given) > 1:
                problem = "'None' must be the first and only value"
                yield invalid_value("spec.clusterIPs", given, problem)
        elif address:
            yield from address_causes(address, f"spec.clusterIPs[{i}]")
    if len(many) > 2:
        yield invalid_value("spec.clusterIPs", many, "may only hold up to 2 values")


def _unique_causes(spec: Tree, kind: Any) -> Iterator[Cause]:
    """Yield the ports that a Service has twice, or may not have on nodes."""
    ports = spec.get("ports") or ()
    for i, port in enumerate(ports if kind == "ClusterIP" else ()):
        if port.get("nodePort"):
            problem = "may not be used when `type` is 'ClusterIP'"
            yield forbidden_field(f"spec.ports[{i}].nodePort", problem)
    on_nodes: set[tuple[Any, int]] = set()
    for i, port in enumerate(ports):
        key = port.get("protocol"), port.get("nodePort") or 0
        if key[1] and key in on_nodes:
            problem = "provided port is already allocated"
            yield invalid_value(f"spec.ports[{i}].nodePort", key[1], problem)
        on_nodes.add(key)
    seen: set[tuple[Any, Any]] = set()
    for i, port in enumerate(ports):
        key = port.get("protocol"), port.get("port")
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{i}]", shown)
        seen.add(key)


def _balancer_causes(tree: Tree, spec: Tree, kind: Any) -> Iterator[Cause]:
    ranges, where = spec.get("loadBalancerSourceRanges") or (), "spec.LoadBalancerSourceRanges"
    annotation = (tree["metadata"].get("annotations") or {}).get(_SOURCES)
    if ranges and kind != "LoadBalancer":
        yield forbidden_field(where, _BALANCED)
    for i, block in enumerate(ranges):
        yield from block_causes(str(block).strip(), f"{where}[{i}]")
    if not ranges and annotation is not None:
        where = f"metadata.annotations[{_SOURCES}]"
        if kind != "LoadBalancer":
            yield forbidden_field(where, _BALANCED)
        for block in annotation.split(",") if annotation.strip() else ():
            yield from block_causes(block.strip(), where)
    if kind != "LoadBalancer":
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(field) is not None:
                yield forbidden_field(f"spec.{field}", _BALANCED)
    elif spec.get("loadBalancerClass") is not None:
        yield from text_causes(spec["loadBalancerClass"], key_faults, "spec.loadBalancerClass")


def _policy_causes(spec: Tree, kind: Any) -> Iterator[Cause]:
    policy = spec.get("externalTrafficPolicy")
    is_external = kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and spec.get("externalIPs")
    )
    if not is_external:
        if policy:
            problem = "may only be set for externally-accessible services"
            yield invalid_value("spec.externalTrafficPolicy", policy, problem)
    else:
        yield from choice_causes(spec, "externalTrafficPolicy", ("Cluster", "Local"), "spec")
    health = spec.get("healthCheckNodePort")
    if health and not (kind == "LoadBalancer" and policy == "Local"):
        problem = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        yield invalid_value("spec.healthCheckNodePort", health, problem)
    yield from choice_causes(spec, "internalTrafficPolicy", ("Cluster", "Local"), "spec")
    ways = ("PreferClose", "PreferSameZone", "PreferSameNode")
    yield from choice_causes(spec, "trafficDistribution", ways, "spec")
