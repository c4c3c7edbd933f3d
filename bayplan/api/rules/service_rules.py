"""Service rules: faults of Services.

Mirrors validateService of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults
from .address_rules import address_faults, block_faults, endpoint_faults
from .container_rules import PROTOCOLS, check_port
from .field_causes import Part
from .label_rules import check_labels

_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_SOURCES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DAY_S = 86_400


def check_service(service: Part) -> None:
    """Check a Service."""
    spec = service.below("spec")
    kind, ports = spec.get("type"), spec.get("ports") or ()
    is_headless = (spec.get("clusterIPs") or [spec.get("clusterIP")]) == ["None"]
    if not ports and not is_headless and kind != "ExternalName":
        spec.required("ports")
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        problem = f"may not be set to 'None' for {kind} services"
        spec.invalid("clusterIPs[0]", problem, "None")
    if kind == "ExternalName":
        _check_external(spec)
    names: set[str] = set()
    for port in spec.each("ports"):
        _check_port(port, len(ports) > 1, names)
    check_labels(spec, "selector")
    _check_affinity(spec)
    if kind != "ExternalName":
        _check_addresses(spec)
    for name, address in spec.items("externalIPs"):
        spec.check(name, endpoint_faults, address)
    spec.choice("type", "ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    _check_unique_ports(spec, kind)
    _check_balancer(service, spec, kind)
    _check_policies(spec, kind)


def _check_external(spec: Part) -> None:
    problem = "may not be set for ExternalName services"
    if spec.get("clusterIPs") or spec.get("clusterIP"):
        spec.forbidden("clusterIPs", problem)
    for field in ("ipFamilies", "ipFamilyPolicy"):
        if spec.get(field) not in (None, []):
            spec.forbidden(field, problem)
    name = str(spec.get("externalName") or "").removesuffix(".")
    if not name:
        spec.required("externalName")
    else:
        spec.check("externalName", subdomain_faults, name)


def _check_port(port: Part, needs_name: bool, names: set[str]) -> None:
    if port.get("name"):
        port.check("name", dns_label_faults)
        port.unique("name", names)
    elif needs_name:
        port.required("name")
    check_port(port, "port")
    port.choice("protocol", *PROTOCOLS)
    check_port(port, "targetPort")
    port.given("appProtocol", key_faults)


def _check_affinity(spec: Part) -> None:
    kind = spec.get("sessionAffinity")
    spec.choice("sessionAffinity", "ClientIP", "None")
    if kind == "ClientIP":
        problem = f"must be greater than 0 and less than {_DAY_S}"
        config = spec.below("sessionAffinityConfig").below("clientIP")
        config.limit("timeoutSeconds", 1, _DAY_S, problem)
    elif kind == "None" and spec.has("sessionAffinityConfig"):
        spec.forbidden("sessionAffinityConfig", "must not be set when session affinity is None")


def _check_addresses(spec: Part) -> None:
    """Check the cluster IPs of a Service, and their families."""
    one, many = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if one and many and many[0] != one:
        spec.invalid("clusterIPs", "first value must match `clusterIP`")
    families: set[str] = set()
    for name, family in spec.items("ipFamilies"):
        if family not in ("IPv4", "IPv6"):
            spec.unsupported(name, ("IPv4", "IPv6"), family)
        spec.unique(name, families, family)
    spec.choice("ipFamilyPolicy", "PreferDualStack", "RequireDualStack", "SingleStack")
    given = many or [one]
    for i, address in enumerate(given):
        if i == 0 and address == "None":
            if len(given) > 1:
                spec.invalid("clusterIPs", "'None' must be the first and only value")
        elif address:
            spec.check(f"clusterIPs[{i}]", address_faults, address)
    if len(many) > 2:
        spec.invalid("clusterIPs", "may only hold up to 2 values")


def _check_unique_ports(spec: Part, kind: Any) -> None:
    """Refuse ports that a Service has twice, or may not have on nodes."""
    for port in spec.each("ports") if kind == "ClusterIP" else ():
        if port.get("nodePort"):
            port.forbidden("nodePort", "may not be used when `type` is 'ClusterIP'")
    on_nodes: set[tuple[Any, int]] = set()
    for port in spec.each("ports"):
        number = port.get("nodePort") or 0
        if number and (port.get("protocol"), number) in on_nodes:
            port.invalid("nodePort", "provided port is already allocated")
        on_nodes.add((port.get("protocol"), number))
    seen: set[tuple[Any, Any]] = set()
    for port in spec.each("ports"):
        protocol, number = port.get("protocol"), port.get("port")
        if (protocol, number) in seen:
            named = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number}
            port.duplicate("", {**named, "TargetPort": 0, "NodePort": 0})
        seen.add((protocol, number))


def _check_balancer(service: Part, spec: Part, kind: Any) -> None:
    ranges, where = spec.get("loadBalancerSourceRanges") or (), "LoadBalancerSourceRanges"
    annotation = (service.tree["metadata"].get("annotations") or {}).get(_SOURCES)
    if ranges and kind != "LoadBalancer":
        spec.forbidden(where, _BALANCED)
    for i, block in enumerate(ranges):
        spec.check(f"{where}[{i}]", block_faults, str(block).strip())
    if not ranges and annotation is not None:
        where = f"metadata.annotations[{_SOURCES}]"
        if kind != "LoadBalancer":
            service.forbidden(where, _BALANCED)
        for block in annotation.split(",") if annotation.strip() else ():
            service.check(where, block_faults, block.strip())
    if kind != "LoadBalancer":
        for field in spec.set_of(("allocateLoadBalancerNodePorts", "loadBalancerClass")):
            spec.forbidden(field, _BALANCED)
    elif spec.has("loadBalancerClass"):
        spec.check("loadBalancerClass", key_faults)


def _check_policies(spec: Part, kind: Any) -> None:
    policy = spec.get("externalTrafficPolicy")
    is_external = kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and spec.get("externalIPs")
    )
    if is_external:
        spec.choice("externalTrafficPolicy", "Cluster", "Local")
    elif policy:
        problem = "may only be set for externally-accessible services"
        spec.invalid("externalTrafficPolicy", problem)
    if spec.get("healthCheckNodePort") and not (kind == "LoadBalancer" and policy == "Local"):
        problem = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        spec.invalid("healthCheckNodePort", problem)
    spec.choice("internalTrafficPolicy", "Cluster", "Local")
    spec.choice("trafficDistribution", "PreferClose", "PreferSameZone", "PreferSameNode")
