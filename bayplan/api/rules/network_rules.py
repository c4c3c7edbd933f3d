"""Network rules: faults of Services, Ingresses, their classes, NetworkPolicies and EndpointSlices.

Mirrors pkg/apis/networking/validation/validation.go and pkg/apis/discovery/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Any

from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    path_segment_faults,
    subdomain_faults,
)
from .address_rules import (
    address_faults,
    block_faults,
    check_block,
    endpoint_faults,
    lenient_address,
)
from .container_rules import PORT_RULE, PROTOCOLS, check_port
from .field_causes import Part
from .label_rules import check_labels, check_selector

_WILD_FORM = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WILD = re.compile(_WILD_FORM)
_WILD_RULE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
    f"(e.g. '*.example.com', regex used for validation is '{_WILD_FORM}')"
)
_PATH_FORM = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PATH = re.compile(_PATH_FORM)
_ONE_PATH = ("Exact", "Prefix")
_PATHS = ("Exact", "ImplementationSpecific", "Prefix")
_CLASS = "kubernetes.io/ingress.class"
_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_SOURCES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DAY_S = 86_400


def check_ingress(ingress: Part) -> None:
    """Check an Ingress."""
    spec = ingress.below("spec")
    if not spec.get("rules") and not spec.has("defaultBackend"):
        problem = "either `defaultBackend` or `rules` must be specified"
        spec.invalid("", problem, spec.get("rules"))
    if spec.has("defaultBackend"):
        _check_backend(spec.below("defaultBackend"))
    for rule in spec.each("rules"):
        _check_rule(rule)
    for tls in spec.each("tls"):
        for field, host in tls.items("hosts"):
            tls.check(field, _host_faults, host)
        tls.text("secretName", subdomain_faults)
    name = spec.get("ingressClassName")
    if name is not None:
        spec.check("ingressClassName", subdomain_faults)
    old_name = (ingress.tree["metadata"].get("annotations") or {}).get(_CLASS)
    if old_name is not None and name is not None and old_name != name:
        problem = "must match `ingressClassName` when both are specified"
        ingress.invalid(f"annotations.{_CLASS}", problem, old_name)


def _host_faults(host: str) -> tuple[str, ...]:
    if "*" not in host:
        return subdomain_faults(host)
    return () if _WILD.fullmatch(host) else (_WILD_RULE,)


def _check_rule(rule: Part) -> None:
    if rule.get("host"):
        if lenient_address(rule.get("host")) is not None:
            rule.invalid("host", "must be a DNS name, not an IP address")
        rule.check("host", _host_faults)
    if not rule.has("http"):
        return
    http = rule.below("http")
    http.needs("paths")
    for one in http.each("paths"):
        _check_path(one)


def _check_path(one: Part) -> None:
    kind, text = one.get("pathType"), one.get("path") or ""
    if kind is None:
        one.required("pathType", "pathType must be specified")
        return
    if kind not in _PATHS:
        one.unsupported("pathType", _PATHS)
    elif (text or kind in _ONE_PATH) and not text.startswith("/"):
        one.invalid("path", "must be an absolute path", text)
    if kind in _ONE_PATH:
        for part in ("//", "/./", "/../", "%2f", "%2F"):
            if part in text:
                one.invalid("path", f"must not contain '{part}'")
        for part in ("/..", "/."):
            if text.endswith(part):
                one.invalid("path", f"cannot end with '{part}'")
    _check_backend(one.below("backend"))


def _check_backend(backend: Part) -> None:
    named = backend.set_of(("resource", "service"))
    if len(named) > 1:
        backend.invalid("", "cannot set both resource and service backends", "")
    elif not named:
        backend.invalid("", "resource or service backend is required", "")
    elif named == ["resource"]:
        _check_reference(backend.below("resource"))
    else:
        service = backend.below("service")
        service.needs_text("name", dns_label_faults)
        port = service.below("port")
        given = [field for field in ("name", "number") if port.get(field)]
        if len(given) > 1:
            backend.invalid("", "cannot set both port name & port number", "")
        elif given:
            check_port(port, given[0])
        else:
            backend.required("", "port name or number is required")


def _check_reference(reference: Part) -> None:
    reference.given("apiGroup", subdomain_faults)
    reference.needs_text("kind", path_segment_faults)
    reference.needs_text("name", path_segment_faults)


def check_ingress_class(class_: Part) -> None:
    """Check an IngressClass."""
    spec = class_.below("spec")
    if len(spec.get("controller") or "") > 250:
        spec.too_long("controller", 250)
    _check_domain_path(spec, "controller")
    if spec.has("parameters"):
        parameters = spec.below("parameters")
        _check_reference(parameters)
        scope, has_space = parameters.get("scope"), parameters.has("namespace")
        parameters.choice("scope", "Cluster", "Namespace")
        if scope == "Namespace" and not has_space:
            parameters.required("namespace", "`parameters.scope` is set to 'Namespace'")
        elif scope == "Namespace":
            parameters.check("namespace", dns_label_faults)
        elif scope == "Cluster" and has_space:
            parameters.forbidden("namespace", "`parameters.scope` is set to 'Cluster'")


def _check_domain_path(spec: Part, field: str) -> None:
    """Check a path that begins with a domain, such as the name of a controller."""
    if not spec.needs(field):
        return
    domain, _, rest = spec.get(field).partition("/")
    if not domain or not rest:
        spec.invalid(field, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    spec.check(field, subdomain_faults, domain)
    if not _PATH.fullmatch(rest):
        problem = f"Invalid path (regex used for validation is '{_PATH_FORM}')"
        spec.invalid(field, problem, rest)


def check_network_policy(policy: Part) -> None:
    """Check a NetworkPolicy."""
    spec = policy.below("spec")
    check_selector(spec.below("podSelector"))
    all_peers: list[Part] = []
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.each(rules):
            for port in rule.each("ports"):
                _check_policy_port(port)
            for peer in rule.each(peers):
                _check_peer(peer)
                all_peers.append(peer)
    for peer in all_peers:
        if peer.has("ipBlock"):
            check_block(peer.below("ipBlock"))
    if len(spec.get("policyTypes") or ()) > 2:
        spec.invalid("policyTypes", "may not specify more than two policyTypes")
        return
    for name, word in spec.items("policyTypes"):
        if word not in ("Ingress", "Egress"):
            spec.unsupported(name, ("Ingress", "Egress"), str(word))


def _check_policy_port(port: Part) -> None:
    port.choice("protocol", "TCP", "UDP", "SCTP")
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        check_port(port, "port")
        if end is not None and end < number:
            port.invalid("endPort", "must be greater than or equal to `port`", number)
        port.limit("endPort", 1, 65535, PORT_RULE)
        return
    if end is not None:
        word = "not specified" if number is None else "non-numeric"
        port.invalid("endPort", f"may not be specified when `port` is {word}")
    if number is not None:
        check_port(port, "port")


def _check_peer(peer: Part) -> None:
    check_selector(peer.below("podSelector"))
    check_selector(peer.below("namespaceSelector"))
    named = peer.set_of(("podSelector", "namespaceSelector", "ipBlock"))
    if not named:
        peer.required("", "must specify a peer")
    elif len(named) > 1 and "ipBlock" in named:
        peer.forbidden("", "may not specify both ipBlock and another peer")


def check_endpoint_slice(endpoint_slice: Part) -> None:
    """Check an EndpointSlice."""
    kind = endpoint_slice.get("addressType") or ""
    if endpoint_slice.needs("addressType"):
        endpoint_slice.choice("addressType", "FQDN", "IPv4", "IPv6")
    names: set[str] = set()
    for port in endpoint_slice.each("ports"):
        port.text("name", dns_label_faults)
        port.unique("name", names)
        port.choice("protocol", *PROTOCOLS)
        port.given("appProtocol", key_faults)
    for endpoint in endpoint_slice.each("endpoints"):
        endpoint.needs("addresses", problem="must contain at least 1 address")
        for name, address in endpoint.items("addresses") if kind in ("IPv4", "IPv6") else ():
            if not address_faults(address) and (":" in address) != (kind == "IPv6"):
                endpoint.invalid("addresses", f"must be an {kind} address", address)
            endpoint.check(name, endpoint_faults, address)
        endpoint.text("nodeName", subdomain_faults)
        endpoint.text("hostname", dns_label_faults)


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
