"""Services: addresses and ports that the API server allocates.

Mirrors pkg/registry/core/service: cluster addresses from 10.96.0.0/16, node ports from 30000 to
32767.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

Tree = dict[str, Any]

NETWORK = "10.96"
FIRST_NODE_PORT, LAST_NODE_PORT = 30000, 32767
HEADLESS = "None"


def allocate(tree: Tree, others: Iterable[Mapping[str, Any]]) -> None:
    """Allocate missing addresses and node ports."""
    spec = tree["spec"]
    if spec.get("type") == "ExternalName":
        return
    specs = [other.get("spec") or {} for other in others]
    seed = int.from_bytes(blake2b(tree["metadata"]["uid"].encode(), digest_size=8).digest())
    if not spec.get("clusterIP"):
        taken = {other.get("clusterIP") for other in specs}
        spec["clusterIP"] = next(ip for ip in _addresses(seed) if ip not in taken)
    spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        used = {port.get("nodePort") for other in specs for port in other.get("ports") or ()}
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = next(number for number in _ports(seed) if number not in used)
            used.add(port["nodePort"])
    is_local = spec.get("externalTrafficPolicy") == "Local"
    if spec.get("type") == "LoadBalancer" and is_local and not spec.get("healthCheckNodePort"):
        used |= {other.get("healthCheckNodePort") for other in specs}
        spec["healthCheckNodePort"] = next(n for n in _ports(seed) if n not in used)


def keep_allocated(tree: Tree, old: Mapping[str, Any]) -> None:
    """Keep the allocated values unless the client sets others."""
    spec, before = tree.get("spec") or {}, old.get("spec") or {}
    if spec.get("type", "ClusterIP") == "ExternalName" or before.get("type") == "ExternalName":
        return
    for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        if not spec.get(name) and before.get(name):
            spec[name] = before[name]
    given = {_port_key(port): port.get("nodePort") for port in before.get("ports") or ()}
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and given.get(_port_key(port)):
                port["nodePort"] = given[_port_key(port)]


def _port_key(port: Mapping[str, Any]) -> tuple[Any, str]:
    return port.get("port"), str(port.get("protocol") or "TCP")


def _addresses(seed: int) -> Iterator[str]:
    for i in range(2**16):
        number = (seed + i) % (2**16 - 2) + 1
        yield f"{NETWORK}.{number >> 8}.{number & 255}"


def _ports(seed: int) -> Iterator[int]:
    count = LAST_NODE_PORT - FIRST_NODE_PORT + 1
    for i in range(count):
        yield FIRST_NODE_PORT + (seed + i) % count
