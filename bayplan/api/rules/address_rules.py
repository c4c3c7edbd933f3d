"""Address rules: IP addresses and blocks of them that kube-apiserver refuses.

Mirrors IsValidIPForLegacyField and IsValidCIDRForLegacyField of k8s.io/apimachinery/pkg/util/validation/ip.go, as they
are with the gate StrictIPCIDRValidation, which v1.36 has on.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import msgspec

from .field_causes import Cause, invalid_value, required

Tree = Mapping[str, Any]
Address = IPv4Address | IPv6Address

_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])", re.ASCII)
_BITS = re.compile(r"[0-9]{1,3}", re.ASCII)
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_LINK_MULTICAST = {4: ip_network("224.0.0.0/24"), 6: ip_network("ff02::/16")}
_BLOCK_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def address_causes(value: Any, path: str) -> Iterator[Cause]:
    """Yield the faults of an address."""
    text = str(value)
    address = _lenient(text)
    if address is None:
        yield invalid_value(path, value, _ADDRESS_RULE)
    elif _strict(text) is None:
        yield invalid_value(path, value, "must not have leading 0s")
    elif _is_mapped(address):
        yield invalid_value(path, value, "must not be an IPv4-mapped IPv6 address")


def block_causes(value: Any, path: str) -> Iterator[Cause]:
    """Yield the faults of a block of addresses."""
    text = str(value)
    begin, _, bits = text.partition("/")
    address = _lenient(begin)
    is_whole = address is not None and _BITS.fullmatch(bits) is not None
    if address is None or not is_whole or int(bits) > address.max_prefixlen:
        yield invalid_value(path, value, _BLOCK_RULE)
    elif _strict(begin) is None or str(int(bits)) != bits:
        yield invalid_value(path, value, "must not have leading 0s in IP or prefix length")
    elif _is_mapped(address):
        yield invalid_value(path, value, "must not have an IPv4-mapped IPv6 address")
    elif ip_network((address, int(bits)), strict=False).network_address != address:
        yield invalid_value(path, value, "must not have bits set beyond the prefix length")


def pod_address_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the addresses in the spec of a pod or of a template."""
    for i, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from address_causes(server, f"{path}.dnsConfig.nameservers[{i}]")
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_causes(alias.get("ip") or "", f"{path}.hostAliases[{i}].ip")


def endpoint_causes(value: str, path: str) -> Iterator[Cause]:
    """Yield the faults of a valid address that must be reachable from other hosts."""
    address = _lenient(value)
    if address is None:
        return
    if address.is_unspecified:
        yield invalid_value(path, value, f"may not be unspecified ({value})")
    if address.is_loopback:
        problem = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        yield invalid_value(path, value, problem)
    if address.is_link_local:
        problem = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        yield invalid_value(path, value, problem)
    if address in _LINK_MULTICAST[address.version]:
        problem = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield invalid_value(path, value, problem)


def is_address(text: str) -> bool:
    """Whether a text is an address, with leading zeros, too."""
    return _lenient(text) is not None


def policy_block_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of the blocks of a NetworkPolicy."""
    spec = tree.get("spec") or {}
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate(spec.get(rules) or ()):
            for j, peer in enumerate(rule.get(peers) or ()):
                if peer.get("ipBlock") is not None:
                    where = f"spec.{rules}[{i}].{peers}[{j}].ipBlock"
                    yield from _peer_causes(peer["ipBlock"], where)


def _peer_causes(block: Tree, path: str) -> Iterator[Cause]:
    whole = block.get("cidr") or ""
    if not whole:
        yield required(f"{path}.cidr")
        return
    found = list(block_causes(whole, f"{path}.cidr"))
    yield from found
    for i, part in enumerate(block.get("except") or ()):
        where = f"{path}.except[{i}]"
        faults = list(block_causes(part, where))
        yield from faults
        if not found and not faults and not _is_part(str(part), str(whole)):
            yield invalid_value(where, part, "must be a strict subset of `cidr`")


def _strict(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id is not None else address


def _lenient(text: str) -> Address | None:
    """The address, with leading zeros in decimal numbers, too."""
    return _strict(_ZEROS.sub("", text) if "." in text else text)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _is_part(part: str, whole: str) -> bool:
    one, other = ip_network(part), ip_network(whole)
    if one.version != other.version or one.prefixlen <= other.prefixlen:
        return False
    return one.network_address in other


def quoted(text: str) -> str:
    """The text in double quotes, as in Go's messages."""
    return msgspec.json.encode(text).decode()


def address_warnings(value: Any, path: str) -> Iterator[str]:
    """Yield the warnings about an address."""
    yield from _form_warnings(value, path, "IPv6 address")


def block_warnings(value: Any, path: str) -> Iterator[str]:
    """Yield the warnings about a block of addresses."""
    yield from _form_warnings(value, path, "IPv6 CIDR value")


def _form_warnings(value: Any, path: str, what: str) -> Iterator[str]:
    text = str(value or "")
    begin, slash, size = text.partition("/")
    try:
        address = ipaddress.IPv6Address(begin)
    except ValueError:
        return  # an IPv4 address, or a refused one
    if f"{address}{slash}{size}" != text:
        form = quoted(f"{address}{slash}{size}")
        yield f"{path}: {what} {quoted(text)} should be in RFC 5952 canonical format ({form})"
