"""Network rules: faults of Ingresses, their classes, NetworkPolicies and EndpointSlices.

Mirrors pkg/apis/networking/validation/validation.go and pkg/apis/discovery/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    path_segment_faults,
    subdomain_faults,
)
from .address_rules import (
    address_causes,
    endpoint_causes,
    is_address,
    policy_block_causes,
)
from .container_rules import PROTOCOLS
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    unsupported_value,
)
from .label_rules import name_causes_of, selector_causes, text_causes
from .probe_rules import PORT_RULE, port_causes
from .security_rules import choice_causes

Tree = Mapping[str, Any]

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


def ingress_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of an Ingress."""
    spec = tree.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        problem = "either `defaultBackend` or `rules` must be specified"
        yield invalid_value("spec", spec.get("rules"), problem)
    if spec.get("defaultBackend") is not None:
        yield from _backend_causes(spec["defaultBackend"], "spec.defaultBackend")
    for i, rule in enumerate(spec.get("rules") or ()):
        yield from _rule_causes(rule, f"spec.rules[{i}]")
    for i, tls in enumerate(spec.get("tls") or ()):
        for j, host in enumerate(tls.get("hosts") or ()):
            yield from _host_causes(host, f"spec.tls[{i}].hosts[{j}]")
        yield from name_causes_of(tls, "secretName", subdomain_faults, f"spec.tls[{i}]")
    name = spec.get("ingressClassName")
    if name is not None:
        yield from text_causes(name, subdomain_faults, "spec.ingressClassName")
    old_name = (tree["metadata"].get("annotations") or {}).get(_CLASS)
    if old_name is not None and name is not None and old_name != name:
        problem = "must match `ingressClassName` when both are specified"
        yield invalid_value(f"annotations.{_CLASS}", old_name, problem)


def _host_causes(host: str, path: str) -> Iterator[Cause]:
    if "*" not in host:
        yield from text_causes(host, subdomain_faults, path)
    elif not _WILD.fullmatch(host):
        yield invalid_value(path, host, _WILD_RULE)


def _rule_causes(rule: Tree, path: str) -> Iterator[Cause]:
    host, http = rule.get("host") or "", rule.get("http")
    if host:
        if is_address(host):
            problem = "must be a DNS name, not an IP address"
            yield invalid_value(f"{path}.host", host, problem)
        yield from _host_causes(host, f"{path}.host")
    if http is None:
        return
    if not http.get("paths"):
        yield required(f"{path}.http.paths")
    for i, one in enumerate(http.get("paths") or ()):
        yield from _path_causes(one, f"{path}.http.paths[{i}]")


def _path_causes(one: Tree, path: str) -> Iterator[Cause]:
    kind, text = one.get("pathType"), one.get("path") or ""
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATHS:
        yield unsupported_value(f"{path}.pathType", kind, _PATHS)
    elif (text or kind in _ONE_PATH) and not text.startswith("/"):
        yield invalid_value(f"{path}.path", text, "must be an absolute path")
    if kind in _ONE_PATH and text:
        for part in ("//", "/./", "/../", "%2f", "%2F"):
            if part in text:
                yield invalid_value(f"{path}.path", text, f"must not contain '{part}'")
        for part in ("/..", "/."):
            if text.endswith(part):
                yield invalid_value(f"{path}.path", text, f"cannot end with '{part}'")
    yield from _backend_causes(one.get("backend") or {}, f"{path}.backend")


def _backend_causes(backend: Tree, path: str) -> Iterator[Cause]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield invalid_value(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference_causes(resource, f"{path}.resource")
    elif service is None:
        yield invalid_value(path, "", "resource or service backend is required")
    else:
        if not service.get("name"):
            yield required(f"{path}.service.name")
        yield from name_causes_of(service, "name", dns_label_faults, f"{path}.service")
        port, where = service.get("port") or {}, f"{path}.service.port"
        if port.get("name") and port.get("number"):
            yield invalid_value(path, "", "cannot set both port name & port number")
        elif port.get("name"):
            yield from port_causes(port["name"], f"{where}.name")
        elif port.get("number"):
            yield from port_causes(port["number"], f"{where}.number")
        else:
            yield required(path, "port name or number is required")


def _reference_causes(reference: Tree, path: str) -> Iterator[Cause]:
    if reference.get("apiGroup") is not None:
        yield from text_causes(reference["apiGroup"], subdomain_faults, f"{path}.apiGroup")
    for field in ("kind", "name"):
        if not reference.get(field):
            yield required(f"{path}.{field}")
        yield from name_causes_of(reference, field, path_segment_faults, path)


def ingress_class_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of an IngressClass."""
    spec = tree.get("spec") or {}
    name, path = spec.get("controller") or "", "spec.controller"
    if len(name) > 250:
        yield too_long(path, 250)
    yield from domain_path_causes(name, path)
    if spec.get("parameters") is not None:
        yield from _parameter_causes(spec["parameters"], "spec.parameters")


def _parameter_causes(parameters: Tree, path: str) -> Iterator[Cause]:
    yield from _reference_causes(parameters, path)
    scope, space = parameters.get("scope"), parameters.get("namespace")
    yield from choice_causes(parameters, "scope", ("Cluster", "Namespace"), path)
    if scope == "Namespace" and space is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace" and space is not None:
        yield from text_causes(space, dns_label_faults, f"{path}.namespace")
    elif scope == "Cluster" and space is not None:
        yield forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def domain_path_causes(text: str, path: str) -> Iterator[Cause]:
    """Yield the faults of a path that begins with a domain, such as the name of a controller."""
    domain, _, rest = text.partition("/")
    if not text:
        yield required(path)
    elif not domain or not rest:
        problem = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield invalid_value(path, text, problem)
    else:
        yield from text_causes(domain, subdomain_faults, path)
        if not _PATH.fullmatch(rest):
            problem = f"Invalid path (regex used for validation is '{_PATH_FORM}')"
            yield invalid_value(path, rest, problem)


def network_policy_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a NetworkPolicy."""
    spec = tree.get("spec") or {}
    yield from selector_causes(spec.get("podSelector"), "spec.podSelector")
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate(spec.get(rules) or ()):
            path = f"spec.{rules}[{i}]"
            for j, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port_causes(port, f"{path}.ports[{j}]")
            for j, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_causes(peer, f"{path}.{peers}[{j}]")
    yield from policy_block_causes(tree)
    types = spec.get("policyTypes") or ()
    if len(types) > 2:
        problem = "may not specify more than two policyTypes"
        yield invalid_value("spec.policyTypes", types, problem)
        return
    for i, word in enumerate(types):
        if word not in ("Ingress", "Egress"):
            yield unsupported_value(f"spec.policyTypes[{i}]", str(word), ("Ingress", "Egress"))


def _policy_port_causes(port: Tree, path: str) -> Iterator[Cause]:
    yield from choice_causes(port, "protocol", ("TCP", "UDP", "SCTP"), path)
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        yield from port_causes(number, f"{path}.port")
        if end is not None and end < number:
            problem = "must be greater than or equal to `port`"
            yield invalid_value(f"{path}.endPort", number, problem)
        if end is not None and not 0 < end < 65536:
            yield invalid_value(f"{path}.endPort", end, PORT_RULE)
        return
    if end is not None:
        word = "not specified" if number is None else "non-numeric"
        problem = f"may not be specified when `port` is {word}"
        yield invalid_value(f"{path}.endPort", end, problem)
    if number is not None:
        yield from port_causes(number, f"{path}.port")


def _peer_causes(peer: Tree, path: str) -> Iterator[Cause]:
    for field in ("podSelector", "namespaceSelector"):
        yield from selector_causes(peer.get(field), f"{path}.{field}")
    kinds = ("podSelector", "namespaceSelector", "ipBlock")
    count = sum(peer.get(field) is not None for field in kinds)
    if not count:
        yield required(path, "must specify a peer")
    elif count > 1 and peer.get("ipBlock") is not None:
        yield forbidden_field(path, "may not specify both ipBlock and another peer")


def endpoint_slice_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of an EndpointSlice."""
    kind = tree.get("addressType") or ""
    if not kind:
        yield required("addressType")
    elif kind not in ("IPv4", "IPv6", "FQDN"):
        yield unsupported_value("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    names: set[str] = set()
    for i, port in enumerate(tree.get("ports") or ()):
        name = port.get("name") or ""
        yield from name_causes_of(port, "name", dns_label_faults, f"ports[{i}]")
        if name in names:
            yield duplicate(f"ports[{i}].name", name)
        names.add(name)
        yield from choice_causes(port, "protocol", PROTOCOLS, f"ports[{i}]")
        if port.get("appProtocol") is not None:
            yield from text_causes(port["appProtocol"], key_faults, f"ports[{i}].appProtocol")
    for i, endpoint in enumerate(tree.get("endpoints") or ()):
        addresses, path = endpoint.get("addresses") or (), f"endpoints[{i}]"
        if not addresses:
            yield required(f"{path}.addresses", "must contain at least 1 address")
        for j, address in enumerate(addresses if kind in ("IPv4", "IPv6") else ()):
            where = f"{path}.addresses[{j}]"
            found = list(address_causes(address, where))
            yield from found
            if not found and (":" in address) != (kind == "IPv6"):
                yield invalid_value(f"{path}.addresses", address, f"must be an {kind} address")
            yield from () if found else endpoint_causes(address, where)
        yield from name_causes_of(endpoint, "nodeName", subdomain_faults, path)
        yield from name_causes_of(endpoint, "hostname", dns_label_faults, path)
